"""The protocol of a format: how to recognise, read and write it.

Each format is one file and one line in the table (formats/__init__.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.reading.reading_options import ReadingOptions


@dataclass(frozen=True)
class FormatLosses:
    """The facts that a format has no room for, so that a person hears of it before writing.

    Attributes:
        unknown: The format cannot tell unknown from absent.
        unsure: The format cannot hold unsure.
        absent: The format cannot hold absent at all: only present labels are written.
        provenance: The format has no fields for who gave a label; a file beside it has them.
    """

    unknown: bool = False
    unsure: bool = True
    absent: bool = False
    provenance: bool = True


@dataclass(frozen=True)
class Format:
    """One format that can be read, written or both.

    Attributes:
        name: Its name on the command line, on the page and in entry points: "coco".
        about: One line for people: what it is, and which programs read it.
        ending: The ending of the file that a person names (".json"); "" for a format that is a folder.
        recognize: Returns why a file or folder is of this format ("a COCO file: it has images, annotations and
            categories"), or None. It reads a few kilobytes at most and never raises for what it does not understand.
        read: Reads a file or folder; None for a format that is only written. It notes problems in Problems and goes on;
            it raises AnnotatorError where it cannot go on (broken JSON, half a zip), naming file, line and field.
        write: Writes the view; None for a format that is only read. It must not keep more than one block in memory.
        lost: The facts that writing loses.
        images: What becomes of image files unless a person chooses: "none", or "link" where the format is useless
            without them.
        extra: The pip extra whose packages the format needs, "" for none.
        read_as: As `read`, for formats whose meaning is not fixed: reads as a person's Reading says, and lists its own
            decisions in Contents.decided. Used in place of `read` where it is given.
        is_general: It fits many files, and gives way to a format that fits as well.
        predicted_by: What makes all that such a file says, "a detector": these are scores and no answers of people. ""
            for every format that can hold answers.
    """

    name: str
    about: str
    ending: str = ""
    recognize: Callable[[Path], str | None] | None = None
    read: Callable[[Path, Problems], Contents] | None = None
    write: Callable[[View, Output], None] | None = None
    lost: FormatLosses = FormatLosses()
    images: str = "none"
    extra: str = ""
    read_as: Callable[[Path, Problems, ReadingOptions], Contents] | None = None
    is_general: bool = False
    predicted_by: str = ""
