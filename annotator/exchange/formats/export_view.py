"""The contents of an export, before any format: the data set of one moment, in blocks of images.

A block has one array per fact, (images, classes), so that memory does not grow with the data set and a format that
writes numbers needs no loop over cells.
"""

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
    """A flag or comment that a person wrote about an image.

    Attributes:
        kind: "flag" or "comment".
        text: The text.
        annotator: The person who wrote it.
        at: Unix seconds.
    """

    kind: str
    text: str
    annotator: str
    at: float


@dataclass(frozen=True)
class CellAcceptance:
    """The acceptance behind an auto-accepted cell (annotator.store.labels.auto_accepted.Acceptance).

    Attributes:
        state: 1 present, -1 absent.
        probability: The probability with which the cell was accepted.
        run: The id of the run of that probability.
        threshold: The probability from which on (for absent: up to which) cells were accepted.
        precision: The guaranteed share of right cells.
        confidence: The confidence of this guarantee, a share.
    """

    state: int
    probability: float
    run: int
    threshold: float
    precision: float
    confidence: float


class LabelOrigin(NamedTuple):
    """The origin of an imported answer, as the file gave it.

    Attributes:
        source: How it was given there, "" where the file does not say.
        annotator: The person who gave it, "" where the file does not say.
        decided_at: Unix seconds; None where the file does not say.
    """

    source: str
    annotator: str
    decided_at: float | None


class ImageEvent(NamedTuple):
    """The event that an image was found to belong to.

    Attributes:
        id: The same for all images of the event.
        frame: The place of the image in it, from 1.
        images: The number of images of the event, also of those that are not exported.
    """

    id: str
    frame: int
    images: int


@dataclass(frozen=True, eq=False)
class Block:
    """Some images with all their cells; n images, C classes, in the order of View.classes.

    Attributes:
        images: The n images.
        values: (n, C) int8: 1, 0, or UNKNOWN_VALUE where the export has no value (also for unsure).
        states: (n, C) int8: index into STATE_WORDS; 0 where nobody has answered and nothing fills in.
        sources: (n, C) uint8: index into View.sources; 0 is "".
        annotators: (n, C) uint16: index into View.annotators; 0 is "".
        decided_at: (n, C) float64: unix seconds, nan where no person decided.
        seconds: (n, C) float64: that the answer took, its share where one key answered several; nan: not known.
        probabilities: (n, C) float64: of the current run, of an auto-accepted cell the one it was accepted with,
            rounded to 4 digits; nan where there is none.
        accepted: (row, column) -> the acceptance of an auto-accepted cell.
        origins: (row, column) -> the origin of an imported answer.
        notes: Of each image its flag and comments, the oldest first.
        missing: Of each image why its file cannot be shown any more, "" when it can.
        attributes: Of each image its attributes by name: split, location, ...
        splits: Of each image its split in this export, "" without splits.
        files: Of each image a file name that every system allows, without folders, its stem unique in the export
            whatever the case; "" for a format that is one file. Output.image writes the image itself.
        events: Of each image its event, None without one; [] where no events were found.
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
            row: The row of the image.

        Returns:
            The event, None without one.
        """
        return self.events[row] if self.events else None

    def head(self, count: int) -> "Block":
        """Return a block of the first images.

        Args:
            count: How many images to keep; more than there are keeps all.

        Returns:
            The block, whose arrays are views of this one's.
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
    """When images were taken, and in what events (bursts of a camera trap).

    Attributes:
        at: Image id -> unix seconds by its file, of images whose file says it.
        events: Image id -> the event that it belongs to.
        labels: Event -> its labels, which are no answers about its images.
    """

    at: Mapping[int, float] = field(default_factory=dict[int, float])
    events: Mapping[int, str] = field(default_factory=dict[int, str])
    labels: Mapping[str, Sequence[EventLabel]] = field(default_factory=dict[str, Sequence[EventLabel]])


@dataclass(frozen=True, eq=False)
class View:
    """The data set as an export with some choices holds it, as of one moment; readable while its transaction is open.

    Attributes:
        classes: The classes, in the order of the columns of blocks.
        images: The number of images.
        sources: records.SOURCES and records.FILLED, index 0 is "".
        annotators: Everybody who decided, index 0 is ""; pseudonyms where a person chose them.
        splits: Names of the splits, () without.
        attributes: Names of the attributes that any image has.
        blocks: Reads the images block by block; every call starts again and yields the same.
        card: The data card (data_card.py).
        raw: Text in a CSV is written unescaped, even where a spreadsheet takes it for a formula.
        columns: The columns of tables.
        image_mode: What becomes of image files: none, link, copy or resize.
        has: The facts that any cell or image has: of "accepted", "origins", "missing", "notes", "attributes", "events",
            and "unknown" where a cell has no value.
        load_captures: Reads when some images, named by their ids, were taken and in what events.
        deployments: Deployment -> facts of it (place, start, end), as a person gave them for this export.
        options: Values of the export options that name the formats that take them, by field.
        sentences: Sentences for the person that a format adds while it writes.
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
    """The files that a format writes: all of them appear at once when the export ends well, or none does.

    Names are relative to the export's folder, with "/" between. Of a format that is one file, the name is what replaces
    the ending of the name a person gave: "" for the file itself, ".provenance.csv" for one beside it.
    """

    def open_text(self, name: str = "") -> AbstractContextManager[TextIO]:
        """Open a text file for writing: UTF-8, no newline translation."""
        ...

    def open_binary(self, name: str = "") -> AbstractContextManager[BinaryIO]:
        """Open a file for writing bytes."""
        ...

    def path(self, name: str = "") -> Path:
        """Return the path of a file to write, for libraries that open files themselves; its folder exists."""
        ...

    def write_image(self, image: Image, name: str) -> bool:
        """Link, copy or resize the file of an image, as the export was asked to.

        Args:
            image: The image.
            name: The name to write it to; its ending is that of Block.files.

        Returns:
            True where the file exists now; False where images are not written, or this image's file cannot be read,
            which the export says itself.
        """
        ...

    def read_image(self, image: Image) -> bytes | None:
        """Return the file of an image as bytes, resized where that was chosen; None where `image` returns False."""
        ...
