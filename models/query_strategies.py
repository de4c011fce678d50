"""Which images to ask about next: selection strategies, each a function of numpy arrays.

All of them are called in the same way:

    rank(features, probabilities, labels, candidates, rng) -> (n,) int64, the candidates, those first that pay most

    features         (N, D) float16 or float32, one row an image; None where there are none
    probabilities    (N, C) float in [0, 1], calibrated; nan where a class has no model yet (such cells are left out);
                     None before the first model
    labels           (N, C) int8, 1 present, -1 absent, 0 not looked at
    candidates       (n,) rows that may be chosen, in any order
    rng              breaks ties, and draws what is random; the order of the candidates plays no part

`STRATEGIES` is the table. `order` checks the arrays once for all of them, and says when a strategy lacked something
and what was done instead. Strategies never read the disk and know nothing of leases: who has an image open is the
engine's affair.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.labels import PRESENT, UNSEEN

Rank = Callable[
    [np.ndarray | None, np.ndarray | None, np.ndarray, np.ndarray, np.random.Generator],
    np.ndarray,
]

CENTRES = 1000  # k-center: so many images are chosen one by one, all others follow at random
DIMENSIONS = 64  # k-center: features are projected to so many; distances keep to within some 10 %
ANSWERED_CENTRES = 2000  # k-center: so many of the answered images count as chosen before
BLOCK = 4096  # rows turned into float32 at once
GROWTH = 8  # class balance: what is chosen counts again after every eighth part of it


@dataclass(frozen=True)
class Strategy:
    """One way to order images.

    about    one sentence for the person who chooses it
    paper    where it is from; "None: ..." for a baseline; for one of our own, what it is built on
    needs    "model", "features" or "" : without it the order is random
    """

    name: str
    title: str
    about: str
    paper: str
    url: str
    needs: str
    rank: Rank


@dataclass(frozen=True)
class Ordered:
    """rows: (n,) int64, the candidates in order. instead: what was lacking and what was done, "" when nothing was."""

    rows: np.ndarray
    instead: str = ""


def order(
    name: str,
    features: np.ndarray | None,
    probabilities: np.ndarray | None,
    labels: np.ndarray,
    candidates: np.ndarray,
    rng: np.random.Generator,
) -> Ordered:
    """The candidates in the order of a strategy; arrays as at the top of this file.

    A strategy that needs a model or features that are not there gives the random order, and says so.

    Raises ValueError for an unknown strategy, or arrays that do not belong together.
    """
    if name not in STRATEGIES:
        raise ValueError(f"No strategy is called {name!r}. There is: {', '.join(STRATEGIES)}.")
    candidates = np.asarray(candidates, np.int64)
    _check(features, probabilities, labels, candidates)
    if probabilities is not None and not _known(probabilities, candidates):
        probabilities = None
    one = STRATEGIES[name]
    if {"model": probabilities, "features": features, "": labels}[one.needs] is None:
        missing = "There is no model yet" if one.needs == "model" else "These images have no features yet"
        return Ordered(rng.permutation(candidates), f"{missing}: random instead of {one.title.lower()}.")
    return Ordered(one.rank(features, probabilities, labels, candidates, rng))


def random(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Every order is as likely as any other: whatever is counted on the first of them holds for all of them."""
    return rng.permutation(candidates)


