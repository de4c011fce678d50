"""The next images of Review: missing labels, likely mistakes, or annotator disagreements.

Missing labels and likely mistakes follow the run's rankings, without the cells answered since. Images are compared
with the labels again after they have been leased.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality.annotator_disagreement import AnnotatorDisagreements
from annotator.quality.model_disagreement import LikelyMistakes
from annotator.queues.by_annotator import decided_on
from annotator.records import Filter, Suggestion, Wanted
from annotator.snapshot import suggestions
from annotator.snapshot.predictions import read_predictions
from annotator.snapshot.rankings import first_below
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, cells
from annotator.store.people import assignment, blindness, leases
from annotator.store.runs.prediction_evidence import boxes, in_words

KINDS = ("missing", "likely_mistakes", "annotator_disagreements")
SCAN = 64  # images read in one query
BLOCK = 1024  # ranked rows filtered in one go
MERGED = 5000  # cells of all classes merged into one order at first


def next_to_review(db: Database, wanted: Wanted, threshold: float) -> list[tuple[int, list[Suggestion]]]:
    """Return the next images of a filter with their suggestions, leased to this page.

    Args:
        db: The project's database.
        wanted: The request of the page, with the filter.
        threshold: The lowest probability of a suggestion where the filter names none.

    Raises:
        AnnotatorError: For an unknown kind.
    """
    only = wanted.only
    if only.kind not in KINDS:
        raise AnnotatorError(f"There is no kind of suggestions {only.kind!r}. {did_you_mean(only.kind, KINDS)}")
    leases.hold(db, wanted.holder, wanted.annotator, wanted.have)
    source = _source(db, wanted, threshold)
    if source is None:
        return []
    chosen: list[tuple[int, list[Suggestion]]] = []
    blocks = _of_person(db, only.by, source.images())
    away: set[int] = set()
    if not isinstance(source, AnnotatorDisagreements):  # a disagreement is settled by anybody, whoever has the image
        aside, away = assignment.assigned_to_others(db, wanted.annotator), assignment.classes_away(db, wanted.annotator)
        blocks = (ids[~aside.among(ids)] for ids in blocks)
    for ids in _parts(_each_once(blocks, {*wanted.have, *wanted.passed}), SCAN):
        hidden = set() if wanted.may_review else blindness.hidden_from(db, wanted.annotator, ids)
        free = [image_id for image_id in source.still_relevant(ids) if image_id not in hidden]
        taken = leases.take(db, wanted.holder, wanted.annotator, free, wanted.want - len(chosen))
        # Read after leasing: from now on nobody else can answer them.
        unreadable = cells.unreadable(db, taken)
        chips = _with_boxes(db, source.chips([image_id for image_id in taken if image_id not in unreadable]))
        if away:
            chips = {id_: [chip for chip in of if chip.class_id not in away] for id_, of in chips.items()}
        chosen += [(image_id, chips[image_id]) for image_id in taken if chips.get(image_id)]
        if len(chosen) >= wanted.want:
            break
    return chosen


def open_elsewhere(db: Database, wanted: Wanted, threshold: float) -> int:
    """Return how many of the images that other pages have leased would be shown here if they were free."""
    only = wanted.only
    source = _source(db, wanted, threshold)
    image_ids = np.unique([image_id for image_id, _ in leases.leased_by_others(db, wanted.holder)]).astype(np.int64)
    if source is None or not len(image_ids):
        return 0
    if not isinstance(source, AnnotatorDisagreements):
        image_ids = image_ids[~assignment.assigned_to_others(db, wanted.annotator).among(image_ids)]
        image_ids = image_ids[source.predictions.rows(image_ids)[1]]
    (theirs,) = _of_person(db, only.by, iter([image_ids]))
    chips = source.chips(list(_each_once(iter([theirs]), wanted.passed)))
    return sum(bool(suggested) for suggested in chips.values())


def _source(
    db: Database, wanted: Wanted, threshold: float
) -> "Missing | LikelyMistakes | AnnotatorDisagreements | None":
    """Return the source of a filter's images; None where it needs a run and there is none."""
    only = wanted.only
    low = only.low if only.low is not None else (threshold if only.kind == "missing" else 0.0)
    low = float(np.float16(low))  # as probabilities are stored: 0.7 must include what is shown as 0.7
    if only.kind == "annotator_disagreements":
        return AnnotatorDisagreements(db, read_predictions(db), only, low)
    snapshot = read_snapshot(db)
    if snapshot is None:
        return None
    if only.kind == "likely_mistakes":
        return LikelyMistakes(db, snapshot.predictions, snapshot.rankings, only, low, settled=not wanted.may_review)
    return Missing(db, snapshot, only, low)


def first_images(db: Database, snapshot: Snapshot, count: int) -> list[int]:
    """Return the ids of the first images of Review without a filter, leased or not."""
    source = Missing(db, snapshot, Filter(), float(np.float16(snapshot.run.threshold)))
    return list(islice(_each_once(source.images(), ()), count))


