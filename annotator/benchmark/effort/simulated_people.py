"""Simulated annotators who know the truth: perfect ones, and noisy ones who miss small things and press wrong keys."""

from dataclasses import dataclass

import numpy as np

from annotator.benchmark.first_named_class import draw_class_salience

SMALL_SHARE = 0.15  # share of the positives that are small; drawn at random, as no truth says how large things are
MISSED_SHARE = 0.25  # share of the small positives that are missed when looked at
ERROR_SHARE = 0.02  # share of the needed presses that are left out; as many of those made add a wrong one
SALIENCE_SPREAD = 1.0  # spread of the log of how much more some classes are noticed than others (first_named_class.py)


@dataclass(frozen=True, eq=False)
class Person:
    """A simulated annotator who answers by the truth (N, C) bool; if `noisy`, with errors.

    A small thing that a noisy annotator overlooks may be seen at the next call.
    """

    truth: np.ndarray
    noisy: bool
    chance: np.random.Generator
    small: np.ndarray
    salience: np.ndarray

    @classmethod
    def build(cls, truth: np.ndarray, *, noisy: bool, seed: int) -> "Person":
        """Make an annotator; the seed decides which things are small and which classes are salient."""
        chance = np.random.default_rng([seed, 1])
        small = truth & (chance.random(truth.shape) < SMALL_SHARE)
        return cls(truth, noisy, chance, small, draw_class_salience(truth.shape[1], SALIENCE_SPREAD, chance))

    def answer(self, rows: np.ndarray, columns: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the answers to some cells shown together, and the number of presses they took.

        Args:
            rows: (n,) the image of each cell.
            columns: (n,) the class of each cell.
            start: (n,) bool, the answers set beforehand.

        Returns:
            (n,) bool, and the number of presses without Enter.
        """
        seen = self.truth[rows, columns]
        if not self.noisy:
            return seen, int((seen != start).sum())
        overlooked = self.small[rows, columns] & (self.chance.random(len(rows)) < MISSED_SHARE)
        wanted = seen & ~overlooked
        pressed = (wanted != start) & (self.chance.random(len(rows)) >= ERROR_SHARE)
        wrong = int(self.chance.binomial(int(pressed.sum()), ERROR_SHARE))
        if wrong:
            pressed[self.chance.integers(0, len(rows), wrong)] ^= True
        return start ^ pressed, int(pressed.sum())

    def name_one(self, row: int, open_: np.ndarray) -> int | None:
        """Return the class named first on an image, as a column; None if the annotator sees none of `open_` (C,)."""
        seen = np.flatnonzero(self.truth[row] & open_)
        if self.noisy:
            seen = seen[~(self.small[row, seen] & (self.chance.random(len(seen)) < MISSED_SHARE))]
        if not len(seen):
            return None
        if not self.noisy:
            return int(self.chance.choice(seen))
        if self.chance.random() < ERROR_SHARE and open_.any():
            return int(self.chance.choice(np.flatnonzero(open_)))
        weights = self.salience[seen]
        return int(self.chance.choice(seen, p=weights / weights.sum()))
