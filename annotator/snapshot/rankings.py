"""What a run leaves beside its probabilities, so that a page never reads all of them: who is likeliest, and where.

Made by the worker before it publishes, class by class; the page maps the files into memory and reads their beginnings.
They say what was open when the run looked at the decisions (`Run.last_decision_id`); what people answered since is
taken out by `annotator.snapshot.delta`.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from annotator.indexing import positions
from annotator.records import ABSENT, PRESENT
from annotator.store import auto_accepted, cells
from annotator.store.arrays import open_array, save_array
from annotator.store.database import Database

RANKED = 50_000  # cells kept of each class, and images
RANKED_CELLS = 10_000_000  # kept of all classes: 60 MB on the disk
SPREAD = 5  # one in five of them is not among the likeliest, but one of many further down: every probability is there
DISAGREEMENTS = 10_000
DOUBTFUL = 0.5  # a decision is contradicted from this difference on
SMALL = 20_000_000  # cells of a run without these files up to which a page works them out itself
COLUMNS = 16  # read at once
ANSWERED = np.uint16(0xFFFF)


@dataclass(frozen=True, eq=False)
class Rankings:
    """One run's rankings; rows and columns are those of its probabilities.

    by_class         (C, K) int32 rows of the unanswered cells of each class, likeliest first, then by image; -1 after
                     the last. Where a class has more than K, the last fifth is an even sample of all the others
    scores           (C, K) float16, their probabilities; 0 after the last
    by_image         (K,) int32 rows of the images whose likeliest unanswered cell is likeliest, in the same way
    likeliest        (K,) float16, the probability of that cell
    expected         (C,) float64, the sum of the probabilities of all unanswered cells
    disagreements    (D, 2) int32 row and column of cells that people and model see differently, the most so first
    cooccurrence     (C, C) int32, images on which people saw both classes; in the diagonal, the one
    """

    by_class: np.ndarray
    scores: np.ndarray
    by_image: np.ndarray
    likeliest: np.ndarray
    expected: np.ndarray
    disagreements: np.ndarray
    cooccurrence: np.ndarray


def build(
    db: Database, newest: int, image_ids: np.ndarray, class_ids: np.ndarray, probabilities: np.ndarray
) -> Rankings:
    """The rankings of a run.

    newest           the last decision it has seen; later ones count as if they had not been
    image_ids        (N,) int64, ascending
    class_ids        (C,) int64, ascending
    probabilities    (N, C) float16 in [0, 1], nan where there is no model
    """
    ranker = Ranker(image_ids, class_ids, probabilities)
    ranker.look(db, newest, range(len(class_ids)))
    return ranker.rankings()


class Ranker:
    """Rankings in the making: after an update only the columns that changed are looked at again.

    image_ids, class_ids    as `build` takes them
    probabilities           (N, C) float16, read whenever something is ranked: whoever holds them may change them
    """

    def __init__(self, image_ids: np.ndarray, class_ids: np.ndarray, probabilities: np.ndarray):
        self._image_ids, self._class_ids, self._probabilities = image_ids, class_ids, probabilities
        rows, columns = probabilities.shape
        self._kept = kept_of(rows, columns)
        self._by_class = np.full((columns, self._kept), -1, np.int32)
        self._scores = np.zeros((columns, self._kept), np.float16)
        self._expected = np.zeros(columns)
        nothing = np.zeros(0, np.int64)
        self._answered = [nothing] * columns
        self._present = [nothing] * columns
        self._doubts = [np.zeros((0, 3))] * columns

    def look(self, db: Database, newest: int, columns: Collection[int]) -> None:
        """Rank these columns, with the answers up to the decision `newest`."""
        for column, chances in _columns(self._probabilities, columns):
            places, states = _answers(db, int(self._class_ids[column]), newest, self._image_ids)
            keys = _keys(chances)
            # What is filled in automatically is offered as little as what people answered; it teaches nothing, though.
            closed = np.union1d(places, _filled_in(db, int(self._class_ids[column]), self._image_ids))
            keys[closed] = ANSWERED
            self._by_class[column], self._scores[column] = _ranked(keys, chances, self._kept)
            self._expected[column] = chances[keys != ANSWERED].sum(dtype=np.float64)
            self._answered[column], self._present[column] = closed, places[states == PRESENT]
            self._doubts[column] = _doubts(column, places, states, chances)

    def rankings(self) -> Rankings:
        """As they are now; the arrays of single classes change with the next look."""
        best = np.full(len(self._image_ids), ANSWERED)
        for column, chances in _columns(self._probabilities, range(len(self._class_ids))):
            keys = _keys(chances)
            keys[self._answered[column]] = ANSWERED
            np.minimum(best, keys, out=best)
        by_image, likeliest = _ranked(best, _likeliest(best), self._kept)
        return Rankings(
            self._by_class,
            self._scores,
            by_image,
            likeliest,
            self._expected,
            _worst(self._doubts),
            _together(self._present),
        )


def save(folder: Path, rankings: Rankings) -> None:
    """Write them beside the run's probabilities; afterwards the disk has all names of that folder. Raises DiskFull."""
    names = [field.name for field in fields(Rankings)]
    for name in names:
        save_array(folder / f"{name}.npy", getattr(rankings, name), sync=name == names[-1])


