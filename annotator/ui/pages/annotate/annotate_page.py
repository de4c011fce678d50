"""The Annotate page: one image at a time."""

import streamlit as st

from annotator.queues import query_order
from annotator.store.classes import classes
from annotator.store.events import stored_events
from annotator.store.labels import answer_mode, project_counts
from annotator.ui.access import served_project
from annotator.ui.shared import page_classes
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.class_form import draw_first_form
from annotator.ui.shared.components import mount_component
from annotator.ui.shared.page_access import draw_page_link


def page() -> None:
    """Draw the Annotate page, or what it lacks: images or classes."""
    name = require_annotator_name()
    if not project_counts.count_images_by_stage(served_project.db())["all"]:
        st.info("No images yet. Add a folder on the Images page.")
        draw_page_link("images", "Go to Images")
    if not classes.load_active_classes(served_project.db()):
        draw_first_form()
        return
    db = served_project.db()
    choices = [
        {"name": order.name, "title": order.title, "about": order.about} for order in query_order.QUERY_ORDERS.values()
    ]
    order, adds = query_order.get_default_name(db), page_classes.is_adding_allowed(db)
    mode = answer_mode.get_annotator_mode(db, name)
    mount_component(
        "annotate",
        orders=choices,
        order=order,
        adds_classes=adds,
        mode=mode,
        events=stored_events.has_multi_image_events(db),
    )
