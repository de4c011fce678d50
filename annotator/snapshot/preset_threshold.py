"""The probability from which classes of a whole image are preselected as present.

A correct one saves a key press and a wrong one costs one, so earlier answers must prove a benefit.
"""

from collections.abc import Sequence
from math import sqrt

from annotator.store.database.database import Database
from annotator.store.labels import project_counts

MIN_PRESET_PROBABILITY = 0.5  # from this probability on a guess may save a press
MIN_SAVING_DEVIATIONS = 1.64  # standard deviations by which the presses saved so far exceed chance (one-sided, 95 %)


def find_preset_threshold(db: Database) -> float | None:
    """Return the probability from which classes are preselected, or None to preselect none."""
    rows = project_counts.count_answers_by_score(db)
    return find_saving_bound(
        [(row["low"], row["present"], row["absent"]) for row in rows if row["low"] >= MIN_PRESET_PROBABILITY]
    )


def find_saving_bound(record: Sequence[tuple[float, int, int]]) -> float | None:
    """Return the lower probability bound that would have saved most key presses, or None.

    A bound saves the sum of present - absent above it. Ties select the highest. By chance n answers save about
    sqrt(n) (sign test), so a saving must exceed MIN_SAVING_DEVIATIONS * sqrt(n).

    Args:
        record: Earlier answers per probability interval: (lower bound, present, absent), ascending.
    """
    best, bound, saved, answers = 0.0, None, 0, 0
    for low, present, absent in reversed(record):
        saved, answers = saved + present - absent, answers + present + absent
        if saved > best and saved > MIN_SAVING_DEVIATIONS * sqrt(answers):
            best, bound = saved, low
    return bound
