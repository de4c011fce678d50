"""Annotate: one image, one key, the next image. Everything quick happens in components/annotate/annotate.js."""

import streamlit as st

from annotator.queues import query_order
from annotator.store.classes import classes
from annotator.store.events import stored
from annotator.store.labels import answering
from annotator.store.labels import counts as overview
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import class_adding, frame
from annotator.ui.parts.class_form import first_form


def page() -> None:
    """Draw the page; without images a way to them, without classes a form to name them."""
    name = frame.annotator_name()
    if not overview.image_counts(context.db())["all"]:
        st.info("No images yet. Add a folder on the Images page.")
        frame.link("images", "Go to Images")
    if not classes.all_classes(context.db()):
        first_form()
        return
    db = context.db()
    choices = [
        {"name": order.name, "title": order.title, "about": order.about} for order in query_order.QUERY_ORDERS.values()
    ]
    order, adds = query_order.chosen(db), class_adding.is_allowed(db)
    mode = answering.chosen_by(db, name)
    mount("annotate", orders=choices, order=order, adds_classes=adds, mode=mode, events=stored.are_some(db))