class Missing:
    """The unanswered cells that are probably present."""

    def __init__(self, db: Database, snapshot: Snapshot, only: Filter, low: float):
        self.db, self.snapshot, self.only, self.low = db, snapshot, only, low
        self.predictions = snapshot.predictions

    def images(self) -> Iterator[np.ndarray]:
        """Yield ids of images with an open cell in the filter's range, likeliest first, in blocks; ids may repeat."""
        for rows in self._rows():
            yield self.predictions.image_ids[rows]

    def _rows(self) -> Iterator[np.ndarray]:
        rankings, delta, only, low = self.snapshot.rankings, self.snapshot.delta, self.only, self.low
        if only.class_id is not None:
            for column in np.flatnonzero(self.predictions.class_ids == only.class_id).tolist():
                scores = rankings.scores[column]
                rows = rankings.by_class[column][_above(scores, only.high) : first_below(scores, low)]
                for block in _blocks(rows[rows >= 0]):
                    yield delta.open_rows(block, column)
        elif only.high >= 1:
            # Not by the sum of an image's probabilities: early models give many images five doubtful suggestions, and
            # a sum would put those first.
            for block in _blocks(rankings.by_image[: first_below(rankings.likeliest, low)]):
                keep = block >= 0
                for place in np.flatnonzero(keep & delta.changed[block]):
                    keep[place] = delta.likeliest(int(block[place])) >= low
                yield block[keep]
        else:
            yield from _merged(self.snapshot, low, only.high)

    def still_relevant(self, image_ids: list[int]) -> list[int]:
        """Return the images that still have suggestions to show; here all of them."""
        return image_ids

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """Return the suggestions of each image, by image id, from the labels as they are now."""
        answered = auto_accepted.accepted_class_ids(self.db, image_ids)
        for image_id, class_ids in cells.answered(self.db, image_ids).items():
            answered.setdefault(image_id, set()).update(class_ids)
        only = self.only
        chips = suggestions.suggestions_of(self.predictions, answered, image_ids, self.low, only.high, only.class_id)
        shown = [chip for of_image in chips.values() for chip in of_image]
        models = iter(in_words(self.db, [chip.image_id for chip in shown], [chip.class_id for chip in shown]))
        return {id_: [replace(chip, models=next(models)) for chip in of_image] for id_, of_image in chips.items()}


def _with_boxes(db: Database, chips: dict[int, list[Suggestion]]) -> dict[int, list[Suggestion]]:
    shown = [chip for of_image in chips.values() for chip in of_image]
    seen = iter(boxes(db, [chip.image_id for chip in shown], [chip.class_id for chip in shown]))
    return {id_: [replace(chip, boxes=next(seen)) for chip in of_image] for id_, of_image in chips.items()}


def _of_person(db: Database, annotator: str, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield, block by block, the image ids on which this person decided; all of them for "" as the name."""
    if not annotator:
        yield from blocks
        return
    decided = decided_on(db, annotator)
    for image_ids in blocks:
        keep = image_ids < len(decided)
        keep[keep] = decided[image_ids[keep]]
        yield image_ids[keep]


def _each_once(blocks: Iterator[np.ndarray], out: Collection[int]) -> Iterator[int]:
    """Yield the image ids one by one, each once, without those in `out`."""
    seen = set(out)
    for ids in blocks:
        for image_id in ids.tolist():
            if image_id not in seen:
                seen.add(image_id)
                yield image_id


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def _merged(snapshot: Snapshot, low: float, high: float) -> Iterator[np.ndarray]:
    """Yield rows in blocks by their likeliest open cell from `low` to `high`, of all classes."""
    rankings, probabilities = snapshot.rankings, snapshot.predictions.probabilities
    columns = len(rankings.by_class)
    starts = [_above(scores, high) for scores in rankings.scores]
    ends = [first_below(scores, low) for scores in rankings.scores]
    most = max(1, MERGED // max(columns, 1))
    while True:
        stops = [min(end, start + most) for start, end in zip(starts, ends, strict=True)]
        ranked = [rankings.by_class[c, starts[c] : stops[c]] for c in range(columns)]
        open_rows = [snapshot.delta.open_rows(rows[rows >= 0], column) for column, rows in enumerate(ranked)]
        scores = [probabilities[rows, column] for column, rows in enumerate(open_rows)]
        cut = [float(rankings.scores[c, stops[c] - 1]) for c in range(columns) if starts[c] < stops[c] < ends[c]]
        merged, chances = np.concatenate(open_rows), np.concatenate(scores).astype(np.float32)
        # Below the cut some class has cells that were not read yet and come before these.
        keep = chances >= max(cut, default=0.0)
        yield merged[keep][np.lexsort((merged[keep], -chances[keep]))]
        if not cut:
            return
        most *= 8


def _above(scores: np.ndarray, high: float) -> int:
    """Return how many of these falling probabilities lie above `high`."""
    return 0 if high >= 1 else first_below(scores, float(np.nextafter(np.float16(high), np.float16(2))))


def _parts(image_ids: Iterator[int], size: int) -> Iterator[list[int]]:
    while part := list(islice(image_ids, size)):
        yield part