def load(folder: Path) -> Rankings | None:
    """Mapped from the disk; None for a run of an older version, which left none, and for damaged files."""
    try:
        # As plain arrays, which are mapped all the same: looking into a numpy.memmap takes twice as long.
        return Rankings(*(np.asarray(open_array(folder / f"{field.name}.npy")) for field in fields(Rankings)))
    except (OSError, ValueError, EOFError):
        return None


def kept_of(images: int, classes: int) -> int:
    """How many cells of each class are ranked: K."""
    return min(images, RANKED, max(1000, RANKED_CELLS // max(classes, 1)))


def whole(rankings: Rankings) -> int:
    """How many of the likeliest cells of a class are in `by_class` without a gap."""
    kept = rankings.by_class.shape[1]
    return kept - kept // SPREAD


def first_below(scores: np.ndarray, low: float) -> int:
    """Where in falling probabilities (K,) the first one below `low` stands; K when there is none."""
    # Not numpy's search: it would copy what is mapped from the disk.
    return bisect_right(range(len(scores)), -low, key=lambda place: -float(scores[place]))


def _columns(probabilities: np.ndarray, wanted: Collection[int]) -> Iterator[tuple[int, np.ndarray]]:
    # Some columns at once: a single one of an (N, C) array costs as much to read as sixteen.
    some = list(wanted)
    for start in range(0, len(some), COLUMNS):
        part = some[start : start + COLUMNS]
        yield from zip(part, np.ascontiguousarray(probabilities[:, part].T), strict=True)


def _answers(db: Database, class_id: int, newest: int, image_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and states of what people said of a class, without images that the run does not know; rows ascending."""
    ids, states = cells.answers(db, class_id, newest)
    order = np.argsort(ids)
    places, known = positions(ids[order], image_ids)
    return places[known], states[order][known]


def _filled_in(db: Database, class_id: int, image_ids: np.ndarray) -> np.ndarray:
    """Rows of a class's cells that a model has filled in under a guarantee."""
    places, known = positions(auto_accepted.accepted_of(db, class_id)[0], image_ids)
    return places[known]


def _keys(chances: np.ndarray) -> np.ndarray:
    """(n,) uint16 that are smaller where the probability is larger: sorting these takes a tenth of the time."""
    # The bits of a positive float, read as a whole number, are in the order of the floats.
    keys = np.uint16(0x3C00) - np.abs(chances).view(np.uint16)
    keys[np.isnan(chances)] = ANSWERED
    return keys


def _likeliest(keys: np.ndarray) -> np.ndarray:
    return np.where(keys == ANSWERED, 0, np.uint16(0x3C00) - keys).astype(np.uint16).view(np.float16)


def _ranked(keys: np.ndarray, chances: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """(kept,) int32 rows, likeliest first and equal ones by row, -1 after the last; and their probabilities."""
    order = np.argsort(keys, kind="stable")[: np.count_nonzero(keys != ANSWERED)]
    if len(order) > kept:
        first = kept - kept // SPREAD
        spread = np.linspace(first, len(order) - 1, kept - first).astype(np.int64)
        order = np.concatenate([order[:first], order[spread]])
    rows, scores = np.full(kept, -1, np.int32), np.zeros(kept, np.float16)
    rows[: len(order)], scores[: len(order)] = order, chances[order]
    return rows, scores


def _doubts(column: int, places: np.ndarray, states: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """(n, 3) of one class: difference, row, column where the model is at least as sure of the opposite as not."""
    sure = (states == PRESENT) | (states == ABSENT)
    rows, truth = places[sure], (states[sure] == PRESENT).astype(np.float64)
    apart = np.abs(chances[rows].astype(np.float64) - truth)
    some = np.flatnonzero(apart >= DOUBTFUL)  # never of nan
    some = some[np.argsort(-apart[some], kind="stable")][:DISAGREEMENTS]
    return np.stack([apart[some], rows[some], np.full(len(some), column)], 1)


def _worst(doubts: list[np.ndarray]) -> np.ndarray:
    every = np.concatenate([np.zeros((0, 3)), *doubts])
    order = np.lexsort((every[:, 2], every[:, 1], -every[:, 0]))[:DISAGREEMENTS]
    return every[order, 1:].astype(np.int32)


def _together(present: list[np.ndarray]) -> np.ndarray:
    """How often two classes were seen on one image, from the rows of each class."""
    count = np.zeros((len(present), len(present)), np.int32)
    if not present:
        return count
    rows = np.concatenate(present)
    columns = np.repeat(np.arange(len(present)), [len(one) for one in present])
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    np.add.at(count, (columns, columns), 1)
    # The labels of an image stand side by side: first each with the next, then with the one after that, ...
    for apart in range(1, len(present)):
        same = rows[apart:] == rows[:-apart]
        if not same.any():
            break
        first, second = columns[:-apart][same], columns[apart:][same]
        np.add.at(count, (first, second), 1)
        np.add.at(count, (second, first), 1)
    return count
