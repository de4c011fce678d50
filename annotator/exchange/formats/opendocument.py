"""OpenDocument workbooks (.ods) of LibreOffice and others, read as tables with stored formula results.

Format: OASIS OpenDocument 1.3, part 3, chapter 9. content.xml repeats equal cells and rows by a count.
"""

import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.workbook_sheets import (
    MergedCells,
    SheetRows,
    WorkbookSheet,
    check_unpacked_size,
    read_first_table,
)
from annotator.exchange.reading.cell_words import Cell, to_cell
from annotator.exchange.reading.reading_options import ReadingOptions

CONTENT_PART, MEDIA_TYPE_PART = "content.xml", "mimetype"
MEDIA_TYPE = b"application/vnd.oasis.opendocument.spreadsheet"
MAX_COLUMNS = 16_384
MAX_REPEATED_ROWS = 1_000  # rows that are not empty, of one element
MAX_SPACES = 1_000
MAX_DEPTH = 64
_NAMESPACE_START = "urn:oasis:names:tc:opendocument:xmlns:"
_TABLE_PREFIX, _OFFICE_PREFIX, _TEXT_PREFIX, _STYLE_PREFIX = (
    f"{{{_NAMESPACE_START}{name}:1.0}}" for name in ("table", "office", "text", "style")
)
_SHEET_TAG, _ROW_TAG, _CELL_TAG, _COVERED_CELL_TAG = (
    f"{_TABLE_PREFIX}table",
    f"{_TABLE_PREFIX}table-row",
    f"{_TABLE_PREFIX}table-cell",
    f"{_TABLE_PREFIX}covered-table-cell",
)


def recognize(path: Path) -> str | None:
    if not path.is_file() or path.suffix.lower() != ".ods":
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            kind = archive.read(MEDIA_TYPE_PART) if MEDIA_TYPE_PART in archive.namelist() else b""
            return "a workbook of OpenDocument" if kind.strip().startswith(MEDIA_TYPE) else None
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of the first sheet with rows. Raises AnnotatorError for damaged, encrypted or empty files."""
    check_unpacked_size(path)
    hidden_styles: set[str] = set()
    sheets: list[WorkbookSheet] = []
    depth = 0
    for event, element in _iter_elements(path):
        if event == "end" and element.tag == f"{_STYLE_PREFIX}style":
            if any(one.get(f"{_TABLE_PREFIX}display") == "false" for one in element):
                hidden_styles.add(element.get(f"{_STYLE_PREFIX}name", ""))
        elif element.tag == _SHEET_TAG:
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1:
                number, name = len(sheets), element.get(f"{_TABLE_PREFIX}name", "")
                is_hidden = element.get(f"{_TABLE_PREFIX}style-name") in hidden_styles
                rows = partial(_read_rows, path, number)
                sheets.append(WorkbookSheet(name, is_hidden, rows, partial(_find_merged_cells, path, number)))
    return read_first_table(path, sheets, problems, options)


def _iter_elements(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (event, element) of the content, and forget each row after its end."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, iterparse

    parents: list[Any] = []
    try:
        with zipfile.ZipFile(path) as archive, archive.open(CONTENT_PART) as file:
            for event, element in iterparse(file, events=("start", "end")):
                if event == "start":
                    parents.append(element)
                    if len(parents) > MAX_DEPTH:
                        raise AnnotatorError(f"{path} is nested more than {MAX_DEPTH} deep.")
                    yield event, element
                    continue
                parents.pop()
                yield event, element
                if element.tag == _ROW_TAG and parents:
                    parents[-1].remove(element)
    except DefusedXmlException as error:
        raise AnnotatorError(f"{path} declares entities or a document type: {error!r}.") from error
    except (KeyError, ParseError, OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise AnnotatorError(
            f"{path} cannot be read to its end: {error}. If it has a password, save it without one, or as CSV."
        ) from error


def _iter_row_elements(path: Path, sheet: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, repetitions, element) of the rows of a sheet. Tables inside of cells are not rows of it."""
    place, depth, number = -1, 0, 1
    for event, element in _iter_elements(path):
        if element.tag == _SHEET_TAG:
            depth += 1 if event == "start" else -1
            place += event == "start" and depth == 1
            if depth == 0 and place == sheet:
                return
        elif event == "end" and element.tag == _ROW_TAG and place == sheet and depth == 1:
            count = _parse_count(element, f"{_TABLE_PREFIX}number-rows-repeated")
            yield number, count, element
            number += count


