"""The next images of the Review page: missing labels, likely mistakes or annotator disagreements.

After leasing, images are compared with the labels again.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality.annotator_disagreement import AnnotatorDisagreements
from annotator.quality.model_disagreement import LikelyMistakes
from annotator.queues.decided_images import get_decided_mask
from annotator.records import Suggestion, SuggestionFilter, WantedImages
from annotator.snapshot import suggestions
from annotator.snapshot.rankings import find_first_below
from annotator.snapshot.run_predictions import read_predictions
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, label_cells
from annotator.store.people import assignment, blindness, leases
from annotator.store.runs.prediction_evidence import load_cell_boxes, load_score_texts

REVIEW_KINDS = ("missing", "likely_mistakes", "annotator_disagreements")
IMAGES_PER_QUERY = 64  # images read in one query
ROWS_PER_BLOCK = 1024  # ranked rows filtered in one go
MERGED_CELLS = 5000  # cells of all classes merged into one order at first


def lease_next_images(db: Database, wanted: WantedImages, threshold: float) -> list[tuple[int, list[Suggestion]]]:
    """Lease the next images of a Review filter, and return them with their suggestions.

    `threshold` is the default minimum probability of a suggestion. Raises AnnotatorError for an unknown kind.
    """
    only = wanted.only
    if only.kind not in REVIEW_KINDS:
        raise AnnotatorError(f"There is no kind of suggestions {only.kind!r}. {did_you_mean(only.kind, REVIEW_KINDS)}")
    leases.renew_images(db, wanted.holder, wanted.annotator, wanted.have)
    source = _open_source(db, wanted, threshold)
    if source is None:
        return []
    chosen: list[tuple[int, list[Suggestion]]] = []
    blocks = _filter_by_annotator(db, only.by, source.iterate_images())
    away: set[int] = set()
    if not isinstance(source, AnnotatorDisagreements):  # a disagreement is settled by anybody, whoever has the image
        aside, away = (
            assignment.load_withheld_images(db, wanted.annotator),
            assignment.load_withheld_classes(db, wanted.annotator),
        )
        blocks = (ids[~aside.get_mask(ids)] for ids in blocks)
    for ids in _split_into_parts(_iterate_unique(blocks, {*wanted.have, *wanted.passed}), IMAGES_PER_QUERY):
        hidden = set() if wanted.may_review else blindness.find_hidden_images(db, wanted.annotator, ids)
        free = [image_id for image_id in source.filter_relevant(ids) if image_id not in hidden]
        taken = leases.lease_images(db, wanted.holder, wanted.annotator, free, wanted.want - len(chosen))
        # Read after leasing: from now on nobody else can answer them.
        unreadable = label_cells.find_unaskable_images(db, taken)
        chips = _add_boxes(db, source.load_suggestions([image_id for image_id in taken if image_id not in unreadable]))
        if away:
            chips = {id_: [chip for chip in of if chip.class_id not in away] for id_, of in chips.items()}
        chosen += [(image_id, chips[image_id]) for image_id in taken if chips.get(image_id)]
        if len(chosen) >= wanted.want:
            break
    return chosen


def count_open_elsewhere(db: Database, wanted: WantedImages, threshold: float) -> int:
    """Count the images that the Review page would show if other pages had not leased them."""
    only = wanted.only
    source = _open_source(db, wanted, threshold)
    image_ids = np.unique([image_id for image_id, _ in leases.load_leases_of_others(db, wanted.holder)]).astype(
        np.int64
    )
    if source is None or not len(image_ids):
        return 0
    if not isinstance(source, AnnotatorDisagreements):
        image_ids = image_ids[~assignment.load_withheld_images(db, wanted.annotator).get_mask(image_ids)]
        image_ids = image_ids[source.predictions.find_rows(image_ids)[1]]
    (theirs,) = _filter_by_annotator(db, only.by, iter([image_ids]))
    chips = source.load_suggestions(list(_iterate_unique(iter([theirs]), wanted.passed)))
    return sum(bool(suggested) for suggested in chips.values())


def _open_source(
    db: Database, wanted: WantedImages, threshold: float
) -> "MissingLabels | LikelyMistakes | AnnotatorDisagreements | None":
    only = wanted.only
    low = only.low if only.low is not None else (threshold if only.kind == "missing" else 0.0)
    low = float(np.float16(low))  # as probabilities are stored: 0.7 must include what is shown as 0.7
    if only.kind == "annotator_disagreements":
        return AnnotatorDisagreements(db, read_predictions(db), only, low)
    snapshot = read_snapshot(db)
    if snapshot is None:
        return None
    if only.kind == "likely_mistakes":
        return LikelyMistakes(
            db, snapshot.predictions, snapshot.rankings, only, low, exclude_disputed=not wanted.may_review
        )
    return MissingLabels(db, snapshot, only, low)


def find_first_images(db: Database, snapshot: Snapshot, count: int) -> list[int]:
    """Return the first `count` image ids of the Review page without a filter, leased or not."""
    source = MissingLabels(db, snapshot, SuggestionFilter(), float(np.float16(snapshot.run.threshold)))
    return list(islice(_iterate_unique(source.iterate_images(), ()), count))


class MissingLabels:
    """A queue of the Review page: images with unanswered classes that are probably present."""

    def __init__(self, db: Database, snapshot: Snapshot, filter_: SuggestionFilter, min_probability: float):
        self.db, self.snapshot, self.filter, self.min_probability = db, snapshot, filter_, min_probability
        self.predictions = snapshot.predictions

    def iterate_images(self) -> Iterator[np.ndarray]:
        """Yield arrays of image ids (repeats possible) with unanswered cells in the filter's range, likeliest first."""
        for rows in self._iterate_rows():
            yield self.predictions.image_ids[rows]

    def _iterate_rows(self) -> Iterator[np.ndarray]:
        rankings, delta, only, low = self.snapshot.rankings, self.snapshot.delta, self.filter, self.min_probability
        if only.class_id is not None:
            for column in np.flatnonzero(self.predictions.class_ids == only.class_id).tolist():
                scores = rankings.scores[column]
                rows = rankings.by_class[column][_count_above(scores, only.high) : find_first_below(scores, low)]
                for block in _split_into_blocks(rows[rows >= 0]):
                    yield delta.select_open_rows(block, column)
        elif only.high >= 1:
            # Not by the sum of an image's probabilities: early models give many images five doubtful suggestions, and
            # a sum would put those first.
            for block in _split_into_blocks(rankings.by_image[: find_first_below(rankings.likeliest, low)]):
                keep = block >= 0
                for place in np.flatnonzero(keep & delta.changed[block]):
                    keep[place] = delta.get_max_open_probability(int(block[place])) >= low
                yield block[keep]
        else:
            yield from _merge_classes(self.snapshot, low, only.high)

    def filter_relevant(self, image_ids: list[int]) -> list[int]:
        """Return the images that still have suggestions, which are all."""
        return image_ids

    def load_suggestions(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        answered = auto_accepted.load_accepted_class_ids(self.db, image_ids)
        for image_id, class_ids in label_cells.load_answered_cells(self.db, image_ids).items():
            answered.setdefault(image_id, set()).update(class_ids)
        only = self.filter
        chips = suggestions.find_suggestions(
            self.predictions, answered, image_ids, self.min_probability, only.high, only.class_id
        )
        shown = [chip for of_image in chips.values() for chip in of_image]
        models = iter(load_score_texts(self.db, [chip.image_id for chip in shown], [chip.class_id for chip in shown]))
        return {id_: [replace(chip, models=next(models)) for chip in of_image] for id_, of_image in chips.items()}


def _add_boxes(db: Database, chips: dict[int, list[Suggestion]]) -> dict[int, list[Suggestion]]:
    shown = [chip for of_image in chips.values() for chip in of_image]
    seen = iter(load_cell_boxes(db, [chip.image_id for chip in shown], [chip.class_id for chip in shown]))
    return {id_: [replace(chip, boxes=next(seen)) for chip in of_image] for id_, of_image in chips.items()}


def _filter_by_annotator(db: Database, annotator: str, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    if not annotator:
        yield from blocks
        return
    decided = get_decided_mask(db, annotator)
    for image_ids in blocks:
        keep = image_ids < len(decided)
        keep[keep] = decided[image_ids[keep]]
        yield image_ids[keep]


def _iterate_unique(blocks: Iterator[np.ndarray], unavailable: Collection[int]) -> Iterator[int]:
    seen = set(unavailable)
    for ids in blocks:
        for image_id in ids.tolist():
            if image_id not in seen:
                seen.add(image_id)
                yield image_id


def _split_into_blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        yield rows[start : start + ROWS_PER_BLOCK]


def _merge_classes(snapshot: Snapshot, low: float, high: float) -> Iterator[np.ndarray]:
    """Yield blocks of image rows, over all classes, with unanswered cells from `low` to `high`, likeliest first."""
    rankings, probabilities = snapshot.rankings, snapshot.predictions.probabilities
    columns = len(rankings.by_class)
    starts = [_count_above(scores, high) for scores in rankings.scores]
    ends = [find_first_below(scores, low) for scores in rankings.scores]
    most = max(1, MERGED_CELLS // max(columns, 1))
    while True:
        stops = [min(end, start + most) for start, end in zip(starts, ends, strict=True)]
        ranked = [rankings.by_class[c, starts[c] : stops[c]] for c in range(columns)]
        open_rows = [snapshot.delta.select_open_rows(rows[rows >= 0], column) for column, rows in enumerate(ranked)]
        scores = [probabilities[rows, column] for column, rows in enumerate(open_rows)]
        cut = [float(rankings.scores[c, stops[c] - 1]) for c in range(columns) if starts[c] < stops[c] < ends[c]]
        merged, chances = np.concatenate(open_rows), np.concatenate(scores).astype(np.float32)
        # Below the cut some class has cells that were not read yet and come before these.
        keep = chances >= max(cut, default=0.0)
        yield merged[keep][np.lexsort((merged[keep], -chances[keep]))]
        if not cut:
            return
        most *= 8


def _count_above(scores: np.ndarray, high: float) -> int:
    return 0 if high >= 1 else find_first_below(scores, float(np.nextafter(np.float16(high), np.float16(2))))


def _split_into_parts(image_ids: Iterator[int], size: int) -> Iterator[list[int]]:
    while part := list(islice(image_ids, size)):
        yield part
