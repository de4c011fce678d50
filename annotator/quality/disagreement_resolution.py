"""Resolution of conflicting answers, by majority or by estimate, for exports and training."""

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
    """Return the state to use for each (image id, class id) with conflicting answers, None to leave it out.

    Args:
        resolution: KEEP_LABEL returns {}. BY_ESTIMATE needs MIN_SURE_PROBABILITY given all first answers (Dawid
            and Skene 1979), which two annotators rarely reach.

    Raises:
        AnnotatorError: For an unknown resolution.
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
    """Estimate the state to train on for each (image id, class id) with conflicting answers.

    Needs MIN_PEOPLE annotators, and omits unsure results. In simulations this trains better than leaving cells out
    (docs/team.md). Cells contradicted after resolution are omitted, because resolvers' errors are not estimated. For
    one thread.
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
