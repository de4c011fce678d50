"""The rankings stored with a model, so that pages need not read all probabilities.

They rank cells (image and class) unanswered at the model's last decision. Readers remove later answers (delta.py).
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from annotator.indexing import find_positions
from annotator.records import ABSENT, PRESENT
from annotator.snapshot import merged_ranking
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, label_cells
from spmll.rows import Rows

MAX_RANKED_PER_CLASS = 50_000  # cells kept of each class, and images
MAX_RANKED_CELLS = 10_000_000  # kept of all classes: 60 MB on the disk
MAX_DISAGREEMENTS = 10_000
MIN_DOUBTFUL_DIFFERENCE = 0.5  # difference of answer and probability from which on an answer is a likely mistake
MAX_CELLS_RANKED_BY_PAGE = 20_000_000  # cells up to which a page computes the rankings of a run that has none
FEW_CLASSES_FACTOR = 4  # while at most one class in this many has changed, only the changed classes are counted again
CELLS_PER_BLOCK = 4_000_000  # read at once: 8 MB, and several times as much while they are ranked


@dataclass(frozen=True, eq=False)
class Rankings:
    """The rankings of one model. Rows and columns are those of its probabilities (N, C)."""

    # (C, K) int32, rows of each class's unanswered cells by falling probability, -1 after the last. Beyond K cells,
    # the last fifth is an even sample. K is `compute_ranked_per_class`
    by_class: np.ndarray
    # (C, K) float16, their probabilities
    scores: np.ndarray
    # (K,) int32, rows of images by their most probable unanswered cell
    by_image: np.ndarray
    # (K,) float16, probability of that cell
    likeliest: np.ndarray
    # (C,) float64, sum of the probabilities of unanswered cells
    expected: np.ndarray
    # (D, 2) int32, row and column of D answered cells by falling |label - probability|
    disagreements: np.ndarray
    # (C, C) int32, number of images where both classes are present
    cooccurrence: np.ndarray


def build(db: Database, newest: int, image_ids: np.ndarray, class_ids: np.ndarray, probabilities: Rows) -> Rankings:
    """Compute the rankings of a model.

    Args:
        newest: Last decision to include.
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64, ascending.
        probabilities: (N, C) float16, nan without a model.
    """
    return build_ranker(db, newest, image_ids, class_ids, probabilities).build_rankings()


def build_ranker(
    db: Database, newest: int, image_ids: np.ndarray, class_ids: np.ndarray, probabilities: Rows
) -> "Ranker":
    ranker = Ranker(image_ids, class_ids, probabilities)
    ranker.rank(db, newest, range(len(class_ids)))
    return ranker


class Ranker:
    """A builder of `Rankings`, which can rank again only the columns that changed.

    `probabilities` (N, C) float16 may be replaced between rankings.
    """

    def __init__(self, image_ids: np.ndarray, class_ids: np.ndarray, probabilities: Rows):
        self._image_ids, self._class_ids, self.probabilities = image_ids, class_ids, probabilities
        rows, columns = probabilities.shape
        self._depth = compute_ranked_per_class(rows, columns)
        self._by_class = np.full((columns, self._depth), -1, np.int32)
        self._scores = np.zeros((columns, self._depth), np.float16)
        self._expected = np.zeros(columns)
        no_rows = np.zeros(0, np.int32)
        self._closed = [no_rows] * columns
        self._present = [no_rows] * columns
        self._doubts = [np.zeros((0, 3))] * columns
        self._together = np.zeros((columns, columns), np.int32)
        self._likeliest: _LikeliestCells | None = None

    def rank(self, db: Database, newest: int, columns: Collection[int]) -> None:
        """Rank these columns again, with answers up to the decision `newest`."""
        columns = list(columns)
        self._read_answers(db, newest, columns)
        counts = np.zeros((len(columns), merged_ranking.KEY_COUNT), np.int64)
        fits = len(columns) * len(self._image_ids) <= CELLS_PER_BLOCK
        blocks = list(self._iterate_blocks(columns)) if fits else None
        for _, keys in blocks or self._iterate_blocks(columns):
            for place, of_column in enumerate(keys):
                counts[place] += merged_ranking.count_keys(of_column)
        ranked = [merged_ranking.MergedRanking(of_column, self._depth) for of_column in counts]
        likeliest = self._likeliest if FEW_CLASSES_FACTOR * len(columns) <= len(self._class_ids) else None
        lost = [np.zeros(0, np.int64)]
        for first, keys in blocks or self._iterate_blocks(columns):
            for ranking, of_column in zip(ranked, keys, strict=True):
                ranking.add_block(of_column, first)
            if likeliest is not None and columns:
                lost.append(likeliest.update(first, columns, keys))
        self._likeliest = likeliest
        if likeliest is not None:
            self._find_likeliest(likeliest, np.concatenate(lost))
        for column, ranking in zip(columns, ranked, strict=True):
            self._by_class[column], self._scores[column] = ranking.rows, ranking.scores
            self._expected[column] = ranking.expected

    def resume(self, db: Database, newest: int, stored: Rankings) -> None:
        """Continue from stored rankings that include answers up to `newest`. Rank again only if their depth differs."""
        columns = range(len(self._class_ids))
        if stored.by_class.shape != self._by_class.shape:
            return self.rank(db, newest, columns)
        self._read_answers(db, newest, columns)
        self._by_class[:], self._scores[:], self._expected[:] = stored.by_class, stored.scores, stored.expected
        self._get_best_keys()  # before the first update, which would wait for it
        return None

    def _read_answers(self, db: Database, newest: int, columns: Collection[int]) -> None:
        for column in columns:
            places, states = _load_answers(db, int(self._class_ids[column]), newest, self._image_ids)
            # Auto-accepted cells are closed like answered ones; they are no answers, though.
            accepted = _load_auto_accepted_rows(db, int(self._class_ids[column]), self._image_ids)
            closed, present = np.union1d(places, accepted), places[states == PRESENT]
            self._closed[column], self._present[column] = closed.astype(np.int32), present.astype(np.int32)
            self._doubts[column] = _find_doubtful_cells(column, places, states, self.probabilities[places, column])
        self._update_cooccurrence(columns)

    def build_rankings(self) -> Rankings:
        """Return the current rankings. The next `rank` changes their arrays in place."""
        best = self._get_best_keys()
        images = merged_ranking.MergedRanking(merged_ranking.count_keys(best), self._depth)
        images.add_block(best, 0)
        return Rankings(
            self._by_class,
            self._scores,
            images.rows,
            images.scores,
            self._expected,
            _merge_doubtful_cells(self._doubts),
            self._together.copy(),
        )

    def _get_best_keys(self) -> np.ndarray:
        """Return the key of the most probable unanswered cell per image, (N,) uint16."""
        if self._likeliest is None:
            self._likeliest = _LikeliestCells.empty(len(self._image_ids))
            self._find_likeliest(self._likeliest, slice(None))
        return self._likeliest.keys

    def _find_likeliest(self, likeliest: "_LikeliestCells", images: np.ndarray | slice) -> None:
        wanted = np.arange(len(self._image_ids))[images]
        places = np.full(len(self._image_ids), -1, np.int32)
        rows = max(CELLS_PER_BLOCK // max(len(self._class_ids), 1), 1)
        for start in range(0, len(wanted), rows):
            some = wanted[start : start + rows]
            whole = len(wanted) == len(self._image_ids)
            # Read image by image, as they are stored; _blocks would transpose them.
            block = self.probabilities[slice(start, start + rows) if whole else some]
            keys = merged_ranking.to_keys(np.ascontiguousarray(block))
            places[some] = np.arange(len(some), dtype=np.int32)
            for column, closed in enumerate(self._closed):
                if whole:
                    begin, end = np.searchsorted(closed, [start, start + rows])
                    at = closed[begin:end] - start
                else:
                    at = places[closed]
                    at = at[at >= 0]
                keys[at, column] = merged_ranking.CLOSED_KEY
            places[some] = -1
            likeliest.keys[some] = keys.min(1, initial=merged_ranking.CLOSED_KEY)
            likeliest.columns[some] = keys.argmin(1) if keys.shape[1] else 0

    def _update_cooccurrence(self, columns: Collection[int]) -> None:
        if FEW_CLASSES_FACTOR * len(columns) > len(self._present):
            self._together = _count_cooccurrence(self._present)
            return
        is_present = np.zeros(len(self._image_ids), bool)
        for column in columns:
            is_present[self._present[column]] = True
            both = [np.count_nonzero(is_present[other]) for other in self._present]
            self._together[column], self._together[:, column] = both, both
            is_present[self._present[column]] = False

    def _iterate_blocks(self, columns: list[int]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, keys (c, n)) of these columns in blocks of n rows, with answered cells closed."""
        rows = max(CELLS_PER_BLOCK // max(len(columns), 1), 1)
        for first in range(0, len(self._image_ids), rows):
            some = slice(first, first + rows)
            all_of_them = len(columns) == len(self._class_ids)
            block = self.probabilities[some] if all_of_them else self.probabilities[some, columns]
            keys = merged_ranking.to_keys(np.array(block.T, order="C"))
            for place, column in enumerate(columns):
                begin, end = np.searchsorted(self._closed[column], [first, first + rows])
                keys[place, self._closed[column][begin:end] - first] = merged_ranking.CLOSED_KEY
            yield first, keys


class _LikeliestCells:
    """The most probable unanswered cell of each image, kept between rankings."""

    def __init__(self, keys: np.ndarray, columns: np.ndarray):
        self.keys, self.columns = keys, columns

    @classmethod
    def empty(cls, images: int) -> "_LikeliestCells":
        return cls(np.full(images, merged_ranking.CLOSED_KEY), np.zeros(images, np.int32))

    def update(self, first: int, columns: list[int], keys: np.ndarray) -> np.ndarray:
        """Apply new keys (c, n) of changed columns, and return the rows whose best cell must be searched again."""
        rows = slice(first, first + keys.shape[1])
        before, of = self.keys[rows], self.columns[rows]
        is_changed = np.zeros(int(self.columns.max(initial=0)) + max(columns) + 2, bool)
        is_changed[columns] = True
        was_theirs = is_changed[of]
        best, best_of = keys.min(0), np.asarray(columns, np.int32)[keys.argmin(0)]
        lost = was_theirs & (best > before)
        better = (best < before) | (was_theirs & ~lost)
        before[better], of[better] = best[better], best_of[better]
        return first + np.flatnonzero(lost)


def cache_ranker(db: Database, run_id: int, ranker: Ranker) -> None:
    """Keep the ranker of a trained model in memory for the model's next version."""
    db.caches.get("ranker of a training", run_id, lambda: [ranker], 1)


def pop_ranker(db: Database, run_id: int) -> Ranker | None:
    """Return the ranker that `cache_ranker` kept for this model, and forget it."""
    kept = db.caches.get("ranker of a training", run_id, _make_empty_list, 1)
    return kept.pop() if kept else None


def _make_empty_list() -> list[Ranker]:
    return []


def select_columns(
    db: Database,
    rankings: Rankings,
    columns: np.ndarray,
    image_ids: np.ndarray,
    class_ids: np.ndarray,
    probabilities: Rows,
) -> Rankings:
    """Return the rankings of some classes (c,), derived from those of all classes.

    Images are reordered by their best unanswered cell. Unranked images stay out.

    Args:
        columns: (c,), ascending.
        image_ids: (N,) int64.
        probabilities: (N, c).
    """
    rows = rankings.by_image[rankings.by_image >= 0]
    chances = np.nan_to_num(np.array(probabilities[rows], np.float16))
    order = np.argsort(image_ids[rows])
    for column, class_id in enumerate(class_ids.tolist()):
        closed, _ = auto_accepted.load_class_cells(db, class_id)
        places, known = find_positions(closed, image_ids[rows], order)
        chances[places[known], column] = 0
    for place, answered in enumerate(_load_answered_classes(db, image_ids[rows].tolist())):
        chances[place, np.isin(class_ids, answered)] = 0
    best = chances.max(1, initial=0)
    order = np.lexsort((rows, -best.astype(np.float32)))[: np.count_nonzero(best)]
    by_image, likeliest = np.full(len(rankings.by_image), -1, np.int32), np.zeros(len(rankings.by_image), np.float16)
    by_image[: len(order)], likeliest[: len(order)] = rows[order], best[order]
    doubted = rankings.disagreements[np.isin(rankings.disagreements[:, 1], columns)]
    return Rankings(
        rankings.by_class[columns],
        rankings.scores[columns],
        by_image,
        likeliest,
        rankings.expected[columns],
        np.stack([doubted[:, 0], np.searchsorted(columns, doubted[:, 1])], 1).astype(np.int32),
        rankings.cooccurrence[np.ix_(columns, columns)],
    )


def _load_answered_classes(db: Database, image_ids: list[int]) -> list[list[int]]:
    answered = label_cells.load_answered_cells(db, image_ids)
    return [list(answered.get(image_id, ())) for image_id in image_ids]


def save(folder: Path, rankings: Rankings) -> None:
    """Write rankings to a folder, synced to disk. Raises DiskFull."""
    names = [field.name for field in fields(Rankings)]
    for name in names:
        save_array(folder / f"{name}.npy", getattr(rankings, name), sync=name == names[-1])


_ARRAY_FORMATS: dict[str, tuple[type[np.generic], int]] = {
    "by_class": (np.int32, 2),
    "scores": (np.float16, 2),
    "by_image": (np.int32, 1),
    "likeliest": (np.float16, 1),
    "expected": (np.float64, 1),
    "disagreements": (np.int32, 2),
    "cooccurrence": (np.int32, 2),
}


def load(folder: Path) -> Rankings | None:
    """Return the rankings of a folder, memory-mapped, or None if missing or damaged."""
    try:
        # As plain arrays, which are mapped all the same: indexing a numpy.memmap takes twice as long.
        arrays = {name: np.asarray(open_array(folder / f"{name}.npy", *kind)) for name, kind in _ARRAY_FORMATS.items()}
        found = Rankings(**arrays)
        classes = len(found.by_class)
        fits = found.scores.shape == found.by_class.shape and found.likeliest.shape == found.by_image.shape
        fits = fits and found.expected.shape == (classes,) and found.cooccurrence.shape == (classes, classes)
        return found if fits and found.disagreements.shape[1] == 2 else None
    except (OSError, ValueError, EOFError):
        return None


def compute_ranked_per_class(images: int, classes: int) -> int:
    """Return K, the number of ranked cells per class."""
    return min(images, MAX_RANKED_PER_CLASS, max(1000, MAX_RANKED_CELLS // max(classes, 1)))


def get_gapless_length(rankings: Rankings) -> int:
    """Count the ranks in `by_class` without gaps, which are those before the sampled last fifth."""
    depth = rankings.by_class.shape[1]
    return depth - depth // merged_ranking.SAMPLED_ONE_IN


def find_first_below(scores: np.ndarray, low: float) -> int:
    """Return the first position in falling probabilities (K,) with a value below `low`, or K."""
    # Not numpy.searchsorted: it would copy the mapped array.
    return bisect_right(range(len(scores)), -low, key=lambda place: -float(scores[place]))


def _load_answers(db: Database, class_id: int, newest: int, image_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ids, states = label_cells.load_class_answers(db, class_id, newest)
    order = np.argsort(ids)
    places, known = find_positions(ids[order], image_ids)
    return places[known], states[order][known]


def _load_auto_accepted_rows(db: Database, class_id: int, image_ids: np.ndarray) -> np.ndarray:
    places, known = find_positions(auto_accepted.load_class_cells(db, class_id)[0], image_ids)
    return places[known]


def _find_doubtful_cells(column: int, places: np.ndarray, states: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Return up to MAX_DISAGREEMENTS (|label - probability|, row, column) of a class, largest first."""
    sure = (states == PRESENT) | (states == ABSENT)
    rows, answers = places[sure], (states[sure] == PRESENT).astype(np.float64)
    apart = np.abs(chances[sure].astype(np.float64) - answers)
    doubted = np.flatnonzero(apart >= MIN_DOUBTFUL_DIFFERENCE)  # never nan
    doubted = doubted[np.argsort(-apart[doubted], kind="stable")][:MAX_DISAGREEMENTS]
    return np.stack([apart[doubted], rows[doubted], np.full(len(doubted), column)], 1)


def _merge_doubtful_cells(doubts: list[np.ndarray]) -> np.ndarray:
    doubted = np.concatenate([np.zeros((0, 3)), *doubts])
    if len(doubted) > MAX_DISAGREEMENTS:  # sorting all of them would take most of an update's time
        doubted = doubted[doubted[:, 0] >= np.partition(doubted[:, 0], -MAX_DISAGREEMENTS)[-MAX_DISAGREEMENTS]]
    order = np.lexsort((doubted[:, 2], doubted[:, 1], -doubted[:, 0]))[:MAX_DISAGREEMENTS]
    return doubted[order, 1:].astype(np.int32)


def _count_cooccurrence(present: list[np.ndarray]) -> np.ndarray:
    count = np.zeros((len(present), len(present)), np.int32)
    if not present:
        return count
    rows = np.concatenate(present)
    columns = np.repeat(np.arange(len(present)), [len(seen) for seen in present])
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    np.add.at(count, (columns, columns), 1)
    # The labels of an image are adjacent: count each with the next, then with the one after that, and so on.
    for apart in range(1, len(present)):
        same = rows[apart:] == rows[:-apart]
        if not same.any():
            break
        first, second = columns[:-apart][same], columns[apart:][same]
        np.add.at(count, (first, second), 1)
        np.add.at(count, (second, first), 1)
    return count
