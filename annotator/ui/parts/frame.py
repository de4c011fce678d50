"""The frame of all pages: the style around them, error boxes, text made safe for Markdown, and the annotator's name."""

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
from annotator.ui.parts import widget_values
from annotator.ui.parts.navigation import PAGES, PageEntry

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
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {color: inherit;}
[data-testid^="stBaseButton-primary"]:enabled {color: light-dark(#fff, #06211c);}
[data-testid^="stBaseButton-primary"]:enabled :is(p, kbd) {color: inherit; opacity: 1;}
[data-testid="stElementToolbarButton"]:has([aria-label^="Download as CSV"]) {display: none;}
@media (max-width: 760px) {[data-testid="stMainBlockContainer"] {padding: 3.4rem 0.7rem 1rem;}}
</style>"""


def apply_style() -> None:
    """Hide Streamlit's menus and margins to make room for the image, and its download of tables.

    This download writes names as they are, which a spreadsheet may run as formulas (exchange/files/csv_cells.py).
    """
    st.html(PAGE_STYLE)


def underline_menu(place: int) -> None:
    """Underline the menu at the top that the open page is in, the first one being 0: Streamlit marks the page only."""
    menu = f'[data-testid="stTopNav"] > :nth-child({place + 1}) [data-testid="stTopNavSection"] > span'
    st.html(f"<style>{menu} {{font-weight: 650; box-shadow: 0 2px 0 currentColor;}}</style>")


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an AnnotatorError, or an error of the system, raised in this context as a box instead of a traceback.

    An error of a change that `follows` made is shown, too.
    """
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
    """Return the annotator's name, which is that of the member whose session this is.

    Where there are no members the name is asked for once, and the page stops until it is given. The components keep it
    in a cookie, because a reload is a new session for Streamlit.
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
    """Return the annotator's name where it is known, without asking; "" otherwise."""
    signed_in = get_member()
    return signed_in.name if signed_in else st.session_state.get("name", "")


def get_member() -> Member | None:
    """Return the member whose session this is; None where the project has no members, or the session has ended."""
    sessions = served_project.sessions()
    return None if sessions is None else get_script_member(sessions)


def has_right(right: Right) -> bool:
    """Return whether the person who looks at this page has this right; without members everybody has every right."""
    if served_project.sessions() is None:
        return True
    signed_in = get_member()
    return signed_in is not None and signed_in.highest_right >= right


def show_refusal(entry: PageEntry) -> None:
    """Tell a person that their role does not include this page, and where they may go."""
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
    """Tell a person that their session ended while the page was open."""
    show_warning(
        "Your session has ended, or an owner took your role away. Unsent answers wait in this browser: sign in again "
        "to send them."
    )
    st.html(f'<a href="{served_project.base_path()}/" target="_self">Open the app again</a>')


def can_open(entry: PageEntry) -> bool:
    """Return whether the person who looks at this page may open that one."""
    return _is_visible_to(served_project.sessions(), get_member(), entry)


def enter_page(entry: PageEntry) -> bool:
    """Note that this page is drawn next, and return whether the person who looks may open it.

    `refreshed` and `download` ask for it again.
    """
    st.session_state[_OPEN_PAGE_KEY] = entry.name
    return can_open(entry)


def build_fragment(draw: Callable[P, None], seconds: float | None) -> Callable[P, None]:
    """Return a part of the page as a fragment that is drawn again every `every` seconds.

    None: only when something in it is pressed. Each time, the role of the person who looks is checked first; where it
    no longer allows the page, the whole page runs and says so.
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
    """Draw a button that downloads what `make` returns.

    `make` is called when the button is pressed, long after the page was drawn, and not for a person who may no longer
    open the page: for them the whole page soon runs, and says so.
    """
    sessions = served_project.sessions()
    data = make if sessions is None else _guard_download(make, sessions)
    # Never by the press itself: a run of the page throws away what the button before it was to download, which the
    # browser asks for at the same time.
    st.download_button(label, data, file_name=file_name, mime=mime, key=key, on_click="ignore", help=help)
    if sessions is not None:
        build_fragment(_draw_nothing, ROLE_CHECK_SECONDS)()


def _draw_nothing() -> None:
    """Draw nothing: `refreshed` only checks the role."""


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
    """Return the page that is open; the first one where a page runs without the app (in a test of it alone)."""
    return next((entry for entry in PAGES if entry.name == st.session_state.get(_OPEN_PAGE_KEY)), PAGES[0])


def _is_visible_to(sessions: Sessions | None, signed_in: Member | None, entry: PageEntry) -> bool:
    if sessions is None:
        return True
    if signed_in is None or signed_in.highest_right < entry.right:
        return False
    return not sessions.is_hidden(entry.name, signed_in)


def create_token() -> str:
    """Return the token for this person's components."""
    return served_project.tokens().mint(require_annotator_name())


def escape_markdown(text: object) -> str:
    """Return text of people, files or other programs, escaped so that Streamlit's Markdown shows it is.

    Streamlit renders all its texts as Markdown: boxes, captions, help, labels of widgets and their options. Punctuation
    is escaped. Streamlit also replaces :shortcodes:, arrows and addresses after unescaping; an invisible word joiner
    keeps them from being recognised. Line breaks are kept.
    """
    lines = str(text).strip("\r\n").splitlines()
    return "\\\n".join(
        _MARKDOWN_PATTERN.sub(r"\\\g<0>", _REPLACEMENT_PATTERN.sub(WORD_JOINER, _keep_indent(line))) for line in lines
    )


def escape_for_screen_reader(text: str) -> str:
    """Return text of people for a label that only screen readers are given ("collapsed").

    Backslashes would be read out. Streamlit makes Markdown of such a label, too, and browsers fetch the pictures in
    it: invisible word joiners around its punctuation leave none.
    """
    return _PUNCTUATION_PATTERN.sub(f"{WORD_JOINER}\\g<0>{WORD_JOINER}", text)


def show_error(text: object) -> None:
    """Show a box that says what went wrong, as plain text."""
    st.error(escape_markdown(text), icon=":material/error:")


def show_info(text: object) -> None:
    """Show a box that says how things are, as plain text."""
    st.info(escape_markdown(text))


def show_warning(text: object) -> None:
    """Show a box that says what needs attention, as plain text."""
    st.warning(escape_markdown(text))


def draw_page_link(page: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to another page of the app; `query` are the parameters of its address."""
    st.page_link(st.Page(lambda: None, title=label, url_path=page), label=label, icon=icon, query_params=query)


def get_time_zone() -> tzinfo | None:
    """Return the time zone of the browser, in which times are shown: the server may run elsewhere. None if unknown."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (TypeError, ValueError, KeyError, OSError):
        return None


def forget_name() -> None:
    """Ask for a name again: another person takes over this browser."""
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
    """Return the known name that differs from `name` in capitals or blanks only; "" if none does or `name` is known."""
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
