"""Map: every image a point in a plane, alike ones together. Everything quick happens in components/map/map.js."""

import streamlit as st

from annotator.snapshot import gallery
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import empty, frame


def page() -> None:
    """Draw the page; it decides nothing and asks for no work."""
    frame.annotator_name()
    db = context.db()
    if empty.shown(db, needs_classes=False):
        return
    if not gallery.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery.prepare(db)
    mount("map", facts=gallery.offered_facts(db))
