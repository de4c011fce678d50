"""The Speed test page: two minutes of tasks that measure annotation times."""

from annotator.store.classes import classes
from annotator.ui.access import served_project
from annotator.ui.shared import empty_notice
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.class_form import draw_first_form
from annotator.ui.shared.components import mount_component


def page() -> None:
    """Draw the Speed test page, or the form that adds classes."""
    require_annotator_name()
    if not classes.load_active_classes(served_project.db()):
        draw_first_form()
        return
    if empty_notice.draw_if_empty(served_project.db()):
        return
    mount_component("speed_test", styles=["grid/tiles.css", "annotate/annotate.css", "autopilot/autopilot.css"])
