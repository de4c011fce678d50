"""The frame of all pages: style, message boxes, escaping and the annotator's rights."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from typing import ParamSpec
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import streamlit as st

from annotator.errors import Forbidden
from annotator.roles import Right, Role
from annotator.store.database import authorization
from annotator.store.disk import system_errors
from annotator.store.labels import project_counts
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.sessions import Sessions, get_script_member
from annotator.ui.shared import widget_values
from annotator.ui.shared.navigation import PAGES, PageEntry

P = ParamSpec("P")
NAME_COOKIE = "annotator_name"
MAX_NAME_CHARACTERS = 60
ROLE_CHECK_SECONDS = 5.0  # between two looks at the role of whoever has a page with a download open
_OPEN_PAGE_KEY = "opened_page"  # its name, in the session state
FOCUS_SCRIPT = """<script>
  // Streamlit has no option for it, and may build the field anew while the page comes: whatever is focused stays so.
  for (let time = 0; time < 3000; time += 100) {
    setTimeout(() => {
      if (document.activeElement === document.body) document.querySelector(".st-key-name_given input")?.focus();
    }, time);
  }
</script>"""
WORD_JOINER = "\u2060"
_MARKDOWN_PATTERN = re.compile(r"[\\`*_{}\[\]<>()#+\-.!|$~:&=^]")
_PUNCTUATION_PATTERN = re.compile(r"[^\w\s]|_")
_REPLACEMENT_PATTERN = re.compile(
    r"(?<=[:@])(?=\S)|(?<=www)(?=\.)|(?<!\S)(?=(?:<->|<-|->|--|[<>~]=)(?:\s|$))", re.IGNORECASE
)
PAGE_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding: 3.5rem 1.2rem 0.4rem; max-width: none;}
[data-testid="stDecoration"], [data-testid="stStatusWidget"], [data-testid="stMainMenu"] {display: none;}
[data-testid="stHeader"] {height: 3rem; min-height: 3rem;}
[data-testid="stTopNavSection"] {min-height: 2.75rem;}
[data-testid="stTopNavDropdownLink"] {min-height: 2.75rem;}
[data-testid="stLayoutWrapper"]:has(> .st-key-who) {position: absolute;}
.st-key-who {position: fixed; top: 2px; right: 1.2rem; width: auto; z-index: 999991;}
@media (min-width: 768px) {[data-testid="stToolbar"] {padding-right: calc(100vw - 28rem);}}
@media (max-width: 767px) {
  [data-testid="stSidebarNavLink"] {min-height: 2.25rem;}
  body:has([data-testid="stSidebar"][data-collapsed="false"]) .st-key-who {visibility: hidden;}
}
[data-testid="stHeading"] h3 {font-size: 1.2rem; letter-spacing: -0.01em; padding: 0.2rem 0 0.4rem;}
[data-testid="stMetricValue"] {font-size: 1.7rem; font-variant-numeric: tabular-nums;}
[data-testid="stMetric"] * {white-space: normal !important;}
[data-testid="stDownloadButton"] p, [data-testid="stCheckbox"] p {white-space: normal;}
[data-testid="stCaptionContainer"] {opacity: 0.8;}
[data-testid="stMarkdownContainer"] :is(p, li) {unicode-bidi: plaintext;}
[data-testid="stApp"] :is(textarea, input[type="text"]) {unicode-bidi: plaintext;}
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {color: inherit;}
[data-testid^="stBaseButton-primary"]:enabled {color: light-dark(#fff, #06211c);}
[data-testid^="stBaseButton-primary"]:enabled :is(p, kbd) {color: inherit; opacity: 1;}
[data-testid="stElementToolbarButton"]:has([aria-label^="Download as CSV"]) {display: none;}
@media (max-width: 760px) {[data-testid="stMainBlockContainer"] {padding: 3.4rem 0.7rem 1rem;}}
</style>"""


