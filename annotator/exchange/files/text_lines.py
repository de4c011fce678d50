"""Long UTF-8 or UTF-16 text files, read by line."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from typing_extensions import override

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.store.disk.open_files import open_file

MAX_LINE_CHARS = 4 << 20  # letters of a line
_SEPARATOR_LINE = re.compile('"?sep=(.)"?', re.IGNORECASE)  # which Excel writes before the header when asked to
_ESCAPED_BYTE = re.compile("[\ud800-\udfff]")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file with their ends.

    Raises AnnotatorError when it reaches invalid text or a line over 4 million characters.
    """
    number = 0
    try:
        with open_file(path) as file:
            start = file.read(3)
            file.seek(0)
            if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
                text = io.TextIOWrapper(file, "utf-16", newline="")
            else:  # bytes that are not UTF-8 are let through, so that the line with them can be named
                text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            while line := text.readline(MAX_LINE_CHARS):
                number += 1
                if len(line) == MAX_LINE_CHARS and line[-1] not in "\r\n":
                    raise AnnotatorError(f"Line {number} of {path} has more than {MAX_LINE_CHARS:,} letters.")
                if "\0" in line:
                    raise AnnotatorError(f"{path} is not a text file: line {number} holds a zero byte.")
                if not line.isascii() and (byte := _ESCAPED_BYTE.search(line)):
                    raise AnnotatorError(
                        f"Line {number} of {path} is not UTF-8 text: byte {ord(byte[0]) & 0xFF:#04x} at letter "
                        f"{byte.start() + 1}. Save the file as UTF-8."
                    )
                yield line
    except UnicodeError as error:
        raise AnnotatorError(f"{path} is no UTF-16 text after line {number}: {error}.") from error
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_table_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a table, without Excel's sep= line and empty lines at the start. Raises as `read_lines`."""
    lines = read_lines(path)
    for number, line in enumerate(lines):
        if line.strip() and (number or not _SEPARATOR_LINE.fullmatch(line.strip())):
            yield line
            break
    yield from lines


class TableBytes(io.RawIOBase):
    """The lines of `read_table_lines` as a file of UTF-8 bytes, for readers that read no other encoding."""

    def __init__(self, path: Path):
        self._lines = read_table_lines(path)
        self._rest = b""

    @override
    def readable(self) -> bool:
        """Return True."""
        return True

    @override
    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, and return the number of bytes. Raises as `read_lines`."""
        parts, size = [self._rest], len(self._rest)
        while size < len(buffer) and (line := next(self._lines, "")):
            parts.append(line.encode())
            size += len(parts[-1])
        content = b"".join(parts)
        read, self._rest = content[: len(buffer)], content[len(buffer) :]
        buffer[: len(read)] = read
        return len(read)


def split_header(line: str, delimiters: str = ",;\t") -> tuple[list[str], str]:
    """Split a table's first line by the delimiter that gives the most cells, and return cells and delimiter."""
    best: tuple[list[str], str] = [], delimiters[0]
    for delimiter in delimiters:
        try:
            cells = next(csv.reader(io.StringIO(line), delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(cells) > len(best[0]):
            best = cells, delimiter
    return best


def read_csv_rows(
    path: Path, problems: Problems, columns: int | None = None, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line number, cells) per non-empty CSV row. Invalid CSV raises AnnotatorError.

    Args:
        problems: Collects rows with another number of cells.
        columns: Expected cells per row. None expects as many as in the first row.
    """
    reader, first = csv.reader(read_lines(path), strict=True, delimiter=delimiter), 1
    try:
        for row in reader:
            line, first = first, reader.line_num + 1
            if not any(map(str.strip, row)) or (line == 1 and _SEPARATOR_LINE.fullmatch(delimiter.join(row).strip())):
                continue
            columns = columns or len(row)
            if len(row) == columns:
                yield line, row
            else:
                problems.add(f"{path.name}, line {line}: {len(row)} cells instead of {columns}")
    except csv.Error as error:
        raise AnnotatorError(f"{path} is no CSV in line {reader.line_num}: {error}.") from error


def read_header_line(path: Path) -> str:
    """Return a table's first line after Excel's sep= line, or ""."""
    line = read_first_line(path)
    if not _SEPARATOR_LINE.fullmatch(line.strip()):
        return line
    try:
        return next(islice(read_lines(path), 1, 2), "").rstrip("\r\n")
    except AnnotatorError:
        return ""


def read_first_line(path: Path, max_bytes: int = 65_536) -> str:
    """Return the first line, or "" if unreadable or over `max_bytes`."""
    text, is_all = read_beginning(path, max_bytes)
    line = re.split("[\r\n]", text, maxsplit=1)[0]
    return "" if line == text and not is_all else line


def read_beginning(path: Path, max_bytes: int) -> tuple[str, bool]:
    """Return the text of a file's first bytes, and whether these are all. An unreadable file is empty."""
    try:
        with open_file(path) as file:
            start = file.read(max_bytes)
    except OSError:
        return "", True
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return start.decode(encoding, "replace"), len(start) < max_bytes
