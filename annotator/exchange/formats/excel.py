"""Excel and LibreOffice workbooks (.xlsx, ECMA-376), read as tables with stored formula results."""

import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

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
    filled = (one for one in _read_rows(path, sheets[0]) if sum(map(bool, one[1])) > 1)
    header, first = next(filled, None) or next(_read_rows(path, sheets[0]))
    names = [cell.strip() if isinstance(cell, str) else "" for cell in first]
    check_column_count(path, len(names))
    while names and not names[-1]:
        names.pop()
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise AnnotatorError(f"{path} has two columns called {', '.join(map(repr, twice))}.")

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        for number, row in _read_rows(path, sheets[0]):
            if number > header and any(row):
                yield number, [*row[: len(names)], *[""] * (len(names) - len(row))]

    remarks = []
    if len(sheets) > 1:
        others = ", ".join(map(repr, sheets[1:6]))
        remarks.append(f"the sheet {sheets[0]!r} is read; not read: {others}. Save each as a file of its own")
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


def _list_filled_sheets(path: Path) -> list[str]:
    book = _open_workbook(path)
    try:
        names = [sheet.title for sheet in book.worksheets]
    finally:
        book.close()
    return [name for name in names if len([row for _, row in zip(range(2), _read_rows(path, name), strict=False)]) == 2]


def _read_rows(path: Path, sheet: str) -> Iterator[tuple[int, list[Cell]]]:
    book = _open_workbook(path)
    try:
        for number, row in enumerate(book[sheet].iter_rows(values_only=True), start=1):
            yield number, [_format_cell(value) for value in row]
    except AnnotatorError:
        raise
    except Exception as error:  # openpyxl raises a dozen kinds for damaged files
        raise AnnotatorError(f"{path} cannot be read to its end: {type(error).__name__}: {error}.") from error
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
