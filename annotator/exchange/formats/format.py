"""The protocol of a format. Each is one file, listed in formats/__init__.py."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.reading.reading_options import ReadingOptions


@dataclass(frozen=True)
class FormatLosses:
    """The data that a format cannot hold, for a warning before writing.

    Attributes:
        unknown: Unanswered labels look like absent ones.
        unsure: Unsure labels are lost.
        absent: Absent labels are lost.
        provenance: Provenance needs another file.
    """

    unknown: bool = False
    unsure: bool = True
    absent: bool = False
    provenance: bool = True


@dataclass(frozen=True)
class Format:
    """A format that can be read, written or both.

    Attributes:
        name: Unique name, such as "coco".
        about: One line on the format and its programs.
        ending: File ending (".json"), or "" for a folder.
        recognize: Returns why a path has this format, or None. Reads a few kilobytes and never raises.
        read: Reads a path, collects Problems, and raises AnnotatorError with file, line and field if it cannot
            continue. An ambiguous format follows the options, and lists decisions in Contents.interpretations. Other
            formats ignore the options.
        write: Writes the view with at most one block in memory.
        lost: Data lost in writing.
        images: Default image mode, "none" or "link".
        extra: Required pip extra, or "".
        is_general: Yields to other matching formats.
        predicted_by: Origin of scores in formats without answers ("a detector"), or "".
    """

    name: str
    about: str
    ending: str = ""
    recognize: Callable[[Path], str | None] | None = None
    read: Callable[[Path, Problems, ReadingOptions], Contents] | None = None
    write: Callable[[View, Output], None] | None = None
    lost: FormatLosses = FormatLosses()
    images: str = "none"
    extra: str = ""
    is_general: bool = False
    predicted_by: str = ""
