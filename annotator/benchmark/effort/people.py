"""People who know the truth and answer by it: perfect ones, and ones who miss small things and press the wrong key."""

from dataclasses import dataclass

import numpy as np

SMALL = 0.15  # share of the positives that are small, drawn at random: no truth says how large things are
MISSED = 0.25  # of small ones that are looked at, so many are not seen
ERRS = 0.02  # of presses that are needed, so many do not happen; and for so many that do, another one happens as well
SALIENCE = 1.0  # spread of the log of how much more some classes are noticed than others


@dataclass(frozen=True, eq=False)
class Person:
    """Answers by the truth (N, C) bool; `noisy` as said above. One call is one look: small things may be seen later."""

    truth: np.ndarray
    noisy: bool
    chance: np.random.Generator
    small: np.ndarray
    salience: np.ndarray

    @classmethod
    def of(cls, truth: np.ndarray, *, noisy: bool, seed: int) -> "Person":
        """Somebody whose smallness and salience follow from the seed."""
        chance = np.random.default_rng([seed, 1])
        small = truth & (chance.random(truth.shape) < SMALL)
        return cls(truth, noisy, chance, small, np.exp(SALIENCE * chance.normal(size=truth.shape[1])))

    def answer(self, rows: np.ndarray, columns: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, int]:
        """What they leave standing after looking at some cells together, and how many presses it took.

        rows, columns    (n,) which cells
        start            (n,) bool, what is set before they press anything
        returns          (n,) bool, and the presses besides Enter
        """
        seen = self.truth[rows, columns]
        if not self.noisy:
            return seen, int((seen != start).sum())
        overlooked = self.small[rows, columns] & (self.chance.random(len(rows)) < MISSED)
        wanted = seen & ~overlooked
        pressed = (wanted != start) & (self.chance.random(len(rows)) >= ERRS)
        wrong = int(self.chance.binomial(int(pressed.sum()), ERRS))
        if wrong:
            pressed[self.chance.integers(0, len(rows), wrong)] ^= True
        return start ^ pressed, int(pressed.sum())

    def name_one(self, row: int, open_: np.ndarray) -> int | None:
        """The class they name first of one image; None where they see nothing. open_ (C,) bool: which are asked."""
        seen = np.flatnonzero(self.truth[row] & open_)
        if self.noisy:
            seen = seen[~(self.small[row, seen] & (self.chance.random(len(seen)) < MISSED))]
        if not len(seen):
            return None
        if not self.noisy:
            return int(self.chance.choice(seen))
        if self.chance.random() < ERRS and open_.any():
            return int(self.chance.choice(np.flatnonzero(open_)))
        weights = self.salience[seen]
        return int(self.chance.choice(seen, p=weights / weights.sum()))
