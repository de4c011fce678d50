"""Speed test: two minutes of short tasks that tell how long each part of the work takes a person.

Everything quick happens in components/speed_test/speed_test.js.
"""

from annotator.store.classes import classes
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import empty, frame
from annotator.ui.parts.class_form import first_form


def page() -> None:
    """Draw the page; without classes, a form to name them."""
    frame.annotator_name()
    if not classes.all_classes(context.db()):
        first_form()
        return
    if empty.shown(context.db()):
        return
    mount("speed_test", styles=["grid/tiles.css", "annotate/annotate.css", "autopilot/autopilot.css"])