def uncertainty(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Those first whose complete answer is expected to say most: the entropy of the open cells, summed.

    The sum, not the largest entropy or the smallest margin: of 80 classes nearly every image has one cell near one
    half, so that one cell would say nothing. Were the classes independent, the sum is just what a complete answer
    is expected to tell, in nats. Source: Lewis and Gale 1994 for one class; Wu et al. 2020 for many.
    """
    value = np.zeros(len(candidates))
    for places in _blocks(candidates):
        chances = _open(probabilities, labels, candidates[places]).clip(1e-6, 1 - 1e-6)
        value[places] = -np.nansum(chances * np.log(chances) + (1 - chances) * np.log1p(-chances), 1)
    return _by(value, candidates, rng)


def expected_missing(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How many positives each image probably still hides: the order in which it pays to review them.

    probabilities  (N, C) float in [0, 1], calibrated; nan where the class has no model yet (counted as 0)
    labels         (N, C) int8, 1 present, -1 absent, 0 not looked at (only these cells can hide anything)
    returns        (N,) float64, in labels an image

    Raises ValueError when the shapes differ. Source: Cole et al. 2021, the expected number of positives of an image
    (their k-hat, of one image instead of a batch), with what is known taken out.
    """
    if probabilities.shape != labels.shape:
        raise ValueError(
            f"Probabilities are {probabilities.shape} but labels are {labels.shape}; both must be (images, classes).\n"
            "    Were classes added after this model was trained?"
        )
    every = np.arange(len(labels))
    found = np.zeros(len(labels))
    for places in _blocks(every):
        found[places] = np.nansum(_open(probabilities, labels, every[places]), 1, dtype=np.float64)
    return found


def class_balance(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Those first that probably show classes of which little was seen: the sum of p / (1 + positives of the class).

    What was chosen before counts with its probabilities as if it had been seen, so one rare class does not fill the
    list: this is the greedy way to the largest sum over classes of log(1 + positives), which rewards the first
    examples of a class most. In place of the quota of Bengar et al. 2022, which is for one class an image.
    """
    chances = np.concatenate([_open(probabilities, labels, candidates[places]) for places in _blocks(candidates)])
    np.nan_to_num(chances, copy=False)
    seen = 1.0 + (labels == PRESENT).sum(0)
    rest = rng.permutation(len(candidates))
    chosen: list[np.ndarray] = []
    while len(rest):
        size = max(1, (len(candidates) - len(rest)) // GROWTH)
        value = chances[rest] @ (1 / seen).astype(np.float32)
        first = np.argsort(-value, kind="stable")[:size]
        chosen.append(rest[first])
        seen += chances[rest[first]].sum(0)
        rest = np.delete(rest, first)
    return candidates[np.concatenate(chosen)] if chosen else candidates


def diversity(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Those first that are least like anything answered or chosen before: k-center greedy.

    Each image is the one farthest from its nearest centre; the centres are the answered images and all chosen so far.
    The first of all, where nothing is answered, is the one nearest to the middle. Distances are those of unit vectors
    around the mean, projected at random to DIMENSIONS where there are more (Johnson and Lindenstrauss 1984). After
    CENTRES images the others follow at random: by then every region has been visited, and the next run begins anew.
    Source: Sener and Savarese 2018, algorithm 1; within twice the best radius, Gonzalez 1985.
    """
    answered = np.flatnonzero((labels != UNSEEN).any(1))
    answered = answered[~np.isin(answered, candidates)]
    if len(answered) > ANSWERED_CENTRES:
        answered = rng.choice(answered, ANSWERED_CENTRES, replace=False)
    shuffled = rng.permutation(candidates)  # so that equally distant ones come at random
    points, known = _points(features, shuffled, answered, rng)
    squares = (points**2).sum(1)
    nearest = np.full(len(points), np.inf, np.float32)
    for places in _blocks(np.arange(len(known)), 256):
        apart = squares[:, None] + (known[places] ** 2).sum(1) - 2 * points @ known[places].T
        np.minimum(nearest, apart.min(1), out=nearest)
    chosen = []
    place = int(squares.argmin() if not len(known) else nearest.argmax()) if len(points) else 0
    for _ in range(min(CENTRES, len(points))):
        chosen.append(place)
        np.minimum(nearest, squares + squares[place] - 2 * (points @ points[place]), out=nearest)
        nearest[place] = -np.inf
        place = int(nearest.argmax())
    return np.concatenate([shuffled[chosen], np.delete(shuffled, chosen)])


def mix(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Each of MIXED in turn gives its best image: no one of them can lead astray for long, and every fifth is blind.

    The blind ones are what estimates of the whole set may rest on: they are at random among all that the others had
    not chosen before. A strategy that lacks what it needs is passed over. Baram et al. 2004 found no strategy best
    everywhere and let a bandit choose; turns need no reward, which early on is mostly noise.
    """
    there = {"model": probabilities is not None, "features": features is not None, "": True}
    arrays = (features, probabilities, labels, candidates, rng)
    return taking_turns([STRATEGIES[name].rank(*arrays) for name in MIXED if there[STRATEGIES[name].needs]])


def taking_turns(orders: Sequence[np.ndarray]) -> np.ndarray:
    """Orders of the same rows, each (n,), as one: each in turn gives its next row; one given before is passed over."""
    rows = np.sort(orders[0])
    first = np.full(len(rows), np.iinfo(np.int64).max)
    for number, one in enumerate(orders):
        places = np.searchsorted(rows, one)
        first[places] = np.minimum(first[places], np.arange(len(rows)) * len(orders) + number)
    return rows[np.argsort(first)]


def fewest_answers(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Those first of which the fewest classes are answered; equal ones at random."""
    return _by(-(labels[candidates] != UNSEEN).sum(1), candidates, rng)


MIXED = ("random", "uncertainty", "class_balance", "expected_missing", "diversity")  # a fifth of the turns each


def _missing(features, probabilities, labels, candidates, rng) -> np.ndarray:
    return _by(expected_missing(probabilities[candidates], labels[candidates]), candidates, rng)


STRATEGIES = {
    one.name: one
    for one in (
        Strategy(
            "random",
            "Random",
            "In an order that has nothing to do with what is on the images: what you see stands for all of them.",
            "None: the baseline that every other one is measured against",
            "",
            "",
            random,
        ),
        Strategy(
            "uncertainty",
            "Least certain",
            "Images of which the model knows least come first: it learns most from them.",
            "Lewis and Gale, A Sequential Algorithm for Training Text Classifiers, SIGIR 1994; for many labels Wu et "
            "al., Multi-Label Active Learning Algorithms for Image Classification, ACM Computing Surveys 2020",
            "https://arxiv.org/abs/cmp-lg/9407020",
            "model",
            uncertainty,
        ),
        Strategy(
            "class_balance",
            "Rare classes",
            "Images that probably show classes with few examples come first.",
            "Bengar et al., Class-Balanced Active Learning for Image Classification, WACV 2022",
            "https://arxiv.org/abs/2110.04543",
            "model",
            class_balance,
        ),
        Strategy(
            "diversity",
            "Most varied",
            "Each image is as unlike the ones before it as possible, so that nothing is overlooked.",
            "Sener and Savarese, Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018",
            "https://arxiv.org/abs/1708.00489",
            "features",
            diversity,
        ),
        Strategy(
            "expected_missing",
            "Most missing labels",
            "Images that probably show the most classes come first: the most labels for one look.",
            "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR 2021",
            "https://arxiv.org/abs/2106.09708",
            "model",
            _missing,
        ),
        Strategy(
            "mix",
            "Mixed",
            "All of these in turn; every fifth image is random, so that nothing is missed and the estimates stay "
            "honest.",
            "This project's own, built on Baram et al., Online Choice of Active Learning Algorithms, JMLR 2004",
            "https://www.jmlr.org/papers/v5/baram04a.html",
            "",
            mix,
        ),
    )
}

INCOMPLETE = Strategy(
    "incomplete",
    "Incomplete images",
    "Images with some answers come first, those with the fewest before all others; then images without a label.",
    "None: it orders images that have answers, all others order images that have none",
    "",
    "",
    fewest_answers,
)


def _check(features, probabilities, labels, candidates) -> None:
    if labels.ndim != 2:
        raise ValueError(f"Labels are {labels.shape}; they must be (images, classes).")
    if probabilities is not None and probabilities.shape != labels.shape:
        raise ValueError(
            f"Probabilities are {probabilities.shape} but labels are {labels.shape}; both must be (images, classes).\n"
            "    Were classes added after this model was trained?"
        )
    if features is not None and (features.ndim != 2 or len(features) != len(labels)):
        raise ValueError(f"Features are {features.shape} but labels are {labels.shape}; both need a row an image.")
    if len(candidates) and not 0 <= candidates.min() <= candidates.max() < len(labels):
        raise ValueError(
            f"Candidates are rows {candidates.min()} to {candidates.max()}, but there are rows 0 to {len(labels) - 1}."
        )
    if len(np.unique(candidates)) < len(candidates):
        raise ValueError("Some candidates are named twice; each row must be there once.")


def _known(probabilities: np.ndarray, candidates: np.ndarray) -> bool:
    return any(not np.isnan(probabilities[candidates[places]]).all() for places in _blocks(candidates))


def _blocks(rows: np.ndarray, size: int = BLOCK) -> list[slice]:
    return [slice(start, start + size) for start in range(0, len(rows), size)]


def _open(probabilities: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n, C) float32 probabilities of these rows, nan where somebody answered or there is no model."""
    chances = probabilities[rows].astype(np.float32)
    chances[labels[rows] != UNSEEN] = np.nan
    return chances


def _by(value: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The candidates by falling value, equal ones at random."""
    return candidates[np.lexsort((rng.random(len(candidates)), -value))]


def _points(
    features: np.ndarray, rows: np.ndarray, others: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Both kinds of rows as (n, d) float32 unit vectors around the mean of `rows`, projected where d would be large."""
    wide = features.shape[1]
    mean = np.zeros(wide)
    for places in _blocks(rows):
        mean += features[rows[places]].sum(0, dtype=np.float64) / max(len(rows), 1)
    turn = rng.standard_normal((wide, DIMENSIONS), np.float32) / DIMENSIONS**0.5 if wide > DIMENSIONS else None

    def unit(some: np.ndarray) -> np.ndarray:
        parts = [np.zeros((0, wide if turn is None else DIMENSIONS), np.float32)]
        for places in _blocks(some):
            one = features[some[places]].astype(np.float32) - mean.astype(np.float32)
            one /= np.linalg.norm(one, axis=1, keepdims=True).clip(1e-6)
            parts.append(one if turn is None else one @ turn)
        return np.concatenate(parts)

    return unit(rows), unit(others)
