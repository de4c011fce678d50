"""The notice of a project without images or classes, with links."""

import streamlit as st

from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from annotator.ui.shared.page_access import draw_page_link


def draw_if_empty(db: Database, *, needs_classes: bool = True) -> bool:
    """Show which data the project lacks, with a link, returning whether it lacks any."""
    if not project_counts.count_images_by_stage(db)["all"]:
        st.info("No images yet. Add a folder on the Images page.")
        draw_page_link("images", "Go to Images")
        return True
    if needs_classes and not classes.count_classes(db):
        st.info("No classes yet. Add some on the Classes page.")
        draw_page_link("classes", "Go to Classes")
        return True
    return False
