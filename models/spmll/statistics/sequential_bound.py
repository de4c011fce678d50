"""Anytime-valid upper bounds of wrong cells, while a random sample grows.

Repeated 95% intervals fail at some check far more often. Here "w cells or more are wrong" is tested by a bet,
whose capital exceeds 20 times the stake with probability at most 1/20 (Ville 1939, Waudby-Smith & Ramdas,
NeurIPS 2020 and JRSS B 2024).
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

CONFIDENCE = 0.95
CANDIDATE_THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Thresholds of the probability above which cells may be auto-accepted, fixed before any answer is seen."""
SAMPLE_RESERVE = 1.3  # size of a sample, relative to the smallest one that suffices when it has no mistake
POSSIBLE_PRECISIONS = (0.995, *(percent / 100 for percent in range(99, 50, -1)))
"""Precisions that can be guaranteed instead of one that cannot, the highest first."""
BETS = ((0.0, 0.5), (0.2, 0.25), (0.5, 0.15), (0.8, 0.1))
"""(share of the null hypothesis's wrong cells that a bet expects, stake). The first bet gains most from a sample
without a mistake, and loses everything at the first mistake."""


@dataclass(frozen=True, eq=False)
class StratifiedSample:
    """A stratified random sample of one class's cells.

    Attributes:
        scores: (N,), of all cells, constant since sampling.
        strata: (N,).
        rows: (n,), sampled cells that count, in random order per stratum.
        wrong: (n,) bool, mistakes among them.
    """

    scores: np.ndarray
    strata: np.ndarray
    rows: np.ndarray
    wrong: np.ndarray


def bound_wrong_cells(wrong: np.ndarray, population: int, confidence: float = CONFIDENCE) -> int:
    """Return an upper bound of the number of wrong cells, valid at all sample sizes at once.

    Args:
        wrong: (n,) bool, a simple random sample without replacement, in drawn order.
        population: Number of cells N >= n, else ValueError.
        confidence: In (0, 1).
    """
    if len(wrong) > population:
        raise ValueError(f"A sample of {len(wrong)} cells cannot come from a population of {population}.")
    low, high = int(wrong.sum()), population - int((~wrong).sum())
    while low < high:  # the evidence against "w or more" grows with w
        middle = (low + high + 1) // 2
        if _compute_log_evidence(wrong, population, middle) >= -np.log(1 - confidence):
            high = middle - 1
        else:
            low = middle
    return low