def apply_style() -> None:
    """Hide Streamlit's menus, margins and table download.

    The download writes raw names, which a spreadsheet may run as formulas.
    """
    st.html(PAGE_STYLE)


def underline_menu(place: int) -> None:
    """Underline the menu with this index, because Streamlit marks only the page."""
    menu = f'[data-testid="stTopNav"] > :nth-child({place + 1}) [data-testid="stTopNavSection"] > span'
    st.html(f"<style>{menu} {{font-weight: 650; box-shadow: 0 2px 0 currentColor;}}</style>")


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an AnnotatorError or system error of this context as a box."""
    if problem := widget_values.pop_problem():
        show_error(problem)
    try:
        yield
    except Exception as problem:
        told = system_errors.translate_error(problem)
        if told is None:
            raise
        show_error(told)


def require_annotator_name() -> str:
    """Return the member's name, or the typed name if the project has no members.

    The page stops until a name is typed. A cookie keeps it across reloads.
    """
    if served_project.sessions() is not None:
        signed_in = get_member()
        return signed_in.name if signed_in else st.stop()
    name = st.session_state.get("name") or _clean_name(_read_name_cookie())
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


def get_member() -> Member | None:
    """Return this session's member, or None without members or after its end."""
    sessions = served_project.sessions()
    return None if sessions is None else get_script_member(sessions)


def has_right(right: Right) -> bool:
    """Return whether this person has the right, always true without members."""
    if served_project.sessions() is None:
        return True
    signed_in = get_member()
    return signed_in is not None and signed_in.highest_right >= right


def show_refusal(entry: PageEntry) -> None:
    """Explain why this page is not accessible, with links."""
    signed_in = get_member()
    role = signed_in.role if signed_in else "none"
    if has_right(entry.right):
        show_info(f"The owners of this project do not show {entry.title} to guests and annotators.")
    else:
        show_info(
            f"{entry.title} needs the role {authorization.get_minimum_role(entry.right)}, and yours is {role}. Owners "
            "change roles on the Members page."
        )
    with st.container(horizontal=True):
        for other in PAGES:
            if other.listed and can_open(other):
                draw_page_link(other.name, other.title, other.icon)


def show_session_ended() -> None:
    """Show that the session has ended."""
    show_warning(
        "Your session has ended, or an owner took your role away. Unsent answers wait in this browser: sign in again "
        "to send them."
    )
    st.html(f'<a href="{served_project.base_path()}/" target="_self">Open the app again</a>')


def can_open(entry: PageEntry) -> bool:
    """Return whether this person may open that page."""
    return _is_visible_to(served_project.sessions(), get_member(), entry)


def enter_page(entry: PageEntry) -> bool:
    """Record the page as open, returning whether this person may see it."""
    st.session_state[_OPEN_PAGE_KEY] = entry.name
    return can_open(entry)


def build_fragment(draw: Callable[P, None], seconds: float | None) -> Callable[P, None]:
    """Return a fragment that redraws every `seconds`, checking the person's role.

    None redraws on interaction only. If the page is no longer allowed, it is rerun completely.
    """

    @functools.wraps(draw)
    def check_and_draw(*given: P.args, **named: P.kwargs) -> None:
        if not can_open(_get_open_page()):
            st.rerun()
        draw(*given, **named)

    return st.fragment(check_and_draw, run_every=seconds)


def draw_download_button(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    mime: str,
    key: str | None = None,
    help: str | None = None,
) -> None:
    """Draw a button that downloads the result of `make`, called on click if the page is still allowed."""
    sessions = served_project.sessions()
    data = make if sessions is None else _guard_download(make, sessions)
    # Never by the press itself: a run of the page throws away what the button before it was to download, which the
    # browser asks for at the same time.
    st.download_button(label, data, file_name=file_name, mime=mime, key=key, on_click="ignore", help=help)
    if sessions is not None:
        build_fragment(_draw_nothing, ROLE_CHECK_SECONDS)()


def _draw_nothing() -> None:
    """Draw nothing."""


