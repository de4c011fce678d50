"""Columns of an exported table, and their text form for the command line."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError

_COLUMN = re.compile(r"((?:\\[\\=]|[^=])*)(=?)(.*)", re.DOTALL)  # of --columns: column=name


@dataclass(frozen=True)
class TableColumns:
    """Options for the columns of an exported table.

    Attributes:
        long: One row per image and class, instead of per image.
        chosen: (column, name in the file) in order. Empty selects the format's default columns.
    """

    long: bool = False
    chosen: tuple[tuple[str, str], ...] = ()
    seconds: bool = False


def parse_columns(text: str) -> tuple[tuple[str, str], ...]:
    r"""Return (column, name in the file) pairs of a text such as "image=file,fox".

    In names, \= and \\ stand for = and \.
    """
    if not text:
        return ()
    pairs: list[tuple[str, str]] = []
    for part in next(csv.reader([text])):
        name, equals, written = _COLUMN.findall(part)[0]
        name = re.sub(r"\\([\\=])", r"\1", name)
        if not name.strip() or (equals and not written.strip()):
            raise AnnotatorError(
                f"--columns cannot be read at {part!r}: write column or column=name, with commas between."
            )
        pairs.append((name.strip(), (written or name).strip()))
    return tuple(pairs)


def format_columns(chosen: Sequence[tuple[str, str]]) -> str:
    """Return columns in the text form that `parse_columns` reads."""
    if not chosen:
        return ""
    text = io.StringIO()
    parts = []
    for name, written in chosen:
        escaped = name.replace("\\", "\\\\").replace("=", "\\=")
        parts.append(escaped if name == written and escaped == name else f"{escaped}={written}")
    csv.writer(text, lineterminator="").writerow(parts)
    return text.getvalue()
