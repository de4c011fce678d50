"""What an export holds, before any format: one row per image, one cell per class, and where each value came from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from annotator.records import PRESENT, UNSURE, Class, Image, Label

UNKNOWN_CHOICES = ("keep", "absent", "model")
ACCEPTED = "model (accepted)"
DIGITS = 4  # of probabilities in files, and in comparisons with thresholds


@dataclass(frozen=True)
class Accepted:
    """The acceptance behind an auto-accepted cell: see annotator.store.auto_accepted.Acceptance."""

    state: int
    probability: float
    run: int
    threshold: float
    precision: float
    confidence: float


@dataclass(frozen=True)
class Cell:
    """One value of the export. value: 1, 0, or None for unknown and unsure.

    state          present, absent, unsure, or "" where nobody has answered
    source         one of records.SOURCES; "model (accepted)" for an auto-accepted cell; "model" or "assumed" for an
                   unknown cell that the export fills in; else ""
    probability    of the current run, None without one; of an auto-accepted cell, the one it was accepted with
    accepted       the acceptance of an auto-accepted cell
    """

    value: int | None
    state: str = ""
    source: str = ""
    annotator: str = ""
    decided_at: float | None = None
    probability: float | None = None
    accepted: Accepted | None = None


@dataclass(frozen=True)
class Note:
    """What a person wrote about an image. kind: flag or comment; at: unix seconds."""

    kind: str
    text: str
    annotator: str
    at: float


@dataclass(frozen=True)
class Table:
    """Everything a format needs to write the data set.

    probabilities    (N, C) of the current run in the order of images and classes, nan where it has none; or None
    present_from, absent_to    (C,) for `unknown` "model": from which probability on, and up to which, an unknown cell
                     becomes present or absent; between them, and where a threshold is nan, it stays unknown
    notes            image id -> its flag and comments, the oldest first
    accepted         (image id, class id) -> the acceptance of an auto-accepted cell
    missing          image id -> why it cannot be shown any more, of the images concerned
    raw              text in a CSV is written unescaped, even where a spreadsheet takes it for a formula
    """

    images: list[Image]
    classes: list[Class]
    labels: Mapping[tuple[int, int], Label]
    probabilities: np.ndarray | None
    unknown: str
    present_from: np.ndarray
    absent_to: np.ndarray
    notes: Mapping[int, Sequence[Note]] = field(default_factory=dict)
    accepted: Mapping[tuple[int, int], Accepted] = field(default_factory=dict)
    raw: bool = False
    missing: Mapping[int, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[Image, list[Cell]]]:
        """Image by image, its cells in the order of the classes."""
        for row, image in enumerate(self.images):
            yield image, [self._cell(row, column, image, class_) for column, class_ in enumerate(self.classes)]

    def _cell(self, row: int, column: int, image: Image, class_: Class) -> Cell:
        probability = None
        if self.probabilities is not None and not np.isnan(self.probabilities[row, column]):
            probability = round(float(self.probabilities[row, column]), DIGITS)
        label = self.labels.get((image.id, class_.id))
        if label is not None:
            value = None if label.state == UNSURE else int(label.state == PRESENT)
            state = "unsure" if value is None else ("present" if value else "absent")
            return Cell(value, state, label.source, label.annotator, label.decided_at, probability)
        if accepted := self.accepted.get((image.id, class_.id)):
            value, score = int(accepted.state == PRESENT), round(accepted.probability, DIGITS)
            return Cell(value, "present" if value else "absent", ACCEPTED, probability=score, accepted=accepted)
        if self.unknown == "absent":
            return Cell(0, "absent", "assumed", probability=probability)
        if self.unknown == "model" and probability is not None:
            if probability >= self.present_from[column]:
                return Cell(1, "present", "model", probability=probability)
            if probability <= self.absent_to[column]:
                return Cell(0, "absent", "model", probability=probability)
        return Cell(None, probability=probability)


@dataclass(frozen=True)
class File:
    """One file of a format.

    ending    what replaces the ending of the name a person gives; "" for the file that has this name itself
    write     writes a table to an open text file (UTF-8, no newline translation)
    about     what is in it, in a few words
    """

    ending: str
    media_type: str
    write: Callable[[Table, TextIO], None]
    about: str

    def path(self, target: Path) -> Path:
        """Where it lies when the data set is written to `target`."""
        return target.with_name(target.stem + self.ending) if self.ending else target
