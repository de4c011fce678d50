"""A format: how to recognise, read and write it. One file a format, one line in the table (formats/__init__.py)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.view import Output, View


@dataclass(frozen=True)
class Lost:
    """What a format has no room for, so that it can be said before writing.

    Attributes:
        unknown: It cannot tell unknown from absent.
        unsure: It cannot hold unsure.
        absent: It cannot hold absent at all: only present labels are written.
        provenance: It has no fields for who gave a label; a file beside it has them.
    """

    unknown: bool = False
    unsure: bool = True
    absent: bool = False
    provenance: bool = True


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        name: Of the command line, the page and entry points: "coco".
        about: One line for people: what it is, who reads it.
        ending: Of the file that a person names (".json"); "" for a format that is a folder.
        recognise: Why a file or folder is of this format ("a COCO file: it has images, annotations and categories"), or
            None. It reads a few kilobytes at most and never raises for what it does not understand.
        read: Reads a file or folder. Notes what is wrong in Problems and goes on; raises AnnotatorError where it cannot
            go on (broken JSON, half a zip), naming file, line and field.
        write: Writes the view; must not keep more than one block in memory.
        lost: What writing loses.
        images: What becomes of image files unless a person chooses: "none", or "link" where the format is nothing
            without them.
        extra: The pip extra whose packages it needs, "" for none.
    """

    name: str
    about: str
    ending: str = ""
    recognise: Callable[[Path], str | None] | None = None
    read: Callable[[Path, Problems], Contents] | None = None
    write: Callable[[View, Output], None] | None = None
    lost: Lost = Lost()
    images: str = "none"
    extra: str = ""
