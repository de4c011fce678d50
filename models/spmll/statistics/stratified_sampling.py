"""Stratified random samples of a class's cells for an audit, by model scores.

They are unbiased for any scores. Better scores only narrow the intervals.
"""

from dataclasses import dataclass

import numpy as np

MAX_SCORE_STRATA = 5  # strata of unknown cells at most: codes 0 .. 4, from unlikely to likely
ACCEPTED_PRESENT, ACCEPTED_ABSENT = 10, 11
LOOK_PRESENT, LOOK_ABSENT, CONFIRM_PRESENT = 20, 21, 22
RELABEL_STRATA = (LOOK_PRESENT, LOOK_ABSENT, CONFIRM_PRESENT)
"""Labeled cells that are asked again: random ones of both states, and present ones of rare classes."""
NO_STRATUM = 255

UNKNOWN_CELL = 0
CELLS_PER_STRATUM = 8  # sampled cells for each stratum; with fewer, fewer strata are made
MIN_CELLS_PER_STRATUM = 3  # sampled cells of a stratum, at least
# share of the sample that is allocated by the size of the strata alone, for uninformative scores
SIZE_ALLOCATION_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """A stratified random sample for one class.

    Attributes:
        strata: (N,) uint8, stratum of each cell, or NO_STRATUM.
        rows: (n,), sampled cells in random order of asking.
    """

    strata: np.ndarray
    rows: np.ndarray


def draw_sample(kinds: np.ndarray, scores: np.ndarray, cells: int, rng: np.random.Generator) -> DrawnSample:
    """Sample a class's undecided cells.

    Strata have equal summed sqrt(p (1 - p)) (Dalenius & Hodges 1959). Half is allocated by size, half by size
    times standard deviation (Neyman 1934), at least MIN_CELLS_PER_STRATUM each.

    Args:
        kinds: (N,): UNKNOWN_CELL, ACCEPTED_PRESENT, ACCEPTED_ABSENT, others excluded.
        scores: (N,), probabilities or nan.
        cells: Maximum size.
    """
    strata = np.full(len(kinds), NO_STRATUM, np.uint8)
    for kind in (ACCEPTED_PRESENT, ACCEPTED_ABSENT):
        strata[kinds == kind] = kind
    unknown = np.flatnonzero(kinds == UNKNOWN_CELL)
    spread = np.sqrt(_estimate_variance(scores))
    strata[unknown] = _cut_strata(scores[unknown], spread[unknown], min(cells // CELLS_PER_STRATUM, MAX_SCORE_STRATA))
    codes, sizes = np.unique(strata[strata != NO_STRATUM], return_counts=True)
    if not len(codes):
        return DrawnSample(strata, np.zeros(0, np.int64))
    sums = np.bincount(strata, spread, minlength=256)[codes]
    wanted = SIZE_ALLOCATION_SHARE * sizes / sizes.sum() + (1 - SIZE_ALLOCATION_SHARE) * sums / max(sums.sum(), 1e-12)
    shares = allocate(min(cells, int(sizes.sum())), wanted, sizes, MIN_CELLS_PER_STRATUM)
    rows = [
        rng.choice(np.flatnonzero(strata == code), share, replace=False)
        for code, share in zip(codes, shares, strict=True)
    ]
    return DrawnSample(strata, rng.permutation(np.concatenate(rows)))


def allocate(total: int, proportions: np.ndarray, upper_bounds: np.ndarray, lower_bound: int = 0) -> np.ndarray:
    """Return integers (K,) with a given sum, proportional within bounds.

    Args:
        proportions: (K,), any scale.
        upper_bounds: (K,).
        lower_bound: As far as possible.
    """
    shares = np.minimum(upper_bounds, min(lower_bound, total // max(len(upper_bounds), 1))).astype(np.int64)
    while (left := total - int(shares.sum())) > 0:
        room = shares < upper_bounds
        ideal = np.where(room, np.maximum(proportions, 1e-12), 0.0)
        ideal = ideal / ideal.sum() * total
        lacking = np.where(room, np.maximum(ideal - shares, 1e-9), 0.0)
        added = np.minimum((lacking / lacking.sum() * left).astype(np.int64), upper_bounds - shares)
        if not added.any():
            added = np.zeros_like(shares)
            added[np.argsort(-lacking, kind="stable")[: min(left, int(room.sum()))]] = 1
        shares += added
    return shares


def find_usable_cells(places: np.ndarray, answered: np.ndarray, in_audit: np.ndarray) -> np.ndarray:
    """Return which sampled cells of a stratum count while answers are missing, (n,) bool.

    Either all, or those up to the last audit answer before the first gap, a random sample. Ordinary work answers likely
    cells first, which would bias the estimate.

    Args:
        places: (n,), random order.
        answered: (n,) bool, decided since sampling.
        in_audit: (n,) bool, decided in the audit.
    """
    order = np.argsort(places, kind="stable")
    whole = answered[order]
    end = len(order) if whole.all() else int(np.argmin(whole))
    if end < len(order):
        asked = np.flatnonzero(in_audit[order][:end])
        end = int(asked[-1]) + 1 if len(asked) else 0
    result = np.zeros(len(order), bool)
    result[order[:end]] = True
    return result


def _estimate_variance(scores: np.ndarray) -> np.ndarray:
    """Return the variances p (1 - p) of slightly shrunk probabilities."""
    p = np.where(np.isnan(scores), 0.5, scores.astype(np.float64))
    p = 0.95 * p + 0.05 * (p.mean() if len(p) else 0.5)
    return np.maximum(p * (1 - p), 1e-5)


def _cut_strata(scores: np.ndarray, spread: np.ndarray, bins: int) -> np.ndarray:
    if bins < 2 or not len(scores) or np.isnan(scores).all():
        return np.zeros(len(scores), np.uint8)
    order = np.argsort(np.nan_to_num(scores.astype(np.float64)), kind="stable")
    grown = np.cumsum(spread[order])
    result = np.empty(len(scores), np.uint8)
    result[order] = np.minimum((grown / grown[-1] * bins).astype(np.int64), bins - 1)
    return result
