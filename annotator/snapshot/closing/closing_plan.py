"""The plan to the end of a project: what closes its unanswered cells, in how many seconds.

Autopilot scores actions by the part of this plan that they save, and pages show its seconds as the time left. A class
is closed in grids that grow with its answers. Single cells are closed on their image.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from annotator.snapshot import rankings
from annotator.snapshot.closing.account import BAND_BOUNDS, BAND_COUNT, Account, load_account
from annotator.snapshot.run_predictions import MAX_CACHED_VERSIONS
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.snapshot.time_model import TIME_PARTS, TimeModel, count_parts
from annotator.store.database.database import Database
from annotator.store.labels import blind_visibility, project_counts
from spmll.statistics.time_regression import PartTimes

GRID_SIZES = (12, 24, 48, 96)  # tiles of a grid, unless the person's grid has room for fewer
PLANNED_TILES = 48  # tiles of the largest grid that is planned: some are larger, but likely cells come in smaller ones
NEW_CLASS_TILES = 24  # tiles of the largest grid of a class of which people have answered fewer cells
# standard deviation of the log of seconds that the plan takes, with known times, over those it states
PLAN_ERROR = 0.12
RANGE_DEVIATIONS = 1.645  # of a range that holds in 90 %
POSITIVES_ERROR = 0.5  # relative standard deviation of the expected positives of one class


@dataclass(frozen=True, eq=False)
class ClosingPlan:
    """The cheapest known way to close the unanswered cells of C classes, in parts of the time model."""

    class_ids: np.ndarray
    # open_cells, answered: (C,) cells without and with an answer
    open_cells: np.ndarray
    answered: np.ndarray
    # positives, changes: (C,) expected positives and changed answers among open cells
    positives: np.ndarray
    changes: np.ndarray
    # tiles of the plan's largest grid
    max_tiles: int

    @cached_property
    def cells(self) -> int:
        return int(self.open_cells.sum())

    @cached_property
    def grids(self) -> np.ndarray:
        """Return the grids per class, (C,). A single cell is closed on its image, without one."""
        return np.where(self.open_cells == 1, 0, count_grids(self.open_cells, self.answered, self.max_tiles))

    @cached_property
    def parts(self) -> np.ndarray:
        """Return how often each of TIME_PARTS occurs in the plan, (P,)."""
        single = int((self.open_cells == 1).sum())
        grids, parts = int(self.grids.sum()), count_parts("grid", self.cells - single, float(self.changes.sum()))
        parts[[TIME_PARTS.index(part) for part in ("begin", "submit")]] = grids
        return parts + single * count_parts("image", 1, 0.0)

    def estimate_seconds(self, times: TimeModel) -> float:
        return float(self.parts @ [getattr(times, part) for part in TIME_PARTS])

    def estimate_range(self, times: PartTimes) -> tuple[float, float, float]:
        """Return (low, middle, high) seconds: a 90% range from the times, the positives and the plan's own error."""
        parts = self.parts
        middle = float(parts @ times.middle)
        if not middle:
            return 0.0, 0.0, 0.0
        of_times = float(np.log(np.maximum(times.draws @ parts, 1e-9)).std()) if len(times.draws) else 0.0
        variance = self.positives + (POSITIVES_ERROR * self.positives) ** 2
        of_positives = np.sqrt(float(variance.sum())) * times.middle[TIME_PARTS.index("change")] / middle
        spread = np.exp(RANGE_DEVIATIONS * np.sqrt(of_times**2 + of_positives**2 + PLAN_ERROR**2))
        return middle / spread, middle, middle * spread

    def estimate_saving(self, class_id: int, cells: int, changes: float, times: TimeModel) -> float:
        """Return the seconds that the plan gets shorter by closing this many more cells of a class."""
        place = self._places.get(class_id)
        if place is None:
            return 0.0
        open_, answered = int(self.open_cells[place]), int(self.answered[place])
        counts = np.array([open_, max(0, open_ - cells)])
        grids = count_grids(counts, np.array([answered, answered + cells]), self.max_tiles)
        saved = (times.begin + times.submit) * float(grids[0] - grids[1])
        return saved + cells * times.tile + changes * times.change

    def estimate_image_saving(self, class_ids: Sequence[int], changes: float, times: TimeModel) -> float:
        """Return the seconds that the plan gets shorter by closing one cell of each of these classes.

        Each counts its tile, and the part of its class's grids that falls on one cell, or a single cell its image.
        """
        places = [self._places[class_id] for class_id in class_ids if class_id in self._places]
        grids = float((self.grids[places] / np.maximum(self.open_cells[places], 1)).sum())
        single = int((self.open_cells[places] == 1).sum())
        saved = (times.begin + times.submit) * grids + (len(places) - single) * times.tile + changes * times.change
        return saved + single * times.estimate_image_seconds(1, 0.0)

    def estimate_yield(self, times: TimeModel) -> float:
        """Return the positives per second that the plan expects, up to the end."""
        return float(self.positives.sum()) / max(self.estimate_seconds(times), 1.0)

    def count_answers(self, class_id: int) -> int:
        """Count the answered cells of a class."""
        place = self._places.get(class_id)
        return 0 if place is None else int(self.answered[place])

    @cached_property
    def open_share(self) -> float:
        """Return the fraction of all cells that are unanswered."""
        return self.cells / max(1, self.cells + int(self.answered.sum()))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {class_id: place for place, class_id in enumerate(self.class_ids.tolist())}


