"""Text in the cells of a CSV: values that a spreadsheet would run as formulas are escaped, and unescaped when read.

A value that begins with = + - @, their full-width forms, a tab or a line end is written with ' before it (OWASP, "CSV
Injection"). A value that begins with apostrophes before such a character gets one more, so that reading reverts writing
exactly.
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
    """Return the text as it is written: with ' before it if a spreadsheet would run it as a formula."""
    return f"'{text}" if _NEEDS_ESCAPE.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text from which `escaped` made this one."""
    return text[1:] if _IS_ESCAPED.match(text) else text


def decode_name(cell: str, known: Collection[str] | None) -> str:
    """Return the name that a cell of a CSV stands for.

    Args:
        cell: The text of the cell.
        known: All names: the first reading of the cell (unescaped or not, with or without the blanks around it) that is
            among them is returned; if none is, or for None, the unescaped text without blanks.
    """
    readings = [reading for text in (cell, cell.strip()) for reading in (unescape_formula(text), text)]
    return next((reading for reading in readings if known is not None and reading in known), readings[2])


class CsvField:
    """A function that returns a value as it is written in a CSV: escaped and quoted.

    Writers of millions of rows, whose values repeat, use it to encode each distinct value once.

    Args:
        raw: As in Rows.
    """

    def __init__(self, raw: bool = False):
        self._line = ""
        self._rows = CsvWriter(self, raw)

    def __call__(self, value: object) -> str:
        """Return the text of a value in a CSV."""
        self._rows.write_row([value, ""])  # the second value keeps a single empty value unquoted
        return self._line.removesuffix("\n").removesuffix(",")

    def write(self, line: str) -> None:
        """Keep one line; called by Rows."""
        self._line = line


class CsvWriter:
    """A writer of rows as CSV (RFC 4180, but lines end with a single newline).

    Args:
        raw: Values are written unescaped: formulas stay formulas.
    """

    def __init__(self, file: "TextIO | CsvField", raw: bool = False):
        self._file, self._raw = file, raw
        # With this line end, carriage returns inside a value are quoted as well; `write` replaces it by a newline.
        self._writer = csv.writer(self, lineterminator="\r\n")

    def write_row(self, values: Iterable[object]) -> None:
        """Write one row; text is escaped, other values are not."""
        self._writer.writerow(
            [escape_formula(value) if isinstance(value, str) and not self._raw else value for value in values]
        )

    def write(self, line: str) -> None:
        """Write one whole line; called by the csv module."""
        self._file.write(line.removesuffix("\r\n") + "\n")


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows, with the headings as the first row, as the text of a CSV."""
    text = io.StringIO()
    writer = CsvWriter(text)
    for row in rows:
        writer.write_row(row)
    return text.getvalue()
