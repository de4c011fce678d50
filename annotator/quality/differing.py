"""What to take for true where people differ and nobody has settled it: most of them, or an estimate."""

from collections import Counter
from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality import people
from annotator.records import ABSENT, PRESENT
from annotator.store import annotator_disagreement
from annotator.store.database import Database
from models.statistics.error_rates import error_rates

LABEL, LEAVE_OUT, BY_MAJORITY, BY_ESTIMATE = "label", "leave-out", "majority", "estimate"
WAYS = {
    LABEL: "the label as it stands",
    LEAVE_OUT: "leave these pairs out",
    BY_MAJORITY: "what most of them say; leave out a draw",
    BY_ESTIMATE: "what is probable by how often each person errs; leave out what stays in doubt",
}
SURE = 0.9  # probability from which an estimate is taken


def states(db: Database, way: str) -> dict[tuple[int, int], int | None]:
    """The state of each cell (image id, class id) on which people differ; None where it is left out. {} for LABEL.

    way    one of WAYS. BY_ESTIMATE: the probability of presence given everybody's first answer (Dawid and Skene 1979,
           models/statistics/error_rates.py), where it is SURE one way or the other. Of two people alone it is only
           known that they differ, so little of what they differ on is sure

    Raises AnnotatorError for an unknown way.
    """
    if way not in WAYS:
        raise AnnotatorError(f"Pairs on which people differ cannot be exported by {way!r}. {did_you_mean(way, WAYS)}")
    if way == LABEL:
        return {}
    cells = [(image_id, class_id) for image_id, class_id in annotator_disagreement.newest(db, -1).tolist()]
    if way == LEAVE_OUT or not cells:
        return dict.fromkeys(cells)
    return _by_majority(db, cells) if way == BY_MAJORITY else _by_estimate(db, cells)


def _by_majority(db: Database, cells: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int | None]:
    voices = annotator_disagreement.voices(db, list({image_id for image_id, _ in cells}))
    found: dict[tuple[int, int], int | None] = {}
    for image_id, class_id in cells:
        said = Counter(voice.state for voice in voices[image_id].get(class_id, []))
        balance = said[PRESENT] - said[ABSENT]
        found[image_id, class_id] = (PRESENT if balance > 0 else ABSENT) if balance else None
    return found


def _by_estimate(db: Database, cells: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int | None]:
    tally = people.tally(db)
    probability = error_rates(tally.patterns, len(tally.number), len(tally.column)).probability
    image_ids = list({image_id for image_id, _ in cells})
    said = dict(zip(image_ids, annotator_disagreement.first_answers(db, image_ids), strict=True))
    found: dict[tuple[int, int], int | None] = {}
    for image_id, class_id in cells:
        pattern = tally.pattern(class_id, said[image_id].get(class_id, {}))
        chance = probability.get(pattern, 0.5) if pattern else 0.5
        found[image_id, class_id] = PRESENT if chance >= SURE else ABSENT if chance <= 1 - SURE else None
    return found
