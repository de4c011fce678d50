"""The name under which a person answers: a member's, or one that is typed and kept in a cookie."""

import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

import streamlit as st

from annotator.settings import IMPORT_ANNOTATOR
from annotator.store.labels import project_counts
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import LAST_NAME_COOKIE_NAME, build_name_cookie_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_warning
from annotator.ui.shared.page_access import get_member

MAX_NAME_CHARACTERS = 60
FOCUS_SCRIPT = """<script>
  // Streamlit has no option for it, and may build the field anew while the page comes: whatever is focused stays so.
  for (let time = 0; time < 3000; time += 100) {
    setTimeout(() => {
      if (document.activeElement === document.body) document.querySelector(".st-key-name_given input")?.focus();
    }, time);
  }
</script>"""


def require_annotator_name() -> str:
    """Return the member's name, or the typed name if the project has no members.

    The page stops until a name is typed. The project's own cookie keeps it across reloads.
    """
    if served_project.sessions() is not None:
        signed_in = get_member()
        return signed_in.name if signed_in else st.stop()
    name = st.session_state.get("name") or _read_name_cookie(build_name_cookie_name(served_project.db()))
    if not name:
        _ask_for_name()
        st.stop()
    if st.session_state.get("name") != name:
        st.session_state["name"] = name
    return name


def get_known_name() -> str:
    """Return the annotator's name without asking, "" if unknown."""
    signed_in = get_member()
    return signed_in.name if signed_in else st.session_state.get("name", "")


def create_token() -> str:
    """Return the token with which this person's page components send requests."""
    return served_project.tokens().mint(require_annotator_name())


def forget_name() -> None:
    st.session_state["name"] = ""
    st.session_state["asked"] = True


def _ask_for_name() -> None:
    _, middle, _ = st.columns([1, 2, 1])
    with middle, st.form("name_form"):
        st.subheader("Who is labeling?")
        st.write("Your name is stored with every answer you give.")
        given = st.text_input(
            "Your name",
            _read_name_cookie(LAST_NAME_COOKIE_NAME),
            max_chars=MAX_NAME_CHARACTERS,
            placeholder="Ann",
            key="name_given",
        )
        if st.form_submit_button("Start", type="primary"):
            name, is_reserved = _clean_name(given), _normalize_name(_clean_name(given)) == IMPORT_ANNOTATOR
            st.session_state["name_asked"] = "" if is_reserved else name
            if is_reserved:
                st.warning(f"{IMPORT_ANNOTATOR} is the annotator of imported labels. Type another name.")
            elif not name:
                st.warning("Type a name or initials.")
    st.html(FOCUS_SCRIPT, unsafe_allow_javascript=True)
    name = st.session_state.get("name_asked")
    if not name:
        return
    twin = find_similar_name(name, project_counts.list_annotators(served_project.db()))
    if not twin:
        _set_name(name)
    with middle:
        show_warning(f"{twin} has labeled here before. Is that you?")
        with st.container(horizontal=True):
            if st.button(f"I am {escape_markdown(twin)}", type="primary", key="name_twin"):
                _set_name(twin)
            if st.button(f"I am {escape_markdown(name)}, a different person", key="name_other"):
                _set_name(name)


def find_similar_name(name: str, known: Iterable[str]) -> str:
    """Return the known name differing only in case or spaces, or ""."""
    known = list(known)
    alike = [other for other in known if _normalize_name(other) == _normalize_name(name)]
    return "" if name in known or not alike else alike[0]


def _normalize_name(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _set_name(name: str) -> None:
    st.session_state["name"] = name
    del st.session_state["name_asked"]
    st.rerun()


def _read_name_cookie(cookie_name: str) -> str:
    if st.session_state.get("asked"):  # another person takes over
        return ""
    return _clean_name(unquote(st.context.cookies.get(cookie_name, "")))


def _clean_name(name: str | None) -> str:
    return " ".join("".join(letter for letter in (name or "") if letter.isprintable()).split())[:MAX_NAME_CHARACTERS]
