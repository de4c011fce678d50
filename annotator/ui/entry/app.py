"""Streamlit's entry: who is at work, and the pages."""

from collections.abc import Callable
from importlib import import_module

import streamlit as st

from annotator.ui import frame

# Drawn here: an icon of Streamlit's would be fetched from the net.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f7b6c"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)


def _opened(name: str) -> Callable[[], None]:
    """The page in pages/<name>.py, read when it is opened: the charts of Progress take half a second, which the first
    page after a start need not wait for."""
    return lambda: import_module(f"annotator.ui.pages.{name}").page()


st.set_page_config(page_title="Annotator", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed")
frame.style()
page = st.navigation(
    [
        st.Page(_opened("annotate"), title="Annotate", icon=":material/touch_app:", url_path="annotate", default=True),
        st.Page(_opened("autopilot"), title="Autopilot", icon=":material/auto_awesome:", url_path="autopilot"),
        st.Page(_opened("grid"), title="Grid", icon=":material/grid_view:", url_path="grid"),
        st.Page(_opened("review"), title="Review", icon=":material/fact_check:", url_path="review"),
        st.Page(_opened("map"), title="Map", icon=":material/bubble_chart:", url_path="map"),
        st.Page(_opened("progress"), title="Progress", icon=":material/monitoring:", url_path="progress"),
        st.Page(_opened("certificate"), title="Certificate", icon=":material/verified:", url_path="certificate"),
        st.Page(_opened("export"), title="Export", icon=":material/download:", url_path="export"),
        st.Page(_opened("settings"), title="Settings", icon=":material/tune:", url_path="settings"),
    ],
    position="top",
)
with frame.errors_shown():
    page.run()
