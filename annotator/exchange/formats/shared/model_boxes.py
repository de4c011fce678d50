"""Boxes of detectors, which are kept for display and not as labels."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from operator import attrgetter

from annotator.exchange.formats.contents import Box
from annotator.store.runs.prediction_boxes import MAX_BOXES_PER_CELL

EMPTY_CLASS_NAMES = ("blank", "empty", "nothing", "no cv result")
"""Names, in small letters, by which detectors and classifiers of camera traps say that nothing was recognised."""

BOXES_KEPT_SENTENCE = (
    f"Boxes are kept to be looked at, of each image and class the {MAX_BOXES_PER_CELL} surest; they become no labels."
)


def clip_box(class_name: str, place: Sequence[float], score: float) -> Box | None:
    """Return a box clipped to the image, or None if nothing remains.

    `place` is left, top, width, height as fractions of the image.
    """
    if len(place) != 4 or not all(map(math.isfinite, place)):
        return None
    left, top, width, height = place
    right, bottom = min(left + width, 1.0), min(top + height, 1.0)
    left, top = max(left, 0.0), max(top, 0.0)
    if right <= left or bottom <= top:
        return None
    return Box(class_name, left, top, right - left, bottom - top, score)


def find_confidence_problem(scores: Iterable[float]) -> str:
    """Return a sentence on confidences outside [0, 1], or ""."""
    wrong = [score for score in scores if not 0 <= score <= 1]
    return f"the confidence {', '.join(f'{score:g}' for score in wrong[:5])} is not in [0, 1]" if wrong else ""


def select_top_boxes(boxes: Iterable[Box]) -> list[Box]:
    """Return the MAX_BOXES_PER_CELL highest-scored boxes per class of one image."""
    by_class = sorted(boxes, key=lambda box: (box.class_name, -box.score))
    if len(by_class) <= MAX_BOXES_PER_CELL:  # as nearly always
        return by_class
    groups = (group for _, group in groupby(by_class, key=attrgetter("class_name")))
    return [box for group in groups for box in islice(group, MAX_BOXES_PER_CELL)]
