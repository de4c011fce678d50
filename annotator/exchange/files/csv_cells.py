"""CSV cells with escaped spreadsheet formulas (OWASP, "CSV Injection").

A leading ' escapes = + - @, their full-width forms, tab and line end. Existing apostrophes get one more, so
that reading exactly reverts writing.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable
from typing import TextIO

_FORMULA_START = r"[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]"
_NEEDS_ESCAPE = re.compile(f"'*{_FORMULA_START}")
_IS_ESCAPED = re.compile(f"'+{_FORMULA_START}")


def escape_formula(text: str) -> str:
    """Prefix a text that spreadsheets would run as a formula with an apostrophe."""
    return f"'{text}" if _NEEDS_ESCAPE.match(text) else text


def unescape_formula(text: str) -> str:
    return text[1:] if _IS_ESCAPED.match(text) else text


def decode_name(cell: str, known: Collection[str] | None) -> str:
    """Return the first variant of a CSV cell (unescaped or not, stripped or not) that is in `known`. Without one, it is
    the unescaped, stripped text.
    """
    readings = [reading for text in (cell, cell.strip()) for reading in (unescape_formula(text), text)]
    return next((reading for reading in readings if known is not None and reading in known), readings[2])


class CsvField:
    """A function object that escapes and quotes one value for a CSV, and encodes repeated values only once."""

    def __init__(self, raw: bool = False):
        self._line = ""
        self._rows = CsvWriter(self, raw)

    def __call__(self, value: object) -> str:
        self._rows.write_row([value, ""])  # the second value keeps a single empty value unquoted
        return self._line.removesuffix("\n").removesuffix(",")

    def write(self, line: str) -> None:
        """Store one line. CsvWriter calls this as if it were a file."""
        self._line = line


class CsvWriter:
    """A writer of CSV rows (RFC 4180 with newline endings). `raw` disables formula escapes."""

    def __init__(self, file: "TextIO | CsvField", raw: bool = False):
        self._file, self._raw = file, raw
        # With this line end, carriage returns inside a value are quoted as well; `write` replaces it by a newline.
        self._writer = csv.writer(self, lineterminator="\r\n")

    def write_row(self, values: Iterable[object]) -> None:
        self._writer.writerow(
            [escape_formula(value) if isinstance(value, str) and not self._raw else value for value in values]
        )

    def write(self, line: str) -> None:
        """Write one line. The csv module calls this as if it were a file."""
        self._file.write(line.removesuffix("\r\n") + "\n")


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    """Format rows, headings first, as CSV text."""
    text = io.StringIO()
    writer = CsvWriter(text)
    for row in rows:
        writer.write_row(row)
    return text.getvalue()
