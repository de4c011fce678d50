"""The boxes of detectors: which of those in a file are kept as evidence."""

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
    """Return a box, cut off at the edges of the image; None where it has no area inside of the image.

    Args:
        class_name: The name of the class.
        place: Left, top, width, height as fractions of the image; other lengths, and numbers that are not finite, are
            no place.
        score: The score of the box.
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
    """Return what is wrong with the confidences of a file, "" if nothing is: detectors give numbers in [0, 1]."""
    wrong = [score for score in scores if not 0 <= score <= 1]
    return f"the confidence {', '.join(f'{score:g}' for score in wrong[:5])} is not in [0, 1]" if wrong else ""


def select_top_boxes(boxes: Iterable[Box]) -> list[Box]:
    """Return, of each class of one image, the boxes with the highest scores, as many as are kept."""
    by_class = sorted(boxes, key=lambda box: (box.class_name, -box.score))
    if len(by_class) <= MAX_BOXES_PER_CELL:  # as nearly always
        return by_class
    groups = (group for _, group in groupby(by_class, key=attrgetter("class_name")))
    return [box for group in groups for box in islice(group, MAX_BOXES_PER_CELL)]