def _guard_download(make: Callable[[], str | bytes], sessions: Sessions) -> Callable[[], str | bytes]:
    entry, cookies = _get_open_page(), st.context.cookies.to_dict()

    def check_and_draw() -> str | bytes:
        sessions.refresh()
        asking = sessions.find_member(cookies)
        if not _is_visible_to(sessions, asking, entry):
            name, role = (asking.name, asking.role) if asking else ("Whoever is not signed in", Role.NONE)
            raise Forbidden(authorization.format_denial(name, role, entry.right))
        return make()

    return check_and_draw


def _get_open_page() -> PageEntry:
    """Return the open page, or the first page if none is recorded."""
    return next((entry for entry in PAGES if entry.name == st.session_state.get(_OPEN_PAGE_KEY)), PAGES[0])


def _is_visible_to(sessions: Sessions | None, signed_in: Member | None, entry: PageEntry) -> bool:
    if sessions is None:
        return True
    if signed_in is None or signed_in.highest_right < entry.right:
        return False
    return not sessions.is_hidden(entry.name, signed_in)


def create_token() -> str:
    """Return the token with which this person's page components send requests."""
    return served_project.tokens().mint(require_annotator_name())


def escape_markdown(text: object) -> str:
    """Escape foreign text, so that Streamlit's Markdown shows it literally.

    Word joiners break shortcodes, arrows and URLs, which Streamlit replaces after unescaping. Line breaks stay.
    """
    lines = str(text).strip("\r\n").splitlines()
    return "\\\n".join(
        _MARKDOWN_PATTERN.sub(r"\\\g<0>", _REPLACEMENT_PATTERN.sub(WORD_JOINER, _keep_indent(line))) for line in lines
    )


def escape_for_screen_reader(text: str) -> str:
    """Escape text of a label for screen readers, without backslashes.

    Word joiners around punctuation prevent Markdown images, which browsers would fetch.
    """
    return _PUNCTUATION_PATTERN.sub(f"{WORD_JOINER}\\g<0>{WORD_JOINER}", text)


def show_error(text: object) -> None:
    """Show plain text in an error box."""
    st.error(escape_markdown(text), icon=":material/error:")


def show_info(text: object) -> None:
    """Show plain text in an info box."""
    st.info(escape_markdown(text))


def show_warning(text: object) -> None:
    """Show plain text in a warning box."""
    st.warning(escape_markdown(text))


def draw_page_link(page: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to another page with URL parameters."""
    st.page_link(st.Page(lambda: None, title=label, url_path=page), label=label, icon=icon, query_params=query)


def get_time_zone() -> tzinfo | None:
    """Return the browser's time zone, or None if unknown."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (TypeError, ValueError, KeyError, OSError):
        return None


def forget_name() -> None:
    """Forget the annotator's name and ask for another."""
    st.session_state["name"] = ""
    st.session_state["asked"] = True


def _ask_for_name() -> None:
    _, middle, _ = st.columns([1, 2, 1])
    with middle, st.form("name_form"):
        st.subheader("Who is labeling?")
        st.write("Your name is stored with every answer you give.")
        given = st.text_input("Your name", max_chars=MAX_NAME_CHARACTERS, placeholder="Ann", key="name_given")
        if st.form_submit_button("Start", type="primary"):
            st.session_state["name_asked"] = _clean_name(given)
            if not _clean_name(given):
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


def _keep_indent(line: str) -> str:
    # Markdown would read blanks at the start of a line as code, or drop them.
    line = line.expandtabs(4)
    return "\u00a0" * (len(line) - len(line.lstrip(" "))) + line.lstrip(" ")


def _read_name_cookie() -> str:
    if st.session_state.get("asked"):
        return ""
    return unquote(st.context.cookies.get(NAME_COOKIE, ""))


def _clean_name(name: str | None) -> str:
    return " ".join("".join(letter for letter in (name or "") if letter.isprintable()).split())[:MAX_NAME_CHARACTERS]
