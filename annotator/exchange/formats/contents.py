"""What a source holds, before anything of it is stored: images, labels, scores and facts, item by item.

A reader yields items as it goes through its file, so that memory does not grow with the file; nothing is looked up or
stored while it reads (store/imports/staging.py does both). What is wrong is noted with its place and reading goes on,
so that a person sees all problems of a file together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Given(NamedTuple):
    """An answer that the source holds. state: PRESENT, ABSENT or UNSURE.

    Attributes:
        annotator, decided_at, source: Who gave it, when (unix seconds) and how, where the source says so.
    """

    class_name: str
    state: int
    annotator: str = ""
    decided_at: float | None = None
    source: str = ""


class Remark(NamedTuple):
    """A flag or comment of the source. kind: flag or comment; at: unix seconds."""

    kind: str
    text: str
    annotator: str = ""
    at: float | None = None


@dataclass(slots=True)
class Item:
    """What a source says of one image; several items may speak of the same one.

    Attributes:
        image: Its name, path or address as the source writes it.
        place: Where this stands in the source: a line, or a path into a JSON document.
        exhaustive: Classes that it does not name are absent: the source says that it names all.
        answered: False where nobody has answered for this image, whose name or scores are all the source has: when a
            person says that the source is exhaustive, that does not concern it.
        scores: Class name -> probability or score of a model.
        file: Where the image's file lies, relative to Contents.folder; "" when the source brings no file.
        sha256: Of the image's file, "" where the source does not say.
        attributes: Facts that are no labels: split, location, licence, ...
        written: Of a file beside an export: what the export calls the image's file, whose stem no other one has.
    """

    image: str
    place: int | str = ""
    labels: Sequence[Given] = ()
    exhaustive: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    file: str = ""
    sha256: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[Remark] = ()
    answered: bool = True
    written: str = ""


@dataclass
class Contents:
    """What a reader gives.

    Attributes:
        classes: (name, description) of the classes that the source lists, in its order; [] when only labels name them.
        items: Read on demand, once.
        folder: What the files of items are relative to; None when the source brings no images.
        place: What a place is: "line", "annotation", ...
        said: Sentences about how the source was understood, for the person ("1 is present, 0 is absent").
    """

    classes: Sequence[tuple[str, str]]
    items: Iterator[Item]
    folder: Path | None = None
    place: str = "line"
    said: Sequence[str] = ()
