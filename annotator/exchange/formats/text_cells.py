"""Text in the cells of a CSV: what a spreadsheet would run as a formula begins with an apostrophe, and is read back.

A value that begins with = + - @, a tab or a carriage return is written with ' before it (OWASP, "CSV Injection"). So
that reading takes back exactly what writing added, a value that begins with apostrophes before such a character gets
one more as well.
"""

import csv
import re
from collections.abc import Collection, Iterable
from typing import TextIO

_ESCAPE = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r]")


def escaped(text: str) -> str:
    """The text as it is written."""
    return f"'{text}" if _ESCAPE.match(text) else text


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    return text[1:] if _ESCAPED.match(text) else text


def named(cell: str, known: Collection[str] | None) -> str:
    """The name that a cell of a CSV stands for.

    known    the names there are: of the readings of the cell (escaped or not, with or without the blanks around it) the
             first that is among them is taken; None, or none of them: without the blanks and the escape
    """
    readings = [reading for text in (cell, cell.strip()) for reading in (unescaped(text), text)]
    return next((reading for reading in readings if known is not None and reading in known), readings[2])


class Rows:
    """Writes rows as CSV (RFC 4180, but lines end with a single newline).

    raw    values are written as they are: formulas stay formulas
    """

    def __init__(self, file: TextIO, raw: bool = False):
        self._file, self._raw = file, raw
        # With this end of a line, carriage returns inside a value are quoted as well; `write` puts the newline there.
        self._writer = csv.writer(self, lineterminator="\r\n")

    def row(self, values: Iterable[object]) -> None:
        """Write one row; only text is escaped."""
        self._writer.writerow([escaped(one) if isinstance(one, str) and not self._raw else one for one in values])

    def write(self, line: str) -> None:
        """What the csv module calls, with one whole line."""
        self._file.write(line.removesuffix("\r\n") + "\n")
