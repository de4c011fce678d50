"""The state of cells on which people differ and which nobody has settled: the majority's, or an estimate."""

from collections import Counter
from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality.first_answers import FirstAnswers
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.database.versions import get_class_version
from annotator.store.labels import disagreed_cells

KEEP_LABEL, LEAVE_OUT, BY_MAJORITY, BY_ESTIMATE = "label", "leave-out", "majority", "estimate"
RESOLUTIONS = {
    KEEP_LABEL: "the label as it stands",
    LEAVE_OUT: "leave these pairs out",
    BY_MAJORITY: "what most of them say; leave out a draw",
    BY_ESTIMATE: "what is probable by how often each person errs; leave out what stays in doubt",
}
MIN_SURE_PROBABILITY = 0.9  # probability from which an estimate is taken
MIN_PEOPLE = 3  # people who must have answered a cell before a training uses its estimate


def resolve_cells(db: Database, resolution: str) -> dict[tuple[int, int], int | None]:
    """Return the state of each cell (image id, class id) on which people differ; None: leave it out. {} for KEEP_LABEL.

    Args:
        db: The project's database.
        resolution: One of RESOLUTIONS. BY_ESTIMATE: the probability of presence given everybody's first answer (Dawid
            and Skene 1979, spmll/statistics/error_rates.py), where it is MIN_SURE_PROBABILITY one way or the other. Of
            two people alone it is only known that they differ, so little of what they differ on is sure.

    Raises:
        AnnotatorError: For an unknown way.
    """
    if resolution not in RESOLUTIONS:
        raise AnnotatorError(
            f"Pairs on which people differ cannot be exported by {resolution!r}. "
            f"{did_you_mean(resolution, RESOLUTIONS)}"
        )
    if resolution == KEEP_LABEL:
        return {}
    cells = [(image_id, class_id) for image_id, class_id in disagreed_cells.load_newest_cells(db, -1).tolist()]
    if resolution == LEAVE_OUT or not cells:
        return dict.fromkeys(cells)
    return _resolve_by_majority(db, cells) if resolution == BY_MAJORITY else _resolve_by_estimate(db, cells)


def _resolve_by_majority(db: Database, cells: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int | None]:
    voices = disagreed_cells.load_answers_by_cell(db, list({image_id for image_id, _ in cells}))
    found: dict[tuple[int, int], int | None] = {}
    for image_id, class_id in cells:
        said = Counter(voice.state for voice in voices[image_id].get(class_id, []))
        balance = said[PRESENT] - said[ABSENT]
        found[image_id, class_id] = (PRESENT if balance > 0 else ABSENT) if balance else None
    return found


def _resolve_by_estimate(db: Database, cells: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int | None]:
    known = FirstAnswers(_load_class_ids(db))
    known.refresh(db)
    return {cell: _decide_state(known.get_probability(*cell)) for cell in cells}


def estimate_consensus_states(db: Database) -> dict[tuple[int, int], int]:
    """Return the states of disputed cells (image id, class id), used as training labels.

    These are the cells on which MIN_PEOPLE people or more differ and for which the estimate is MIN_SURE_PROBABILITY
    one way or the other.
    A cell that somebody has settled and others contradict again is left out: who settles is not among the people whose
    errors are estimated.

    In simulations this teaches better than leaving disputed cells out (docs/team.md). With fewer people little would
    be sure, and where no cell has so many answers, nothing is computed. First answers are kept in memory: for one
    thread.
    """
    with db.reading():
        cells = disagreed_cells.load_unsettled_cells(db, MIN_PEOPLE).tolist()
        if not cells:
            return {}
        known = db.caches.get("first answers", get_class_version(db), lambda: FirstAnswers(_load_class_ids(db)), size=1)
        known.refresh(db)
    states = {
        (image_id, class_id): _decide_state(known.get_probability(image_id, class_id))
        for image_id, class_id in cells
        if known.count_people(image_id, class_id) >= MIN_PEOPLE
    }
    return {cell: state for cell, state in states.items() if state is not None}


def _load_class_ids(db: Database) -> list[int]:
    return [class_.id for class_ in classes.load_active_classes(db)]


def _decide_state(probability: float) -> int | None:
    return (
        PRESENT if probability >= MIN_SURE_PROBABILITY else ABSENT if probability <= 1 - MIN_SURE_PROBABILITY else None
    )
