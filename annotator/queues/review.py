"""Which images Review shows next: where a label is probably missing, where the model doubts a decision, or where people
contradict each other.

The order of the first two is in the run's rankings; what people answered since is passed over, and whatever is handed
out is compared with the labels once more after it has been leased.
"""

from collections.abc import Collection, Iterator
from itertools import islice

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality.annotator_disagreement import AnnotatorDisagreements
from annotator.quality.model_disagreement import LikelyMistakes
from annotator.queues.by_annotator import decided_on
from annotator.records import Filter, Suggestion, Wanted
from annotator.snapshot import suggestions
from annotator.snapshot.delta import AnsweredSince, answered_since
from annotator.snapshot.predictions import Predictions, predictions, rankings_of
from annotator.snapshot.rankings import Rankings, first_below
from annotator.store import auto_accepted, cells, leases
from annotator.store.database import Database

KINDS = ("missing", "likely_mistakes", "annotator_disagreements")
SCAN = 64  # images looked at in one query
BLOCK = 1024  # of an order of rows looked at in one go
MERGED = 5000  # cells of all classes taken into one order at first


def next_to_review(db: Database, wanted: Wanted, threshold: float) -> list[tuple[int, list[Suggestion]]]:
    """The next images of a filter with their suggestions, leased to this page.

    threshold    the probability from which on a suggestion is shown when the filter does not say

    Raises AnnotatorError for an unknown kind.
    """
    only = wanted.only
    if only.kind not in KINDS:
        raise AnnotatorError(f"There is no kind of suggestions {only.kind!r}. {did_you_mean(only.kind, KINDS)}")
    leases.hold(db, wanted.holder, wanted.annotator, wanted.have)
    found = predictions(db)
    source = _source(db, found, only, threshold)
    if source is None:
        return []
    chosen: list[tuple[int, list[Suggestion]]] = []
    blocks = _of_person(db, only.by, source.images())
    for ids in _parts(_each_once(blocks, {*wanted.have, *wanted.passed}), SCAN):
        taken = leases.take(db, wanted.holder, wanted.annotator, source.still(ids), wanted.want - len(chosen))
        # Only now nobody else can answer them: what was answered a moment ago is seen here.
        gone = cells.unreadable(db, taken)
        chips = source.chips([image_id for image_id in taken if image_id not in gone])
        chosen += [(image_id, chips[image_id]) for image_id in taken if chips.get(image_id)]
        if len(chosen) >= wanted.want:
            break
    return chosen


def open_elsewhere(db: Database, wanted: Wanted, threshold: float) -> int:
    """How many images that other pages have open would be shown here, if they were free."""
    found, only = predictions(db), wanted.only
    source = _source(db, found, only, threshold)
    ids = np.unique([image_id for image_id, _ in leases.held(db, wanted.holder)]).astype(np.int64)
    if source is None or not len(ids):
        return 0
    if only.kind != "annotator_disagreements":
        ids = ids[found.rows(ids)[1]]
    for some in _of_person(db, only.by, iter([ids])):
        chips = source.chips(list(_each_once(iter([some]), wanted.passed)))
        return sum(bool(ones) for ones in chips.values())
    return 0


def _source(
    db: Database, found: Predictions | None, only: Filter, threshold: float
) -> "Missing | LikelyMistakes | AnnotatorDisagreements | None":
    """Where the images of a filter come from; None where a run is needed and there is none."""
    low = only.low if only.low is not None else (threshold if only.kind == "missing" else 0.0)
    low = float(np.float16(low))  # as the probabilities are kept: 0.7 must not leave out what is shown as 0.7
    if only.kind == "annotator_disagreements":
        return AnnotatorDisagreements(db, found, only, low)
    rankings = rankings_of(db, found) if found else None
    if found is None or rankings is None:
        return None
    return (Missing if only.kind == "missing" else LikelyMistakes)(db, found, rankings, only, low)


def front(db: Database, found: Predictions, threshold: float, count: int) -> list[int]:
    """The first images of Review as everybody sees it, without a filter and without leases."""
    rankings = rankings_of(db, found)
    if rankings is None:
        return []
    source = Missing(db, found, rankings, Filter(), float(np.float16(threshold)))
    return list(islice(_each_once(source.images(), ()), count))


