"""Review: one image at a time, the labels that are probably missing, each with its heat map."""

from annotator.settings import REVIEW_THRESHOLD
from annotator.store.events import stored
from annotator.store.labels import counts as overview
from annotator.store.runs import runs
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import empty, frame


def page() -> None:
    """Draw the page: everything quick happens in components/review/review.js."""
    frame.annotator_name()
    if empty.shown(context.db()):
        return
    run = runs.current_run(context.db())
    mount(
        "review",
        threshold=run.threshold if run else REVIEW_THRESHOLD,
        annotators=overview.annotators(context.db()),
        events=stored.are_some(context.db()),
    )
