"""Review: one image at a time, the labels that are probably missing, each with its heat map."""

from annotator.settings import REVIEW_THRESHOLD
from annotator.store import classes, overview, runs
from annotator.ui import context, frame
from annotator.ui.components import component


def page() -> None:
    """The page: everything quick happens in components/review/review.js."""
    name = frame.annotator_name()
    run = runs.current_run(context.db())
    known = classes.all_classes(context.db())
    component("review")(
        data={
            "token": frame.token(),
            "annotator": name,
            "project": context.tokens().project,
            "threshold": run.threshold if run else REVIEW_THRESHOLD,
            "classes": [{"id": one.id, "name": one.name} for one in known],
            "annotators": overview.annotators(context.db()),
        },
        key="review",
        on_expired_change=lambda: None,
    )
