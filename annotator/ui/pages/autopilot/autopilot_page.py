"""The Autopilot page: the most useful actions for a person's time."""

from annotator.store.classes import classes
from annotator.store.events import stored_events
from annotator.store.labels import answer_mode
from annotator.ui.access import served_project
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.class_form import draw_first_form
from annotator.ui.shared.components import mount_component


def page() -> None:
    """Draw the Autopilot page, or a form to add classes if there are none."""
    name = require_annotator_name()
    if not classes.load_active_classes(served_project.db()):
        draw_first_form()
        return
    mode = answer_mode.get_annotator_mode(served_project.db(), name)
    styles, events = (
        ["grid/tiles.css", "annotate/annotate.css"],
        stored_events.has_multi_image_events(served_project.db()),
    )
    mount_component("autopilot", styles=styles, mode=mode, events=events)
