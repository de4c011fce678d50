"""Autopilot: the action that brings most for a person's time, one after the other.

Everything quick happens in components/autopilot/autopilot.js.
"""

from annotator.store.classes import classes
from annotator.store.events import stored
from annotator.store.labels import answering
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import frame
from annotator.ui.parts.class_form import first_form


def page() -> None:
    """Draw the page; without classes, a form to name them."""
    name = frame.annotator_name()
    if not classes.all_classes(context.db()):
        first_form()
        return
    mode = answering.chosen_by(context.db(), name)
    styles, events = ["grid/tiles.css", "annotate/annotate.css"], stored.are_some(context.db())
    mount("autopilot", styles=styles, mode=mode, events=events)
