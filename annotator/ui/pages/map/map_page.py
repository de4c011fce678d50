"""The Map page: images as points, similar ones close together."""

import streamlit as st

from annotator.snapshot import gallery_listing
from annotator.ui.access import served_project
from annotator.ui.shared import empty_notice
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.components import mount_component


def page() -> None:
    require_annotator_name()
    db = served_project.db()
    if empty_notice.draw_if_empty(db, needs_classes=False):
        return
    if not gallery_listing.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery_listing.load_columns(db)
    mount_component("map", facts=gallery_listing.list_offered_facts(db))
