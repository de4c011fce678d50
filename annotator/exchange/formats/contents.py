"""The contents of a source, before anything of it is stored: images, labels, scores and facts, item by item.

A reader yields items as it goes through its file, so that memory does not grow with the file; nothing is looked up or
stored while it reads (store/imports/staging.py does both). Problems are noted with their place and reading goes on, so
that a person sees all problems of a file together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from annotator.exchange.reading.reading import Decided


class Given(NamedTuple):
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
        file: The path of the image's file, relative to Contents.folder; "" when the source brings no file.
        sha256: Of the image's file, "" where the source does not say.
        attributes: Facts that are no labels, by name: split, location, licence, ...
        remarks: Its flags and comments.
        answered: False where nobody has answered for this image, whose name or scores are all the source has: when a
            person says that the source is exhaustive, that does not concern it.
        written: Of a file beside an export: the name of the image's file in the export, whose stem no other image has.
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
    """The result of a reader.

    Attributes:
        classes: (name, description) of the classes that the source lists, in its order; [] when only labels name them.
        items: The items; read on demand, once.
        folder: The folder that the files of items are relative to; None when the source brings no images.
        place: The noun for a place in messages: "line", "annotation", ...
        said: Sentences about how the source was understood, for the person ("1 is present, 0 is absent").
        decided: Decisions about the meaning of the source that a person may overrule, or has to settle.
    """

    classes: Sequence[tuple[str, str]]
    items: Iterator[Item]
    folder: Path | None = None
    place: str = "line"
    said: Sequence[str] = ()
    decided: Sequence[Decided] = ()
