"""Guesses: which classes of a whole image start as present, before the person has answered.

A right guess saves a press, a wrong guess costs one. A class is guessed where it is more probable than not, and only
where the record of this project says that such probabilities are right more often than wrong: the probabilities of an
early model are not. The record consists of the answers to cells whose probability was logged before.
"""

from collections.abc import Sequence
from math import sqrt

from annotator.store.database.database import Database
from annotator.store.labels import project_counts

MIN_PRESET_PROBABILITY = 0.5  # from this probability on a guess may save a press
MIN_SAVING_DEVIATIONS = 1.64  # standard deviations by which the presses saved so far exceed chance (one-sided, 95 %)


def find_preset_threshold(db: Database) -> float | None:
    """Return the probability from which on guesses save presses, by the answers so far; None: guess nothing."""
    rows = project_counts.count_answers_by_score(db)
    return find_saving_bound(
        [(row["low"], row["present"], row["absent"]) for row in rows if row["low"] >= MIN_PRESET_PROBABILITY]
    )


def find_saving_bound(record: Sequence[tuple[float, int, int]]) -> float | None:
    """Return the lower bound of probability with which guesses would have saved most presses.

    None where no bound would surely have saved any. Guesses from a bound on would have saved present - absent presses,
    summed over the rows from there on. Of bounds that save equally many the highest is taken, so that nothing is
    guessed of which there is no record. By chance alone n answers save sqrt(n) presses (one standard deviation of the
    sign test); less than MIN_SAVING_DEVIATIONS times that is no saving.

    Args:
        record: (lower bound of probability, cells that were present, cells that were absent), ascending and without
            gaps.
    """
    best, bound, saved, answers = 0.0, None, 0, 0
    for low, present, absent in reversed(record):
        saved, answers = saved + present - absent, answers + present + absent
        if saved > best and saved > MIN_SAVING_DEVIATIONS * sqrt(answers):
            best, bound = saved, low
    return bound