def count_grids(open_cells: np.ndarray, answered: np.ndarray, max_tiles: int = PLANNED_TILES) -> np.ndarray:
    """Return the grids that close `open_cells` (C,), each at most as large as the answers so far or NEW_CLASS_TILES."""
    left, known, grids = open_cells.astype(np.int64), answered.astype(np.int64), np.zeros(len(open_cells), np.int64)
    while True:
        size = np.minimum(max_tiles, np.maximum(NEW_CLASS_TILES, known))
        grows = (left > 0) & (size < max_tiles)
        if not grows.any():
            return grids + -(-left // max_tiles)
        step = np.where(grows, np.minimum(size, left), 0)
        left, known, grids = left - step, known + step, grids + grows


def build_plan(
    class_ids: np.ndarray,
    open_cells: np.ndarray,
    answered: np.ndarray,
    band_cells: np.ndarray,
    band_positives: np.ndarray,
    max_tiles: int | None = None,
) -> ClosingPlan:
    """Return the plan of C classes.

    Args:
        class_ids, open_cells, answered: (C,).
        band_cells, band_positives: (C, B), open cells and their corrected expected positives per probability band.
    """
    positives = np.minimum(band_positives, band_cells)
    # Cells of the last band are shown as present at the start, the others as absent.
    changes = positives[:, :-1].sum(1) + (band_cells - positives)[:, -1]
    tiles = PLANNED_TILES if max_tiles is None else min(max_tiles, PLANNED_TILES)
    return ClosingPlan(class_ids, open_cells, answered, positives.sum(1), changes, max(tiles, 1))


def load_plan(
    db: Database,
    snapshot: Snapshot | None = None,
    account: Account | None = None,
    max_tiles: int | None = None,
    open_cells: int | None = None,
) -> ClosingPlan:
    """Return the plan of a project.

    Args:
        snapshot, account: None reads the newest.
        open_cells: Open cells of all classes, if not every image counts. The classes are scaled to this sum.
    """
    snapshot = read_snapshot(db) if snapshot is None else snapshot
    account = load_account(db) if account is None else account
    counts = project_counts.count_labels_by_class(db)
    open_of = project_counts.count_open_cells_by_class(db)
    class_ids = np.array(list(counts), np.int64)
    open_ = np.array([open_of[class_id] for class_id in counts], np.int64)
    if open_cells is not None and open_cells < open_.sum():
        open_ = np.floor(open_ * (open_cells / open_.sum()) + 0.5).astype(np.int64)
    answered = np.array([sum(states) for states in counts.values()], np.int64)
    rates = estimate_class_rates(counts, lambda class_id: False)
    cells, positives = np.zeros((2, len(class_ids), BAND_COUNT))
    cells[:, 0], positives[:, 0] = open_, open_ * np.array([rates[class_id] for class_id in counts])
    if snapshot is not None:
        known = [snapshot.delta.find_column(class_id) for class_id in class_ids.tolist()]
        rows = np.array([row for row, column in enumerate(known) if column is not None], np.intp)
        columns = np.array([column for column in known if column is not None], np.intp)
        cells[rows], promised = _split_into_bands(db, snapshot, columns, open_[rows])
        positives[rows] = promised * account.compute_factors(class_ids[rows].tolist())
    return build_plan(class_ids, open_, answered, cells, positives, max_tiles)


def estimate_class_rates(
    counts: Mapping[int, tuple[int, int, int]], has_model: Callable[[int], bool], left_out: Collection[int] = ()
) -> dict[int, float]:
    """Return the expected share of open cells that are present, for each class without a model.

    After a present and n other answers it is (a + 0.5) / (a + n + NEW_CLASS_TILES), close to the posterior mean under a
    Beta prior of shape 1/2 (Jeffreys).

    Args:
        counts: Class id -> (present, absent, unsure) answers.
        left_out: Classes marked absent everywhere.
    """
    return {
        class_id: (present + 0.5) / (present + absent + NEW_CLASS_TILES)
        for class_id, (present, absent, _) in counts.items()
        if class_id not in left_out and not has_model(class_id)
    }


def _split_into_bands(
    db: Database, snapshot: Snapshot, columns: np.ndarray, open_cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the open cells and their summed probabilities per class and band, (c, B) each.

    Answers since the model version are taken from the likeliest cells.
    """
    version = (snapshot.run.id, snapshot.run.version, *snapshot.predictions.class_ids.tolist())
    counts, sums = db.caches.get(
        "probability bands", version, lambda: _sum_bands(snapshot.rankings), MAX_CACHED_VERSIONS
    )
    counts, sums = counts[columns], sums[columns]
    missing = np.maximum(counts.sum(1) - open_cells, 0.0)  # answered since
    above = np.cumsum(counts[:, ::-1], 1)[:, ::-1] - counts
    kept = np.clip(counts - np.maximum(missing[:, None] - above, 0.0), 0.0, counts)
    sums = sums * kept / np.maximum(counts, 1.0)
    kept[:, 0] = open_cells - kept[:, 1:].sum(1)  # the ranking may hold a sample of the unlikely cells only
    if not blind_visibility.can_see_all(db):  # the answers since are not this person's to know
        return np.maximum(kept, 0.0), sums
    left = np.maximum(snapshot.rankings.expected[columns] - snapshot.delta.answered_probability[columns], 0.0)
    return np.maximum(kept, 0.0), sums * (left / np.maximum(sums.sum(1), 1e-9))[:, None]


def _sum_bands(ranked: rankings.Rankings) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells and summed probabilities per class and band at the model version, (C, B) each."""
    counts, sums = np.zeros((2, len(ranked.scores), BAND_COUNT))
    for column, scores in enumerate(ranked.scores):
        ends = [rankings.find_first_below(scores, float(bound)) for bound in BAND_BOUNDS[::-1]]
        ends = [0, *ends, int(np.count_nonzero(ranked.by_class[column] >= 0))]
        for place, (start, end) in enumerate(pairwise(ends)):
            counts[column, BAND_COUNT - 1 - place] = max(0, end - start)
            sums[column, BAND_COUNT - 1 - place] = float(scores[start:end].sum(dtype=np.float64))
        sums[column, 0] = max(0.0, float(ranked.expected[column]) - sums[column, 1:].sum())
    return counts, sums
