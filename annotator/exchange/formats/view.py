"""What an export holds, before any format: the data set of one moment, in blocks of images.

A block has one array per fact, (images, classes), so that memory does not grow with the data set and a format that
writes numbers needs no loop over cells.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, TextIO

import numpy as np

from annotator.records import Class, Image

BLOCK = 1000  # images
UNKNOWN = -1
STATE_WORDS = ("", "present", "absent", "unsure")
ACCEPTED = "model (accepted)"


@dataclass(frozen=True)
class Note:
    """What a person wrote about an image. kind: flag or comment; at: unix seconds."""

    kind: str
    text: str
    annotator: str
    at: float


@dataclass(frozen=True)
class Accepted:
    """The acceptance behind an auto-accepted cell: see annotator.store.auto_accepted.Acceptance."""

    state: int
    probability: float
    run: int
    threshold: float
    precision: float
    confidence: float


class Origin(NamedTuple):
    """Who gave an imported answer, when (unix seconds, None: not said) and how, where it comes from."""

    source: str
    annotator: str
    decided_at: float | None


@dataclass(frozen=True, eq=False)
class Block:
    """Some images with all their cells; n images, C classes, in the order of View.classes.

    values           (n, C) int8: 1, 0, or UNKNOWN where the export has no value (also for unsure)
    states           (n, C) int8: index into STATE_WORDS; 0 where nobody has answered and nothing fills in
    sources          (n, C) uint8: index into View.sources; 0 is ""
    annotators       (n, C) uint16: index into View.annotators; 0 is ""
    decided_at       (n, C) float64: unix seconds, nan where no person decided
    probabilities    (n, C) float32: of the current run, rounded to 4 digits; nan where it has none
    accepted, origins    (row, column) -> the acceptance, the origin of an imported answer
    notes            of each image its flag and comments, the oldest first
    missing          of each image why its file cannot be shown any more, "" when it can
    attributes       of each image its facts: split, location, ...
    splits           of each image its split in this export, "" without splits
    files            of each image its file in this export, relative to the export; "" when images are not written
    """

    images: list[Image]
    values: np.ndarray
    states: np.ndarray
    sources: np.ndarray
    annotators: np.ndarray
    decided_at: np.ndarray
    probabilities: np.ndarray
    accepted: Mapping[tuple[int, int], Accepted]
    origins: Mapping[tuple[int, int], Origin]
    notes: list[Sequence[Note]]
    missing: list[str]
    attributes: list[Mapping[str, str]]
    splits: list[str]
    files: list[str]


@dataclass(frozen=True, eq=False)
class View:
    """The data set as an export with these choices holds it, as of one moment; open while its transaction is.

    images        how many
    sources       records.SOURCES, ACCEPTED, "model" and "assumed", index 0 is ""
    splits        names of the splits, () without
    attributes    names of the attributes that any image has
    blocks        reads the images block by block; every call begins anew and gives the same
    card          the data card (data_card.py)
    raw           text in a CSV is written unescaped, even where a spreadsheet takes it for a formula
    """

    classes: list[Class]
    images: int
    sources: tuple[str, ...]
    annotators: tuple[str, ...]
    splits: tuple[str, ...]
    attributes: tuple[str, ...]
    blocks: Callable[[], Iterator[Block]]
    card: Mapping[str, Any] = field(default_factory=dict)
    raw: bool = False


class Output(Protocol):
    """Where a format writes: all of it appears at once when the export ends well, or nothing.

    Names are relative to the export's folder, with "/" between. Of a format that is one file, the name is what replaces
    the ending of the name a person gave: "" for the file itself, ".provenance.csv" for one beside it.
    """

    def text(self, name: str = "") -> AbstractContextManager[TextIO]:
        """A text file to write: UTF-8, no newline translation."""
        ...

    def binary(self, name: str = "") -> AbstractContextManager[BinaryIO]:
        """A file of bytes to write."""
        ...

    def path(self, name: str = "") -> Path:
        """The path of such a file, for libraries that open files themselves; its folder exists."""
        ...
