"""Streamlit's entry script: menus and the open page."""

from importlib import import_module

import streamlit as st

from annotator.roles import Right
from annotator.store.labels import project_counts
from annotator.ui.access import served_project
from annotator.ui.entry.page_style import apply_style, underline_menu
from annotator.ui.shared.components import mount_status_bar
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.navigation import FIRST_PAGE, MENUS_NEEDING_ANSWERS, PAGES, Menu, PageEntry, find_page_module
from annotator.ui.shared.page_access import can_open, enter_page, has_right, show_refusal, show_session_ended

# Drawn here: an icon of Streamlit's would be fetched from the net.
ICON_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f7b6c"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)


def _build_page(entry: PageEntry, listed: bool) -> st.Page:
    """Return the Streamlit page of an entry. Its module is imported only when the page is opened."""

    def show() -> None:
        if not enter_page(entry):
            show_refusal(entry)
            return
        import_module(find_page_module(entry.name)).page()

    shown = "visible" if listed else "hidden"
    return st.Page(
        show, title=entry.title, icon=entry.icon, url_path=entry.name, default=entry is FIRST_PAGE, visibility=shown
    )


def _build_menus() -> dict[Menu, dict[PageEntry, bool]]:
    nothing_yet = has_right(Right.ANSWER) and not project_counts.has_answers(served_project.db())
    menus: dict[Menu, dict[PageEntry, bool]] = {group: {} for group in Menu}
    for entry in PAGES:
        kept_back = nothing_yet and entry.group in MENUS_NEEDING_ANSWERS
        menus[entry.group][entry] = entry.listed and can_open(entry) and not kept_back
    return menus


st.set_page_config(page_icon=ICON_SVG, layout="wide", initial_sidebar_state="collapsed")
apply_style()
if not has_right(Right.LOOK):
    show_session_ended()
    st.stop()
menus = _build_menus()
page = st.navigation(
    {group.value: [_build_page(entry, listed) for entry, listed in pages.items()] for group, pages in menus.items()},
    position="top",
)
st.set_page_config(page_title=f"{served_project.project_name()} - {page.title}")
for place, pages in enumerate(pages for pages in menus.values() if any(pages.values())):
    if any(entry.title == page.title for entry in pages):
        underline_menu(place)
with show_errors():
    mount_status_bar()
    page.run()
