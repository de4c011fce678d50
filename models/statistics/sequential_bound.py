"""How many cells of a population are wrong at most, by a random sample that may be looked at again and again.

Automatic acceptance looks after every training whether a promise holds. An interval that is right 95 times of 100 at
one look is wrong at some look far more often. These bounds hold at all looks together: the evidence against "w cells or
more are wrong" is a bet that wins while answers are right and fair if w are wrong, and no fair bet ever multiplies what
was put in by 20 with a chance of more than 1 in 20 (Ville 1939). Waudby-Smith & Ramdas, "Confidence sequences for
sampling without replacement", NeurIPS 2020, and "Estimating means of bounded random variables by betting", JRSS B 2024.
numpy only.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

CONFIDENCE = 0.95
CANDIDATES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Probabilities from which on cells may be filled in, set before anything is known of a project."""
ROOM = 1.3  # a sample is so many times larger than one without mistakes would have to be
POSSIBLE = (0.995, *(percent / 100 for percent in range(99, 50, -1)))
"""Precisions that can be promised instead of one that cannot, the highest first."""
BETS = ((0.0, 0.5), (0.2, 0.25), (0.5, 0.15), (0.8, 0.1))
"""How many wrong ones each bettor expects, as a share of what is to be refuted, and what is put on each. The first one
has the most to win from a sample without any mistake, and loses everything at the first."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Cells of one class as they were drawn at random, before anything about them was known.

    scores     (N,) float, of every cell of the population when the sample was drawn; never changed afterwards
    strata     (N,) int, in which stratum each was drawn
    rows       (n,) int64, the cells drawn that may be counted, each stratum's in its own random order
    wrong      (n,) bool, what was found
    """

    scores: np.ndarray
    strata: np.ndarray
    rows: np.ndarray
    wrong: np.ndarray


def most_wrong(wrong: np.ndarray, population: int, confidence: float = CONFIDENCE) -> int:
    """How many cells of a population are wrong at most.

    wrong         (n,) bool, a simple random sample without replacement in the order in which it was drawn
    population    N >= n
    returns       0 .. N; the true number is larger with a chance of at most 1 - confidence, and that holds for all n at
                  once: whoever looks after every answer and stops when it suits keeps this chance

    Raises ValueError for a sample larger than the population.
    """
    if len(wrong) > population:
        raise ValueError(f"A sample of {len(wrong)} cells cannot come from a population of {population}.")
    low, high = int(wrong.sum()), population - int((~wrong).sum())
    while low < high:  # the evidence against "w or more" grows with w
        middle = (low + high + 1) // 2
        if _log_evidence(wrong, population, middle) >= -np.log(1 - confidence):
            high = middle - 1
        else:
            low = middle
    return low


@lru_cache(maxsize=4096)
def needed(population: int, precision: float, confidence: float = CONFIDENCE) -> int:
    """How many answers without a mistake show that enough of the other cells of a population are right.

    precision    what shall be right at least of the cells that were not drawn
    returns      0 .. N; N (all of them) where there are too few cells to let one be wrong
    """
    for drawn in range(0, population, min(max(population // 200, 1), 10)):
        if most_wrong(np.zeros(drawn, bool), population, confidence) <= _allowed(population - drawn, precision):
            return drawn
        if drawn > 400 / (1 - precision):  # never needed, however large the population
            break
    return population


def possible_precision(population: int, share: float) -> float | None:
    """The highest precision that a sample of at most a share of the population can show, with some room for mistakes;
    None where not even the lowest of POSSIBLE can.

    share    in (0, 1]
    """
    # The lower the precision, the smaller the sample: looked for by halving.
    place = bisect_left(POSSIBLE, True, key=lambda precision: sample_size(population, precision) <= share * population)
    return POSSIBLE[place] if place < len(POSSIBLE) else None


def sample_size(population: int, precision: float) -> int:
    """How many cells of a population to draw, so that a model that keeps the promise with some room can show it."""
    return min(population, int(np.ceil(ROOM * needed(population, precision))))


def in_one_order(sample: Sample, chosen: np.ndarray, seed: int) -> np.ndarray:
    """A simple random sample of some of the population, from one that was drawn with different shares of each stratum.

    chosen     (N,) bool, by scores and strata only
    returns    places (m,) in `sample.rows`, in random order

    Every cell gets a random number, the drawn ones of a stratum its smallest, in their order ("permanent random
    numbers", Ohlsson 1995). The smallest of all strata together, as far as all are known, are a simple random sample in
    random order. The same seed gives the same numbers when more has been answered.
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
    """What a sample says of the cells above a threshold.

    threshold    the one that may be used; None: none may
    audited      sampled cells counted: above it; with None, above the first one that failed, or, when the sample was
                 too small to show anything, above the lowest
    wrong        of them
    at_most      cells above it that are wrong, audited or not, at most
    tested       False: the sample was too small, whatever had been found in it
    """

    threshold: float | None
    audited: int
    wrong: int
    at_most: int
    tested: bool = True


def lowest_threshold(
    sample: Sample,
    open_: np.ndarray,
    known_wrong: np.ndarray,
    precision: float,
    candidates: np.ndarray,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Verdict:
    """The lowest of some thresholds above which cells may be filled in.

    open_          (N,) bool, cells of the population that nobody has answered: those that would be filled in
    known_wrong    (N,) bool, cells that people have answered, and found wrong; their part of the mistakes is known
    precision      what shall be right at least of the cells filled in, in (0, 1)
    candidates     (K,) thresholds, set beforehand
    seed           of this sample

    Thresholds are tried from the highest one on, and the first that fails ends it: then trying many of them costs
    nothing (fixed-sequence testing; Bauer 1991; Angelopoulos et al. 2021, "Learn then Test", sec. 4). Candidates above
    which so little was sampled that not even a sample without mistakes would be enough are passed over; how much was
    sampled says nothing about what was found.
    """
    if not 0 < precision < 1:
        raise ValueError(f"The precision is {precision}; it must lie between 0 and 1, such as 0.99.")
    best = None
    for threshold in sorted(np.asarray(candidates, float).tolist(), reverse=True):
        above = sample.scores >= threshold
        left, population = int((open_ & above).sum()), int(above.sum())
        found, allowed = int((known_wrong & above).sum()), _allowed(left, precision)
        wrong = sample.wrong[in_one_order(sample, above, seed)]
        now = Verdict(threshold, len(wrong), int(wrong.sum()), most_wrong(wrong, population, confidence))
        if best is None and (not left or most_wrong(wrong & False, population, confidence) > allowed):
            too_small = replace(now, threshold=None, tested=False)
            continue
        # More mistakes found than the sample allows for: then it was one of the few that mislead.
        if now.at_most > allowed + found or found > now.at_most:
            return best or replace(now, threshold=None)
        best = now
    return best or too_small


def _allowed(cells: int, precision: float) -> int:
    return int(np.floor((1 - precision) * cells + 1e-9))


def _log_evidence(wrong: np.ndarray, population: int, least: int) -> float:
    """The logarithm of what one unit bet against "at least `least` cells are wrong" has become."""
    before = np.concatenate([[0], np.cumsum(wrong)[:-1]]) if len(wrong) else np.zeros(0)
    # The chance that the next one is wrong, if just `least` are.
    chance = np.clip((least - before) / (population - np.arange(len(wrong))), 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        won = [
            np.log(share) + np.where(wrong, np.log(expected), np.log1p(-expected * chance) - np.log1p(-chance)).sum()
            for expected, share in BETS
        ]
    return float(np.logaddexp.reduce(won))
