"""Why an import is refused although its source was read: its meaning is not clear, or it would bring nothing."""

from collections.abc import Sequence

from annotator.errors import several
from annotator.exchange.reading.in_words import ADDS_SCORES, doubt_in_words
from annotator.exchange.reading.reading import Decided
from annotator.shares import counted
from annotator.store.imports.staged_cells import Preview


def refuse_doubts(name: str, doubts: Sequence[Decided]) -> None:
    """Raise AnnotatorError, with the options that settle them, if there are questions about the meaning of a source."""
    if doubts:
        start = f"{name} can be read in more than one way, and nothing was stored. Say what it means:"
        raise several(start, [doubt_in_words(one) for one in doubts])


def no_answers_in_words(name: str, preview: Preview) -> str:
    """Return why an import is refused that would store no answer of a source with rows."""
    reasons = []
    if preview.images_unknown.count:
        reasons.append(
            f"{counted(preview.images_unknown.count, 'image')} not in the project "
            f"({'; '.join(preview.images_unknown.examples[:3])})"
        )
    if preview.scores:
        scores = counted(preview.scores, "score")
        reasons.append(f"it holds {scores} of a model, which are no answers ({ADDS_SCORES} adds them)")
    if preview.filled:
        reasons.append(f"{counted(preview.filled, 'answer')} were filled in by a model or assumed")
    if preview.left_out:
        reasons.append(f"{counted(preview.left_out, 'answer')} are left out with their image or class")
    why = "; ".join(reasons) or "no cell of it holds an answer"
    return (
        f"{name} has rows, and not one answer would be stored: {why}. Nothing was changed. If only its images or facts "
        "are wanted: --labels none (a folder), or --class-columns none (a table)."
    )
