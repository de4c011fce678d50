"""Annotate: one image, one key, the next image. Everything quick happens in components/annotate/annotate.js."""

import streamlit as st

from annotator.engine import orders
from annotator.errors import AnnotatorError
from annotator.store import classes
from annotator.ui import context, frame
from annotator.ui.components import mount
from models.selection import STRATEGIES


def page() -> None:
    """The page; without classes, a form to name them."""
    frame.annotator_name()
    known = classes.all_classes(context.db())
    if not known:
        class_form(
            "First, name what may be on the images",
            "One class a line. A tab and a description may follow. More can be added later on the Settings page.",
        )
        return
    db = context.db()
    choices = [{"name": one.name, "title": one.title, "about": one.about} for one in STRATEGIES.values()]
    mount("annotate", known, orders=choices, order=orders.chosen(db))


def class_form(title: str, text: str) -> None:
    """A form that adds classes, one a line."""
    with st.form("classes_form", clear_on_submit=False):
        st.subheader(title)
        lines = st.text_area(text, height=200, placeholder="fox\nheron\ndeer", key="class_lines")
        if st.form_submit_button("Add classes", type="primary"):
            pairs = [line.partition("\t")[::2] for line in lines.splitlines() if line.strip()]
            try:
                added = classes.add_classes(context.db(), [(name.strip(), more.strip()) for name, more in pairs])
            except AnnotatorError as error:
                frame.error(error)
                return
            if added:
                st.rerun()
            st.info("Nothing was added: these classes are there already, or the box is empty.")
