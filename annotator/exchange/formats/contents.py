"""The contents of a source, before anything of it is stored: images, labels, scores and facts, item by item.

A reader yields items as it goes through its file, so that memory does not grow with the file; nothing is looked up or
stored while it reads (store/imports/staging.py does both). Problems are noted with their place and reading goes on, so
that a person sees all problems of a file together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from annotator.exchange.reading.reading_options import Interpretation

EMPTY_EVENT_CLASS = ""
"""The class name of an event label that says that the event shows nothing."""


class ImportedLabel(NamedTuple):
    """An answer that the source holds.

    Attributes:
        class_name: The class, as the source names it.
        state: PRESENT, ABSENT or UNSURE.
        annotator: The person who gave it, "" where the source does not say.
        decided_at: Unix seconds; None where the source does not say.
        source: How it was given, "" where the source does not say.
    """

    class_name: str
    state: int
    annotator: str = ""
    decided_at: float | None = None
    source: str = ""


class Box(NamedTuple):
    """A rectangle in which a model saw a class: evidence for a score, and never a label.

    Attributes:
        class_name: The class, as the source names it.
        left: Of the rectangle, as a fraction of the image's width; parts outside of the image are cut off.
        top: As a fraction of its height.
        width: As a fraction of its width.
        height: As a fraction of its height.
        score: How sure the model is of this box.
    """

    class_name: str
    left: float
    top: float
    width: float
    height: float
    score: float


class Remark(NamedTuple):
    """A flag or comment of the source.

    Attributes:
        kind: "flag" or "comment".
        text: The text.
        annotator: The person who wrote it, "" where the source does not say.
        at: Unix seconds; None where the source does not say.
    """

    kind: str
    text: str
    annotator: str = ""
    at: float | None = None


class ScoresOverLow(Mapping[str, float]):
    """The scores of an image by a model that looked for all of its classes: low where it does not name one.

    A file of thousands of species holds a few scores an image: what is low is shared by its items, and not copied.

    Args:
        given: Class name -> the score that the source names.
        low: Class name -> the score of classes that it does not name; the same object for many items.
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
    """The facts that a source gives of one image; several items may concern the same image.

    Attributes:
        image: Its name, path or address as the source writes it.
        place: Where this stands in the source: a line, or a path into a JSON document.
        labels: The answers that the source holds of it.
        exhaustive: This item alone answers every class of the source (those that Contents.classes lists, and any other
            that the source names): a class that its labels do not name is absent, as firmly as if it were among them
            with ABSENT. So a row of zeros and ones may give its ones only. Another item of the same image that names
            such a class contradicts it, and the import is refused with both places. Not for items of which several
            together name what is present (rows of a long table): these are exhaustive only if a person says so.
        scores: Class name -> probability or score of a model.
        boxes: Where the model saw them.
        file: The path of the image's file, relative to Contents.folder; "" when the source brings no file.
        sha256: Of the image's file, "" where the source does not say.
        attributes: Facts that are no labels, by name: split, location, licence, ...
        remarks: Its flags and comments.
        answered: False where nobody has answered for this image, whose name or scores are all the source has: when a
            person says that the source is exhaustive, that does not concern it.
        written: Of a file beside an export: the name of the image's file in the export, whose stem no other image has.
        event: The event (burst, sequence) that the source says the image belongs to; "" where it names none.
        event_labels: The answers that the source holds of the event as a whole: at least one image of it shows the
            class. They are no answers about this image. The class name EMPTY_EVENT_CLASS: the event shows nothing.
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
    """The result of a reader.

    Attributes:
        classes: (name, description) of the classes that the source lists, in its order; [] when only labels name them.
        items: The items; read on demand, once.
        folder: The folder that the files of items are relative to; None when the source brings no images.
        place: The noun for a place in messages: "line", "annotation", ...
        sentences: Sentences about how the source was understood, for the person ("1 is present, 0 is absent").
        interpretations: Decisions about the meaning of the source that a person may overrule, or has to settle.
        dispensable: Names of classes that are left out where the project lacks them: those for "nothing is here", and
            those that no image shows. Complete when the items have been read.
    """

    classes: Sequence[tuple[str, str]]
    items: Iterator[Item]
    folder: Path | None = None
    place: str = "line"
    sentences: Sequence[str] = ()
    interpretations: Sequence[Interpretation] = ()
    dispensable: Collection[str] = ()
