"""Streamlit's entry: who is at work, and the pages."""

import streamlit as st

from annotator.ui import frame
from annotator.ui.pages import annotate, export, grid, map, progress, review, settings

# Drawn here: an icon of Streamlit's would be fetched from the net.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f7b6c"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)

st.set_page_config(page_title="Annotator", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed")
frame.style()
page = st.navigation(
    [
        st.Page(annotate.page, title="Annotate", icon=":material/touch_app:", url_path="annotate", default=True),
        st.Page(grid.page, title="Grid", icon=":material/grid_view:", url_path="grid"),
        st.Page(review.page, title="Review", icon=":material/fact_check:", url_path="review"),
        st.Page(map.page, title="Map", icon=":material/bubble_chart:", url_path="map"),
        st.Page(progress.page, title="Progress", icon=":material/monitoring:", url_path="progress"),
        st.Page(export.page, title="Export", icon=":material/download:", url_path="export"),
        st.Page(settings.page, title="Settings", icon=":material/tune:", url_path="settings"),
    ],
    position="top",
)
with frame.errors_shown():
    page.run()
