"""Autopilot: whatever brings most for a person's time, one after the other. Everything quick happens in
components/autopilot/autopilot.js."""

from annotator.store import classes
from annotator.ui import context, frame
from annotator.ui.components import mount
from annotator.ui.pages.class_form import first_form


def page() -> None:
    """The page; without classes, a form to name them."""
    frame.annotator_name()
    if not classes.all_classes(context.db()):
        first_form()
        return
    mount("autopilot", styles=["grid/tiles.css", "annotate/annotate.css"])
