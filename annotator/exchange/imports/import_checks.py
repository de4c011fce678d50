"""Reasons to reject a readable import: ambiguous meaning or no content."""

from collections.abc import Sequence

from annotator.errors import combine_problems
from annotator.exchange.reading.interpretation_messages import ADD_SCORES_COMMAND, describe_question
from annotator.exchange.reading.reading_options import Interpretation
from annotator.humanize import format_count
from annotator.store.imports.staged_cells import ImportPreview


def check_no_open_questions(name: str, doubts: Sequence[Interpretation]) -> None:
    """Raise AnnotatorError for open questions about a source, with the options that answer them."""
    if doubts:
        start = f"{name} can be read in more than one way, and nothing was stored. Say what it means:"
        raise combine_problems(start, [describe_question(one) for one in doubts])


def explain_missing_answers(name: str, preview: ImportPreview) -> str:
    """Return why an import is rejected that has no answer at all."""
    reasons = []
    if preview.images_unknown.count:
        reasons.append(
            f"{format_count(preview.images_unknown.count, 'image')} not in the project "
            f"({'; '.join(preview.images_unknown.examples[:3])})"
        )
    if preview.scores:
        scores = format_count(preview.scores, "score")
        reasons.append(f"it holds {scores} of a model, which are no answers ({ADD_SCORES_COMMAND} adds them)")
    if preview.filled:
        reasons.append(f"{format_count(preview.filled, 'answer')} were filled in by a model or assumed")
    if preview.left_out:
        reasons.append(f"{format_count(preview.left_out, 'answer')} are left out with their image or class")
    why = "; ".join(reasons) or "no cell of it holds an answer"
    return (
        f"{name} has rows, and not one answer would be stored: {why}. Nothing was changed. If only its images or facts "
        "are wanted: --labels none (a folder), or --class-columns none (a table)."
    )
