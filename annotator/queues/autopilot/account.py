"""The account of Autopilot: what its grids and images promised, what was found, and so what the next may promise.

Probabilities are calibrated by each training, on all classes together. In the tail of a rare class that does not hold:
the classes share the terms that say what a low score is worth, a class with a dozen answers moves its own little, and
only the newest answers say what is left at the depth at which it is asked now. So promises are held against what came,
class by class and by bands of the probability, at once and without a training:

    rho(c, b) = (found(c, b) + OWN g(b) k(c)) / (promised(c, b) + OWN)
    k(c) = (found(c) + OWN) / (sum over b of g(b) promised(c, b) + OWN),   g(b) = (found(b) + ALL) / (promised(b) + ALL)

These are posterior means of a rate whose prior is Gamma and whose counts are Poisson (Gelman et al., Bayesian Data
Analysis, 3rd ed., sec. 2.6): a class and band is drawn to its class, that to all classes, and these to 1. Older answers
fade, because models change. docs/learning-loop.md says how the constants were chosen.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from annotator.store.database.database import Database
from annotator.store.labels import promises
from annotator.store.labels.promises import Answers

BANDS = np.array([0.05, 0.2, 0.5])  # bounds between bands of the probability: how deep in the ranking a cell lies
OWN, ALL = 4.0, 16.0  # promised positives that the prior weighs as much as: of a class, and of all
HALF_LIFE = 10.0  # positives promised of a class since an answer, after which it counts half; of all, four times that
CERTAIN = 0.99  # a corrected probability is at most this, or the model's own


@dataclass(frozen=True, eq=False)
class Account:
    """What was promised and found up to one decision; never changed, only replaced by a later one.

    Attributes:
        newest: The last decision that it includes.
        answers: The answers that it is made of.
        of_all: (B,) ratio of found to promised in each band, over all classes.
        of_class: Class id -> (B,) its ratios; a class without answers in grids has those of all.
        of_images: The same ratio of images answered as a whole, after the correction of their classes.
        barren: Class id -> tiles of it in a row, the newest ones, that were no positives.
        asked: Class id -> tiles of it that were answered in grids.
        relabels: State before -> (answers that were asked again, those of them that changed).
    """

    newest: int
    answers: Answers
    of_all: np.ndarray
    of_class: Mapping[int, np.ndarray]
    of_images: float
    barren: Mapping[int, int]
    asked: Mapping[int, int]
    relabels: Mapping[int, tuple[int, int]]

    @classmethod
    def build(
        cls, answers: Answers, newest: int = 0, relabels: Mapping[int, tuple[int, int]] = MappingProxyType({})
    ) -> "Account":
        """Return the account of these answers and relabels."""
        grids, images = answers.in_grid, ~answers.in_grid
        worth = answers.score.copy()
        band = np.searchsorted(BANDS, answers.score, side="right")
        of_all = _ratios(
            band[grids], answers.score[grids], answers.present[grids], 4 * HALF_LIFE, ALL, np.ones(BANDS.size + 1)
        )
        of_class, barren, asked = {}, {}, {}
        for class_id in np.unique(answers.class_id).tolist():
            of_it = answers.class_id == class_id
            rows = grids & of_it
            cells = band[rows], answers.score[rows], answers.present[rows]
            promised, found = _sums(*cells, HALF_LIFE)
            of_own = (found.sum() + OWN) / ((of_all * promised).sum() + OWN)
            of_class[class_id] = (found + OWN * of_all * of_own) / (promised + OWN)
            worth[of_it] *= of_class[class_id][band[of_it]]
            positives = np.flatnonzero(cells[2])
            asked[class_id] = len(cells[2])
            barren[class_id] = len(cells[2]) - (int(positives[-1]) + 1 if len(positives) else 0)
        one_band = np.zeros(int(images.sum()), np.int64)
        promised, found = _sums(one_band, np.minimum(worth[images], 1), answers.present[images], 4 * HALF_LIFE)
        of_images = float((found.sum() + OWN) / (promised.sum() + OWN))
        return cls(newest, answers, of_all, of_class, of_images, barren, asked, relabels)

    def worth(self, class_ids: Sequence[int], probabilities: np.ndarray) -> np.ndarray:
        """Return what probabilities (n,) of cells are worth by what came of such ones, (n,) in [0, 1].

        Args:
            class_ids: The class of each cell, (n,); or one class id alone, of all of them.
            probabilities: As the model gives them; nan counts as 0.
        """
        known = np.nan_to_num(np.asarray(probabilities, np.float64))
        band = np.searchsorted(BANDS, known, side="right")
        if len(class_ids) == 1:
            ratios = self.of_class.get(class_ids[0], self.of_all)[band]
        else:
            ratios = np.array([self.of_class.get(class_id, self.of_all) for class_id in class_ids])
            ratios = ratios.reshape(-1, self.of_all.size)[np.arange(len(known)), band]
        return np.minimum(known * ratios, np.maximum(CERTAIN, known))


class _Newest:
    """The newest account of a project; threads share it, and bring it up to date under its lock."""

    def __init__(self):
        self.lock, self.account = threading.Lock(), Account.build(Answers.build([]))


def account_of(db: Database) -> Account:
    """Return the account of the project up to now; what was taken back is not in it."""
    newest = db.caches.get("account", "", _Newest, 1)
    with newest.lock:
        known = newest.account
        since = promises.answers_since(db, known.newest)
        if since.taken_back:
            since = promises.answers_since(db, 0)
            newest.account = Account.build(since.answers, since.newest, since.relabels)
        elif since.newest > known.newest:
            answers, relabels = known.answers.followed_by(since.answers), _added(known.relabels, since.relabels)
            newest.account = Account.build(answers, since.newest, relabels)
        return newest.account


def _added(some: Mapping[int, tuple[int, int]], others: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the sums of relabels and changes, state by state."""
    result = dict(some)
    for state, (relabels, changed) in others.items():
        before = result.get(state, (0, 0))
        result[state] = (before[0] + relabels, before[1] + changed)
    return result


def _ratios(
    band: np.ndarray, score: np.ndarray, present: np.ndarray, half_life: float, weight: float, prior: np.ndarray
) -> np.ndarray:
    """Return found over promised in each band, (B,), drawn to `prior` (B,) as by `weight` promised positives."""
    promised, found = _sums(band, score, present, half_life)
    return (found + weight * prior) / (promised + weight)


def _sums(band: np.ndarray, score: np.ndarray, present: np.ndarray, half_life: float) -> tuple[np.ndarray, np.ndarray]:
    """Return promised and found positives in each band, (B,) each, older ones fading.

    Args:
        band, score, present: (n,) of the cells, oldest first.
        half_life: Positives promised after a cell, at which it counts half.
    """
    so_far = score.cumsum()
    fades = 0.5 ** ((so_far[-1] - so_far) / half_life) if len(score) else score
    bands = BANDS.size + 1
    return np.bincount(band, fades * score, bands), np.bincount(band, fades * present, bands)
