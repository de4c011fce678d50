"""The contents of a source before storage: images, labels, scores and fields, item by item.

Readers yield items with flat memory, store nothing, and collect all problems.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from annotator.exchange.reading.field_roles import FieldRole
from annotator.exchange.reading.reading_options import Interpretation

EMPTY_EVENT_CLASS = ""
"""The class name of an event label that says that the event shows nothing."""


class ImportedLabel(NamedTuple):
    """An answer in an imported source.

    Attributes:
        class_name: Class name in the source.
        state: PRESENT, ABSENT or UNSURE.
        annotator: Annotator, or "".
        decided_at: Unix seconds, or None.
        source: How it was given, or "".
    """

    class_name: str
    state: int
    annotator: str = ""
    decided_at: float | None = None
    source: str = ""


class Box(NamedTuple):
    """A model's bounding box for a class. It supports a score and is never a label.

    Attributes:
        class_name: Class name in the source.
        left: Fraction of the width. Parts outside are cut off.
        top: Fraction of the height.
        width: Fraction of the width.
        height: Fraction of the height.
        score: Confidence.
    """

    class_name: str
    left: float
    top: float
    width: float
    height: float
    score: float


class Remark(NamedTuple):
    """A flag or comment in an imported source.

    Attributes:
        kind: "flag" or "comment".
        text: The text.
        annotator: Author, or "".
        at: Unix seconds, or None.
    """

    kind: str
    text: str
    annotator: str = ""
    at: float | None = None


class ScoresOverLow(Mapping[str, float]):
    """Scores by class name: those that a model listed for an image, and low default scores for the others.

    Items share `low`, as thousands of species have few scores per image.

    Args:
        given: Score by class name.
        low: Score by class name if not in `given`.
    """

    __slots__ = ("given", "low")

    def __init__(self, given: dict[str, float], low: Mapping[str, float]):
        self.given, self.low = given, low

    def __getitem__(self, name: str) -> float:
        return self.given[name] if name in self.given else self.low[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from (name for name in self.low if name not in self.given)

    def __len__(self) -> int:
        return len(self.given.keys() | self.low.keys())


@dataclass(slots=True)
class Item:
    """What an imported source says about one image. Several items may concern one image.

    Attributes:
        image: Name, path or URL in the source.
        place: Line, or path in a JSON document.
        labels: Answers about the image.
        exhaustive: This item answers every class of the source: unnamed classes are absent, and a contradictory
            item stops the import. Not for rows of a long table.
        scores: Model score by class name.
        boxes: Model rectangles.
        file: Path relative to Contents.folder, or "".
        sha256: Hash of the file, or "".
        attributes: Fields by name: split, location, ...
        remarks: Flags and comments.
        answered: False if the source has only name or scores, so exhaustiveness does not apply.
        written: The image's file name in the export, for a file next to it.
        event: Event of the image, or "".
        event_labels: Answers that hold for some image of the event. EMPTY_EVENT_CLASS: it shows nothing.
    """

    image: str
    place: int | str = ""
    labels: Sequence[ImportedLabel] = ()
    exhaustive: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    boxes: Sequence[Box] = ()
    file: str = ""
    sha256: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[Remark] = ()
    answered: bool = True
    written: str = ""
    event: str = ""
    event_labels: Sequence[ImportedLabel] = ()


@dataclass
class Contents:
    """The result of reading a source: its classes, items and interpretation.

    Attributes:
        classes: (name, description) if the source lists classes.
        items: Items, read on demand, once.
        folder: Base of item files. None if the source has no images.
        place: Noun for the place of an item in messages, such as "line".
        sentences: Remarks on the interpretation.
        interpretations: Decisions about meaning, to confirm or change.
        roles: What each field of a table is read as.
        dispensable: Classes to omit if the project lacks them ("empty" and unused ones), complete after all
            items.
    """

    classes: Sequence[tuple[str, str]]
    items: Iterator[Item]
    folder: Path | None = None
    place: str = "line"
    sentences: Sequence[str] = ()
    interpretations: Sequence[Interpretation] = ()
    roles: Sequence[FieldRole] = ()
    dispensable: Collection[str] = ()
