"""Excel and LibreOffice workbooks (.xlsx, ECMA-376), read as tables with stored formula results."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO, check_column_count
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.formats.shared.table_items import RawTable, interpret_table
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
    _check_unpacked_size(path)
    sheets = _list_filled_sheets(path)
    if not sheets:
        raise AnnotatorError(f"{path} has no sheet with a header and rows. The first row names the columns.")
    # a title stands above some tables
    filled = (one for one in _read_rows(path, sheets[0].name) if sum(map(bool, one[1])) > 1)
    header, first = next(filled, None) or next(_read_rows(path, sheets[0].name))
    names = [cell.strip() if isinstance(cell, str) else "" for cell in first]
    check_column_count(path, len(names))
    while names and not names[-1]:
        names.pop()
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise AnnotatorError(f"{path} has two columns called {', '.join(map(repr, twice))}.")

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        is_after_gap = False
        for number, row in _read_rows(path, sheets[0].name):
            if number > header and is_after_gap and _has_names(row, names):
                problems.add(f"row {number}: a second table begins here. Move it to a workbook of its own")
                return
            is_after_gap = not any(row)
            if number > header and any(row):
                yield number, [*row[: len(names)], *[""] * (len(names) - len(row))]

    _report_merged_cells(path, sheets[0], header, len(names), problems)
    remarks = []
    if len(sheets) > 1 or sheets[0].is_hidden:
        read_sheet, *others = (f"{one.name!r}{' (hidden)' if one.is_hidden else ''}" for one in sheets[:6])
        remarks.append(f"the sheet {read_sheet} is read")
        if others:
            remarks.append(f"sheets that are not read: {', '.join(others)}. Save each as a file of its own")
    table = RawTable(path, names, rows(), None, find_class_names(path), place="row", remarks=remarks)
    return interpret_table(table, problems, options)


def _check_unpacked_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise AnnotatorError(f"{path} cannot be read as a workbook: {error}.") from error
    if size > max(ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO * path.stat().st_size):
        raise AnnotatorError(
            f"{path} would unpack to {size:,} bytes, more than {MAX_UNPACK_RATIO} times its size. If it is right, save "
            "it as CSV."
        )


def _open_workbook(path: Path) -> Any:
    try:
        import defusedxml  # noqa: F401 - openpyxl reads XML with it where it is installed
        from openpyxl import load_workbook

        return load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # openpyxl raises a dozen kinds for damaged files
        raise AnnotatorError(f"{path} cannot be read as a workbook: {type(error).__name__}: {error}.") from error


class _Sheet(NamedTuple):
    name: str
    is_hidden: bool
    # name of its file in the workbook
    part: str


def _list_filled_sheets(path: Path) -> list[_Sheet]:
    """Return the sheets with a header and rows, the visible ones first."""
    book = _open_workbook(path)
    try:
        sheets = [_make_sheet(sheet) for sheet in book.worksheets]
    finally:
        book.close()
    filled = (one for one in sheets if len(list(islice(_read_rows(path, one.name), 2))) == 2)
    return sorted(filled, key=lambda sheet: sheet.is_hidden)


def _make_sheet(sheet: Any) -> _Sheet:
    return _Sheet(sheet.title, sheet.sheet_state != "visible", sheet._worksheet_path)


def _has_names(row: Sequence[Cell], names: Sequence[str]) -> bool:
    """Return whether a row repeats names of columns, as the header of another table does."""
    cells = {cell.strip().casefold() for cell in row if isinstance(cell, str) and cell.strip()}
    return len(cells & {name.casefold() for name in names if name}) > 1


def _report_merged_cells(path: Path, sheet: _Sheet, header: int, width: int, problems: Problems) -> None:
    """Report merged cells below the header, of which a file holds the value for the first cell only."""
    from openpyxl.utils.cell import range_boundaries

    for found in _iter_merged_ranges(path, sheet.part):
        left, top, _, bottom = range_boundaries(found)
        if None not in (left, top, bottom) and cast(int, bottom) > header and cast(int, left) <= width:
            problems.add(
                f"row {max(cast(int, top), header + 1)}: the cells {found} are merged, and only the first holds the "
                "value. Split them (Unmerge), and write the value into each row that it is about"
            )


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
