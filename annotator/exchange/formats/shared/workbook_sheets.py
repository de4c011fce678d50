"""The sheet of a workbook that holds the table, for Excel and OpenDocument."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO, check_column_count
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.formats.shared.table_items import RawTable, interpret_table
from annotator.exchange.reading.cell_words import Cell
from annotator.exchange.reading.reading_options import ReadingOptions

SheetRows = Iterator[tuple[int, list[Cell]]]


class MergedCells(NamedTuple):
    """A merged range, such as "B3:B4", with its numbers of columns and rows from 1."""

    name: str
    left: int
    top: int
    bottom: int


class WorkbookSheet(NamedTuple):
    """A sheet, whose rows and merged cells are read on demand."""

    name: str
    is_hidden: bool
    read_rows: Callable[[], SheetRows]
    find_merged_cells: Callable[[], Iterator[MergedCells]]


def check_unpacked_size(path: Path) -> None:
    """Raise AnnotatorError for a workbook that is not a zip file, or unpacks to many times its size."""
    try:
        with ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (OSError, BadZipFile) as error:
        raise AnnotatorError(f"{path} cannot be read as a workbook: {error}.") from error
    if size > max(ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO * path.stat().st_size):
        raise AnnotatorError(
            f"{path} would unpack to {size:,} bytes, more than {MAX_UNPACK_RATIO} times its size. If it is right, save "
            "it as CSV."
        )


def read_first_table(
    path: Path, all_sheets: Sequence[WorkbookSheet], problems: Problems, options: ReadingOptions
) -> Contents:
    """Return the labels of the first sheet with rows, visible ones first. Raises AnnotatorError if all are empty."""
    filled_sheets = [one for one in all_sheets if len(list(islice(one.read_rows(), 2))) == 2]
    sheets = sorted(filled_sheets, key=lambda sheet: sheet.is_hidden)
    if not sheets:
        raise AnnotatorError(f"{path} has no sheet with a header and rows. The first row names the columns.")
    # a title stands above some tables
    filled = (one for one in sheets[0].read_rows() if sum(map(bool, one[1])) > 1)
    header, first = next(filled, None) or next(sheets[0].read_rows())
    names = [cell.strip() if isinstance(cell, str) else "" for cell in first]
    check_column_count(path, len(names))
    while names and not names[-1]:
        names.pop()
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise AnnotatorError(f"{path} has two columns called {', '.join(map(repr, twice))}.")

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        is_after_gap = False
        for number, row in sheets[0].read_rows():
            if number > header and is_after_gap and _has_names(row, names):
                problems.add(f"row {number}: a second table begins here. Move it to a workbook of its own")
                return
            is_after_gap = not any(row)
            if number > header and any(row):
                yield number, [*row[: len(names)], *[""] * (len(names) - len(row))]

    _report_merged_cells(sheets[0], header, len(names), problems)
    remarks = []
    if len(sheets) > 1 or sheets[0].is_hidden:
        read_sheet, *others = (f"{one.name!r}{' (hidden)' if one.is_hidden else ''}" for one in sheets[:6])
        remarks.append(f"the sheet {read_sheet} is read")
        if others:
            remarks.append(f"sheets that are not read: {', '.join(others)}. Save each as a file of its own")
    table = RawTable(path, names, rows(), None, find_class_names(path), place="row", remarks=remarks)
    return interpret_table(table, problems, options)


def _has_names(row: Sequence[Cell], names: Sequence[str]) -> bool:
    """Return whether a row repeats names of columns, as the header of another table does."""
    cells = {cell.strip().casefold() for cell in row if isinstance(cell, str) and cell.strip()}
    return len(cells & {name.casefold() for name in names if name}) > 1


def _report_merged_cells(sheet: WorkbookSheet, header: int, width: int, problems: Problems) -> None:
    """Report merged cells below the header, of which a file holds the value for the first cell only."""
    for found in sheet.find_merged_cells():
        if found.bottom > header and found.left <= width:
            problems.add(
                f"row {max(found.top, header + 1)}: the cells {found.name} are merged, and only the first holds the "
                "value. Split them (Unmerge), and write the value into each row that it is about"
            )