def _parse_count(element: Any, name: str) -> int:
    try:
        return max(int(element.get(name, "1")), 1)
    except ValueError:
        return 1


def _read_rows(path: Path, sheet: int) -> SheetRows:
    for number, count, element in _iter_row_elements(path, sheet):
        cells = _read_cells(path, element)
        if cells and count > MAX_REPEATED_ROWS:
            raise AnnotatorError(
                f"{path} repeats row {number:,} {count:,} times. Delete the copies, or save it as CSV."
            )
        for copy in range(count if cells else 1):
            yield number + copy, cells


def _read_cells(path: Path, row: Any) -> list[Cell]:
    cells: list[Cell] = []
    place = 0
    for element in row:
        if element.tag not in (_CELL_TAG, _COVERED_CELL_TAG):
            continue
        count = _parse_count(element, f"{_TABLE_PREFIX}number-columns-repeated")
        if value := _format_cell(element):
            if place + count > MAX_COLUMNS:
                raise AnnotatorError(f"{path} has a row of more than {MAX_COLUMNS:,} cells. Is it the right file?")
            cells += [""] * (place - len(cells)) + [value] * count
        place += count
    return cells


def _format_cell(cell: Any) -> Cell:
    kind = cell.get(f"{_OFFICE_PREFIX}value-type", "")
    if kind == "float":
        try:
            return to_cell(float(cell.get(f"{_OFFICE_PREFIX}value", "")))
        except ValueError:
            return _read_text(cell)
    value = {"date": "date-value", "boolean": "boolean-value"}.get(kind, "string-value")
    return cell.get(f"{_OFFICE_PREFIX}{value}") or _read_text(cell)


def _read_text(cell: Any) -> str:
    """Return the paragraphs of a cell, without its comment."""
    return "\n".join("".join(_iter_text(one)) for one in cell if one.tag == f"{_TEXT_PREFIX}p")


def _iter_text(element: Any) -> Iterator[str]:
    yield element.text or ""
    for one in element:
        if one.tag == f"{_TEXT_PREFIX}s":
            yield " " * min(_parse_count(one, f"{_TEXT_PREFIX}c"), MAX_SPACES)
        elif one.tag in (f"{_TEXT_PREFIX}tab", f"{_TEXT_PREFIX}line-break"):
            yield " "
        elif one.tag.startswith(_TEXT_PREFIX):
            yield from _iter_text(one)
        yield one.tail or ""


def _find_merged_cells(path: Path, sheet: int) -> Iterator[MergedCells]:
    for number, count, element in _iter_row_elements(path, sheet):
        column = 1
        for cell in element:
            if cell.tag not in (_CELL_TAG, _COVERED_CELL_TAG):
                continue
            rows, columns = (
                _parse_count(cell, f"{_TABLE_PREFIX}number-{name}-spanned") for name in ("rows", "columns")
            )
            if rows > 1 or columns > 1:
                name = f"of row {number} from column {column} on"
                yield MergedCells(name, column, number, number + max(rows, count) - 1)
            column += _parse_count(cell, f"{_TABLE_PREFIX}number-columns-repeated")


OPENDOCUMENT = Format(
    name="opendocument",
    about="A workbook of OpenDocument (.ods), read as tables are",
    ending=".ods",
    recognize=recognize,
    read=read,
)
