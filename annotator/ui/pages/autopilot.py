"""Autopilot: whatever brings most for a person's time, one after the other. Everything quick happens in
components/autopilot/autopilot.js."""

from annotator.store import classes
from annotator.ui import context, frame
from annotator.ui.components import mount
from annotator.ui.pages.annotate import class_form


def page() -> None:
    """The page; without classes, a form to name them."""
    frame.annotator_name()
    known = classes.all_classes(context.db())
    if not known:
        class_form("First, name what may be on the images", "One class a line. A tab and a description may follow.")
        return
    mount("autopilot", known)
