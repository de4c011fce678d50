"""Streamlit's entry: the navigation bar and the page that is open."""

from importlib import import_module

import streamlit as st

from annotator.roles import Right
from annotator.ui.components import mount_who
from annotator.ui.parts import frame
from annotator.ui.parts.navigation import PAGES, Entry

# Drawn here: an icon of Streamlit's would be fetched from the net.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f7b6c"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)


def _page(entry: Entry) -> st.Page:
    """Return the page in pages/<name>.py, for Streamlit.

    It is imported when it is opened: the charts of Progress take half a second, which the first page after a start
    need not wait for.
    """

    def show() -> None:
        if not frame.opened(entry):
            frame.refused(entry)
            return
        import_module(f"annotator.ui.pages.{entry.name}").page()

    first = entry is PAGES[0]
    listed = "visible" if entry.listed and frame.may_open(entry) else "hidden"
    return st.Page(show, title=entry.title, icon=entry.icon, url_path=entry.name, default=first, visibility=listed)


st.set_page_config(page_title="Annotator", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed")
frame.style()
if not frame.may(Right.LOOK):
    frame.show_session_ended()
    st.stop()
page = st.navigation([_page(entry) for entry in PAGES], position="top")
with frame.errors_shown():
    mount_who()
    page.run()
