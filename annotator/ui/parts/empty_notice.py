"""What a page shows of a project without images or without classes: where to add them."""

import streamlit as st

from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from annotator.ui.parts import frame


def draw_if_empty(db: Database, *, needs_classes: bool = True) -> bool:
    """Say what the project lacks and lead to the page that adds it; return whether it lacks something.

    Args:
        db: The project's database.
        needs_classes: The page needs classes, too, not only images.
    """
    if not project_counts.count_images_by_stage(db)["all"]:
        st.info("No images yet. Add a folder on the Images page.")
        frame.draw_page_link("images", "Go to Images")
        return True
    if needs_classes and not classes.count_classes(db):
        st.info("No classes yet. Add some on the Classes page.")
        frame.draw_page_link("classes", "Go to Classes")
        return True
    return False