class Missing:
    """Unanswered cells that are probably present."""

    def __init__(self, db: Database, found: Predictions, rankings: Rankings, only: Filter, low: float):
        self.db, self.found, self.rankings, self.only, self.low = db, found, rankings, only, low

    def images(self) -> Iterator[np.ndarray]:
        """Ids of images with an open cell in the filter's range, in blocks, likeliest first; some more than once."""
        for rows in self._rows():
            yield self.found.image_ids[rows]

    def _rows(self) -> Iterator[np.ndarray]:
        rankings, only, low, since = self.rankings, self.only, self.low, answered_since(self.db, self.found)
        if only.class_id is not None:
            for column in np.flatnonzero(self.found.class_ids == only.class_id).tolist():
                scores = rankings.scores[column]
                rows = rankings.by_class[column][_above(scores, only.high) : first_below(scores, low)]
                for some in _blocks(rows[rows >= 0]):
                    yield since.open_rows(some, column)
        elif only.high >= 1:
            # Not by the sum of an image's probabilities: early models give many images five doubtful suggestions, and a
            # sum puts just those first (docs/design.md has the figures).
            for some in _blocks(rankings.by_image[: first_below(rankings.likeliest, low)]):
                keep = some >= 0
                for place in np.flatnonzero(keep & since.touched[some]):
                    keep[place] = since.likeliest(int(some[place])) >= low
                yield some[keep]
        else:
            yield from _merged(rankings, since, low, only.high)

    def still(self, image_ids: list[int]) -> list[int]:
        """Those of the images that have something to show still: known here without looking."""
        return image_ids

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """What there is to show of these images, from the labels as they are now."""
        answered = auto_accepted.accepted_class_ids(self.db, image_ids)
        for image_id, ones in cells.answered(self.db, image_ids).items():
            answered.setdefault(image_id, set()).update(ones)
        only = self.only
        return suggestions.suggestions_of(self.found, answered, image_ids, self.low, only.high, only.class_id)


def _of_person(db: Database, annotator: str, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Those of the image ids on which this person decided; all, when it is nobody."""
    if not annotator:
        yield from blocks
        return
    theirs = decided_on(db, annotator)
    for ids in blocks:
        near = ids < len(theirs)
        near[near] = theirs[ids[near]]
        yield ids[near]


def _each_once(blocks: Iterator[np.ndarray], out: Collection[int]) -> Iterator[int]:
    """The image ids one by one, without those that are `out`."""
    seen = set(out)
    for ids in blocks:
        for image_id in ids.tolist():
            if image_id not in seen:
                seen.add(image_id)
                yield image_id


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def _merged(rankings: Rankings, since: AnsweredSince, low: float, high: float) -> Iterator[np.ndarray]:
    """Rows by their likeliest open cell in a range that has an upper end, of all classes."""
    columns = len(rankings.by_class)
    starts = [_above(scores, high) for scores in rankings.scores]
    ends = [first_below(scores, low) for scores in rankings.scores]
    most = max(1, MERGED // max(columns, 1))
    while True:
        stops = [min(end, start + most) for start, end in zip(starts, ends, strict=True)]
        rows = [
            since.open_rows(one[one >= 0], column)
            for column, one in enumerate(rankings.by_class[c, starts[c] : stops[c]] for c in range(columns))
        ]
        scores = [since.predictions.probabilities[one, column] for column, one in enumerate(rows)]
        cut = [float(rankings.scores[c, stops[c] - 1]) for c in range(columns) if starts[c] < stops[c] < ends[c]]
        every, chances = np.concatenate(rows), np.concatenate(scores).astype(np.float32)
        # Below this some class has cells that were not looked at yet, which come before these.
        keep = chances >= max(cut, default=0.0)
        yield every[keep][np.lexsort((every[keep], -chances[keep]))]
        if not cut:
            return
        most *= 8


def _above(scores: np.ndarray, high: float) -> int:
    """How many of these falling probabilities lie above the upper end."""
    return 0 if high >= 1 else first_below(scores, float(np.nextafter(np.float16(high), np.float16(2))))


def _parts(image_ids: Iterator[int], size: int) -> Iterator[list[int]]:
    while some := list(islice(image_ids, size)):
        yield some
