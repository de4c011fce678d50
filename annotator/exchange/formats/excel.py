"""Excel workbooks (.xlsx, ECMA-376), read as tables with stored formula results."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.workbook_sheets import (
    MergedCells,
    WorkbookSheet,
    check_unpacked_size,
    read_first_table,
)
from annotator.exchange.reading.cell_words import Cell, to_cell
from annotator.exchange.reading.reading_options import ReadingOptions

_WORKBOOK_PART = "xl/workbook.xml"
_MERGED_CELL = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+\d+:[A-Z]+\d+)"')
_PIECE_BYTES = 1 << 20
_MERGED_BYTES = 200  # of the element of one merged range, which may be cut by the end of a piece


def recognize(path: Path) -> str | None:
    if not path.is_file() or path.suffix.lower() not in (".xlsx", ".xlsm"):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return "a workbook of Excel" if _WORKBOOK_PART in archive.namelist() else None
    except (OSError, zipfile.BadZipFile):
        return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of the first sheet with rows.

    Raises:
        AnnotatorError: The file is no workbook, too large unpacked, or empty.
    """
    check_unpacked_size(path)
    return read_first_table(path, _list_sheets(path), problems, options)


def _open_workbook(path: Path) -> Any:
    try:
        import defusedxml  # noqa: F401 - openpyxl reads XML with it where it is installed
        from openpyxl import load_workbook

        return load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # openpyxl raises a dozen kinds for damaged files
        raise AnnotatorError(f"{path} cannot be read as a workbook: {type(error).__name__}: {error}.") from error


def _list_sheets(path: Path) -> list[WorkbookSheet]:
    book = _open_workbook(path)
    try:
        return [
            WorkbookSheet(
                sheet.title,
                sheet.sheet_state != "visible",
                partial(_read_rows, path, sheet.title),
                partial(_find_merged_cells, path, sheet._worksheet_path),
            )
            for sheet in book.worksheets
        ]
    finally:
        book.close()


def _find_merged_cells(path: Path, part: str) -> Iterator[MergedCells]:
    from openpyxl.utils.cell import range_boundaries

    for found in _iter_merged_ranges(path, part):
        left, top, _, bottom = range_boundaries(found)
        if left is not None and top is not None and bottom is not None:
            yield MergedCells(found, left, top, bottom)


def _iter_merged_ranges(path: Path, part: str) -> Iterator[str]:
    """Yield the merged ranges of a sheet, such as "B3:B4". They stand behind its rows, each in a short element."""
    rest = b""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(part) as file:
            while piece := file.read(_PIECE_BYTES):
                text, end = rest + piece, 0
                for match in _MERGED_CELL.finditer(text):
                    end = match.end()
                    yield match[1].decode("ascii")
                rest = text[end:][-_MERGED_BYTES:]
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise _explain_unread_rest(path, error) from error


def _explain_unread_rest(path: Path, error: Exception) -> AnnotatorError:
    return AnnotatorError(f"{path} cannot be read to its end: {type(error).__name__}: {error}.")


def _read_rows(path: Path, sheet: str) -> Iterator[tuple[int, list[Cell]]]:
    book = _open_workbook(path)
    try:
        for number, row in enumerate(book[sheet].iter_rows(values_only=True), start=1):
            yield number, [_format_cell(value) for value in row]
    except AnnotatorError:
        raise
    except Exception as error:  # openpyxl raises a dozen kinds for damaged files
        raise _explain_unread_rest(path, error) from error
    finally:
        book.close()


def _format_cell(value: Any) -> Cell:
    return value.isoformat() if isinstance(value, date | datetime | time) else to_cell(value)


EXCEL = Format(
    name="excel",
    about="A workbook of Excel (.xlsx), read as tables are",
    ending=".xlsx",
    recognize=recognize,
    read=read,
)
