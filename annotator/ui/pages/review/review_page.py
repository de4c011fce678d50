"""The Review page: probably missing labels per image, with heat maps."""

from annotator.settings import DEFAULT_REVIEW_THRESHOLD
from annotator.store.events import stored_events
from annotator.store.labels import project_counts
from annotator.store.runs import runs
from annotator.ui.access import served_project
from annotator.ui.shared import empty_notice
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.components import mount_component


def page() -> None:
    require_annotator_name()
    if empty_notice.draw_if_empty(served_project.db()):
        return
    run = runs.load_current_run(served_project.db())
    mount_component(
        "review",
        threshold=run.threshold if run else DEFAULT_REVIEW_THRESHOLD,
        annotators=project_counts.list_annotators(served_project.db()),
        events=stored_events.has_multi_image_events(served_project.db()),
    )
