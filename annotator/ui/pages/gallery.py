"""Gallery: all images with their labels, filtered and sorted; many are changed at once.

Everything quick happens in components/gallery/gallery.js, which reads the filter in the address.
"""

import streamlit as st

from annotator.records import SOURCES
from annotator.snapshot import gallery
from annotator.store.labels import counts as overview
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import frame

MOST_FOLDERS = 1000  # offered to choose from


def page() -> None:
    """The page."""
    frame.annotator_name()
    db = context.db()
    if not gallery.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery.prepare(db)
    mount(
        "gallery",
        images=overview.image_counts(db)["all"],
        annotators=overview.annotators(db),
        sources=[(source.name, f"{source.name}: {source.about}") for source in SOURCES.values()],
        folders=[folder for folder in gallery.folders(db) if folder][:MOST_FOLDERS],
    )
