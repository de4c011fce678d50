"""Access of this session's person to pages: rights, refusals and links.

Roles change while a page is open: its fragments and downloads check them again.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from annotator.errors import Forbidden
from annotator.roles import Right, Role
from annotator.store.database import authorization
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.sessions import Sessions, get_script_member
from annotator.ui.shared.message_boxes import show_info, show_warning
from annotator.ui.shared.navigation import PAGES, PageEntry

P = ParamSpec("P")
ROLE_CHECK_SECONDS = 5.0  # between two looks at the role of whoever has a page with a download open
_OPEN_PAGE_KEY = "opened_page"  # its name, in the session state


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


def can_open(entry: PageEntry) -> bool:
    return _is_visible_to(served_project.sessions(), get_member(), entry)


def enter_page(entry: PageEntry) -> bool:
    """Record the page as open, returning whether this person may see it."""
    st.session_state[_OPEN_PAGE_KEY] = entry.name
    return can_open(entry)


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
    show_warning(
        "Your session has ended, or an owner took your role away. Unsent answers wait in this browser: sign in again "
        "to send them."
    )
    st.html(f'<a href="{served_project.base_path()}/" target="_self">Open the app again</a>')


def draw_page_link(page: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to another page with URL parameters."""
    st.page_link(st.Page(lambda: None, title=label, url_path=page), label=label, icon=icon, query_params=query)


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
    """Draw nothing: the fragment that calls this only checks the person's role at intervals."""


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