@lru_cache(maxsize=4096)
def count_needed_answers(population: int, precision: float, confidence: float = CONFIDENCE) -> int:
    """Return the smallest sample that proves this precision of the other cells if it has no mistake, else N.

    Args:
        population: Number of cells, N.
        precision: Smallest share of correct cells outside the sample.
    """
    for drawn in range(0, population, min(max(population // 200, 1), 10)):
        if bound_wrong_cells(np.zeros(drawn, bool), population, confidence) <= _count_allowed_errors(
            population - drawn, precision
        ):
            return drawn
        if drawn > 400 / (1 - precision):  # never needed, however large the population
            break
    return population


def find_possible_precision(population: int, share: float) -> float | None:
    """Return the highest of POSSIBLE_PRECISIONS that a sample of this share of the population can show, or None."""
    # The sample shrinks with the precision, so that bisection finds the first precision that is possible.
    place = bisect_left(
        POSSIBLE_PRECISIONS,
        True,
        key=lambda precision: compute_sample_size(population, precision) <= share * population,
    )
    return POSSIBLE_PRECISIONS[place] if place < len(POSSIBLE_PRECISIONS) else None


def compute_sample_size(population: int, precision: float) -> int:
    """Return SAMPLE_RESERVE times `count_needed_answers`, at most the population."""
    return min(population, int(np.ceil(SAMPLE_RESERVE * count_needed_answers(population, precision))))


def select_uniform_sample(sample: StratifiedSample, chosen: np.ndarray, seed: int) -> np.ndarray:
    """Return a simple random sample of a subpopulation, taken from a stratified sample.

    Permanent random numbers (Ohlsson 1995): a stratum's sampled cells have its smallest. The sample is those
    below the lowest limit up to which a stratum was sampled.

    Args:
        chosen: (N,) bool, the subpopulation, depending on scores and strata only.

    Returns:
        Places (m,) in `sample.rows`, in random order.
    """
    keys, known = np.empty(len(sample.rows)), 1.0
    of_row = sample.strata[sample.rows]
    for stratum in np.unique(sample.strata[chosen]).tolist():
        places = np.flatnonzero(of_row == stratum)
        size = int((sample.strata == stratum).sum())
        # The smallest of N uniform numbers, the next, ...: one minus a running product.
        draws = np.random.default_rng([seed, stratum]).random(len(places))
        keys[places] = 1 - np.exp(np.cumsum(np.log(draws) / (size - np.arange(len(places)))))
        if len(places) < size:
            known = min(known, keys[places[-1]] if len(places) else 0.0)
    usable = np.flatnonzero(chosen[sample.rows] & np.isin(of_row, np.unique(sample.strata[chosen])))
    usable = usable[keys[usable] <= known]
    return usable[np.argsort(keys[usable], kind="stable")]


@dataclass(frozen=True)
class Verdict:
    """The result of testing thresholds for auto-acceptance.

    Attributes:
        threshold: Lowest that passed, or None.
        audited: Sampled cells above it (or above the first failed or lowest).
        wrong: Wrong cells among them.
        at_most: Upper bound of wrong cells above.
        tested: False if samples were too small.
    """

    threshold: float | None
    audited: int
    wrong: int
    at_most: int
    tested: bool = True


def find_lowest_threshold(
    sample: StratifiedSample,
    open_: np.ndarray,
    known_wrong: np.ndarray,
    precision: float,
    candidates: np.ndarray,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Verdict:
    """Return the verdict on the lowest threshold for auto-acceptance.

    Thresholds are tested downwards until one fails, which needs no correction (fixed-sequence testing, Bauer
    1991). Those with too small samples are skipped, independently of answers.

    Args:
        open_: (N,) bool, unanswered cells.
        known_wrong: (N,) bool, cells answered as wrong.
        precision: Smallest right share of accepted cells.
        candidates: (K,) thresholds, fixed beforehand.
        seed: That of `select_uniform_sample`.
    """
    if not 0 < precision < 1:
        raise ValueError(f"The precision is {precision}; it must lie between 0 and 1, such as 0.99.")
    best, too_small = None, Verdict(None, 0, 0, 0, tested=False)
    for threshold in sorted(np.asarray(candidates, float).tolist(), reverse=True):
        above = sample.scores >= threshold
        left, population = int((open_ & above).sum()), int(above.sum())
        already_wrong, allowed = int((known_wrong & above).sum()), _count_allowed_errors(left, precision)
        wrong = sample.wrong[select_uniform_sample(sample, above, seed)]
        verdict = Verdict(threshold, len(wrong), int(wrong.sum()), bound_wrong_cells(wrong, population, confidence))
        if best is None and (not left or bound_wrong_cells(wrong & False, population, confidence) > allowed):
            too_small = replace(verdict, threshold=None, tested=False)
            continue
        # More known mistakes than the bound allows: the sample is one of the few for which the bound does not hold.
        if verdict.at_most > allowed + already_wrong or already_wrong > verdict.at_most:
            return best or replace(verdict, threshold=None)
        best = verdict
    return best or too_small


def _count_allowed_errors(cells: int, precision: float) -> int:
    return int(np.floor((1 - precision) * cells + 1e-9))


def _compute_log_evidence(wrong: np.ndarray, population: int, least: int) -> float:
    """Return the log capital of a unit bet against the hypothesis that at least `least` cells are wrong."""
    before = np.concatenate([[0], np.cumsum(wrong)[:-1]]) if len(wrong) else np.zeros(0)
    # The probability that the next one is wrong, if exactly `least` are.
    chance = np.clip((least - before) / (population - np.arange(len(wrong))), 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        won = [
            np.log(share) + np.where(wrong, np.log(expected), np.log1p(-expected * chance) - np.log1p(-chance)).sum()
            for expected, share in BETS
        ]
    return float(np.logaddexp.reduce(won))
