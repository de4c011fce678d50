"""What an export holds, before any format: one row per image, one cell per class, and where each value came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from annotator.records import PRESENT, UNSURE, Class, Image, Label

UNKNOWN_CHOICES = ("keep", "absent", "model")


@dataclass(frozen=True)
class Cell:
    """One value of the export. value: 1, 0, or None for unknown and unsure.

    state          present, absent, unsure, or "" where nobody has answered
    source         click, suggestion, grid, audit, done, import; "model" or "assumed" for a filled-in unknown; else ""
    probability    of the current run, None without one
    """

    value: int | None
    state: str = ""
    source: str = ""
    annotator: str = ""
    decided_at: float | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Table:
    """Everything a format needs to write the data set.

    probabilities    (N, C) of the current run in the order of images and classes, nan where it has none; or None
    flags            image id -> what somebody noted about the image
    """

    images: list[Image]
    classes: list[Class]
    labels: Mapping[tuple[int, int], Label]
    probabilities: np.ndarray | None
    unknown: str
    threshold: float
    flags: Mapping[int, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[Image, list[Cell]]]:
        """Image by image, its cells in the order of the classes."""
        for row, image in enumerate(self.images):
            yield image, [self._cell(row, column, image, one) for column, one in enumerate(self.classes)]

    def _cell(self, row: int, column: int, image: Image, one: Class) -> Cell:
        probability = None
        if self.probabilities is not None and not np.isnan(self.probabilities[row, column]):
            probability = round(float(self.probabilities[row, column]), 4)
        label = self.labels.get((image.id, one.id))
        if label is not None:
            value = None if label.state == UNSURE else int(label.state == PRESENT)
            state = "unsure" if value is None else ("present" if value else "absent")
            return Cell(value, state, label.source, label.annotator, label.decided_at, probability)
        if self.unknown == "absent":
            return Cell(0, "absent", "assumed", probability=probability)
        if self.unknown == "model" and probability is not None:
            value = int(probability >= self.threshold)
            return Cell(value, "present" if value else "absent", "model", probability=probability)
        return Cell(None, probability=probability)
