"""Streamlit's entry: the menus at the top and the page that is open."""

from importlib import import_module

import streamlit as st

from annotator.roles import Right
from annotator.store.labels import counts as overview
from annotator.ui.access import context
from annotator.ui.components import mount_status_bar
from annotator.ui.parts import frame
from annotator.ui.parts.navigation import FIRST, PAGES, SHOW_ANSWERS, Entry, Group

# Drawn here: an icon of Streamlit's would be fetched from the net.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f7b6c"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)


def _page(entry: Entry, listed: bool) -> st.Page:
    """Return the page in pages/<name>.py, for Streamlit.

    It is imported when it is opened: the charts of Progress take half a second, which the first page after a start
    need not wait for.
    """

    def show() -> None:
        if not frame.opened(entry):
            frame.refused(entry)
            return
        import_module(f"annotator.ui.pages.{entry.name}").page()

    shown = "visible" if listed else "hidden"
    return st.Page(
        show, title=entry.title, icon=entry.icon, url_path=entry.name, default=entry is FIRST, visibility=shown
    )


def _menus() -> dict[Group, dict[Entry, bool]]:
    """Return the pages of each menu, and whether it lists them.

    Whoever may answer is first shown how: what looks at answers is listed from the first one on. Its addresses work
    before.
    """
    nothing_yet = frame.may(Right.ANSWER) and not overview.has_answers(context.db())
    menus: dict[Group, dict[Entry, bool]] = {group: {} for group in Group}
    for entry in PAGES:
        kept_back = nothing_yet and entry.group in SHOW_ANSWERS
        menus[entry.group][entry] = entry.listed and frame.may_open(entry) and not kept_back
    return menus


st.set_page_config(page_icon=ICON, layout="wide", initial_sidebar_state="collapsed")
frame.style()
if not frame.may(Right.LOOK):
    frame.show_session_ended()
    st.stop()
menus = _menus()
page = st.navigation(
    {group.value: [_page(entry, listed) for entry, listed in pages.items()] for group, pages in menus.items()},
    position="top",
)
st.set_page_config(page_title=f"{context.project_name()} - {page.title}")
for place, pages in enumerate(pages for pages in menus.values() if any(pages.values())):
    if any(entry.title == page.title for entry in pages):
        frame.mark_menu(place)
with frame.errors_shown():
    mount_status_bar()
    page.run()
