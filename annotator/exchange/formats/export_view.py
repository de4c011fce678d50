"""What a format receives to write an export: blocks of (images, classes) arrays, in constant memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, TextIO, cast

import numpy as np

from annotator.exchange.table_columns import TableColumns
from annotator.records import Class, Image
from annotator.store.labels.event_labels import EventLabel

IMAGES_PER_BLOCK = 1000  # images; fewer where there are many classes
UNKNOWN_VALUE = -1
STATE_WORDS = ("", "present", "absent", "unsure")
STATE_UNANSWERED, STATE_PRESENT, STATE_ABSENT, STATE_UNSURE = range(4)  # Block.states
# of a value, as trainings read it: absent, present, and last UNKNOWN_VALUE
TRAINING_VALUES = np.array([-1, 1, 0], np.int8)
PROBABILITY_DIGITS = 4  # of probabilities in files, and in comparisons with thresholds


@dataclass(frozen=True)
class Note:
    """A flag or comment about an image.

    Attributes:
        kind: "flag" or "comment".
        text: The text.
        annotator: Author.
        at: Unix seconds.
    """

    kind: str
    text: str
    annotator: str
    at: float


@dataclass(frozen=True)
class CellAcceptance:
    """The record of a label that was auto-accepted.

    Attributes:
        state: 1 present, -1 absent.
        probability: Probability at acceptance.
        run: Id of its run.
        threshold: Lowest accepted probability (highest for absent).
        precision: Guaranteed precision.
        confidence: Confidence of this guarantee.
    """

    state: int
    probability: float
    run: int
    threshold: float
    precision: float
    confidence: float


class LabelOrigin(NamedTuple):
    """How an imported answer was originally given, according to the imported file.

    Attributes:
        source: How it was given, or "".
        annotator: Annotator, or "".
        decided_at: Unix seconds, or None.
    """

    source: str
    annotator: str
    decided_at: float | None


class ImageEvent(NamedTuple):
    """The event (burst) that an image belongs to, and its position in it.

    Attributes:
        id: Event id.
        frame: Position of the image in it, from 1.
        images: Images, unexported ones included.
    """

    id: str
    frame: int
    images: int


@dataclass(frozen=True, eq=False)
class Block:
    """Labels of n images and C classes, in the order of View.classes.

    Attributes:
        images: The n images.
        values: (n, C) int8, 1, 0, or UNKNOWN_VALUE (also unsure).
        states: (n, C) int8, index into STATE_WORDS, 0 if unanswered and unfilled.
        sources: (n, C) uint8, index into View.sources.
        annotators: (n, C) uint16, index into View.annotators.
        decided_at: (n, C) float64, unix seconds, NaN without decision.
        seconds: (n, C) float64, answer time or its share, NaN if unknown.
        probabilities: (n, C) float64, of current run or acceptance, 4 digits, NaN for none.
        accepted: Acceptance by (row, column).
        origins: Import origin by (row, column).
        notes: Notes per image, oldest first.
        missing: Per image why its file is unreadable, or "".
        attributes: Fields per image: split, location, ...
        splits: Split per image, or "".
        files: Portable file name per image with unique stem regardless of case, or "" for one-file formats.
        events: Event or None per image. Empty without events.
    """

    images: list[Image]
    values: np.ndarray
    states: np.ndarray
    sources: np.ndarray
    annotators: np.ndarray
    decided_at: np.ndarray
    seconds: np.ndarray
    probabilities: np.ndarray
    accepted: Mapping[tuple[int, int], CellAcceptance]
    origins: Mapping[tuple[int, int], LabelOrigin]
    notes: list[Sequence[Note]]
    missing: list[str]
    attributes: list[Mapping[str, str]]
    splits: list[str]
    files: list[str]
    events: Sequence[ImageEvent | None] = ()

    def event(self, row: int) -> ImageEvent | None:
        """Return the event of an image.

        Args:
            row: Row of the image.

        Returns:
            The event, or None.
        """
        return self.events[row] if self.events else None

    def head(self, count: int) -> "Block":
        """Return a block of the first images.

        Args:
            count: Maximum number of images.

        Returns:
            A block of array views.
        """
        parts: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Mapping):
                cells = cast("Mapping[tuple[int, int], Any]", value)
                parts[name] = {cell: fact for cell, fact in cells.items() if cell[0] < count}
            else:
                parts[name] = value[:count]
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class Captures:
    """Capture times of images, their events, and the labels of these events.

    Attributes:
        at: Unix seconds by image id, if known.
        events: Event by image id.
        labels: Labels by event. They are not answers for its images.
    """

    at: Mapping[int, float] = field(default_factory=dict[int, float])
    events: Mapping[int, str] = field(default_factory=dict[int, str])
    labels: Mapping[str, Sequence[EventLabel]] = field(default_factory=dict[str, Sequence[EventLabel]])


@dataclass(frozen=True, eq=False)
class View:
    """The data set as a format receives it, as of one moment. Readable while its transaction is open.

    Attributes:
        classes: The classes, in the order of block columns.
        images: Number of images.
        sources: records.SOURCES and records.FILLED, index 0 is "".
        annotators: Names of all annotators with decisions, or pseudonyms. Index 0 is "".
        splits: Names of the splits, () without.
        attributes: Names of the fields that any image has.
        blocks: Reads the images in blocks, the same at every call.
        card: Data card (data_card.py).
        raw: Do not escape CSV text that a spreadsheet would run as a formula.
        columns: Columns of tables.
        image_mode: How image files are exported: none, link, copy or resize.
        has: What any cell or image has, of "accepted", "origins", "missing", "notes", "attributes", "events", and
            "unknown" for cells without a value.
        load_captures: Function from image ids to their capture times and events.
        deployments: Fields (place, start, end) by deployment, as given for this export.
        options: Values by field of the export options that only some formats accept.
        sentences: Sentences for the user that a format adds while it writes.
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
    columns: TableColumns = field(default_factory=TableColumns)
    image_mode: str = "none"
    has: frozenset[str] = frozenset()
    load_captures: Callable[[Sequence[int]], Captures] = lambda image_ids: Captures()
    deployments: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sentences: list[str] = field(default_factory=list[str])


class Output(Protocol):
    """The interface by which a format writes files. All of them appear at the end, or none.

    Names are relative to the folder, with "/". In one-file formats, a name replaces the ending: "" for the file,
    ".provenance.csv" for one next to it.
    """

    def open_text(self, name: str = "") -> AbstractContextManager[TextIO]:
        """Open a UTF-8 file for writing, without newline translation."""
        ...

    def open_binary(self, name: str = "") -> AbstractContextManager[BinaryIO]:
        """Open a binary file for writing."""
        ...

    def path(self, name: str = "") -> Path:
        """Return a path to write to, for libraries that open files themselves."""
        ...

    def write_image(self, image: Image, name: str, xmp: str = "") -> bool:
        """Link, copy or resize an image's file, as chosen.

        Args:
            image: The image.
            name: Target name, with the ending in Block.files.
            xmp: XMP packet for a resized image.

        Returns:
            False if images are not exported or the file is unreadable.
        """
        ...

    def read_image(self, image: Image) -> bytes | None:
        """Return an image's file as bytes, resized if chosen, or None without one."""
        ...
