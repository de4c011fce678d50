"""CSV: one row per image, one column per class (1, 0, empty); beside it a CSV of where each value came from.

The second file has the columns image,class,state,... and can be read back with `annotator init --labels`.
"""

from datetime import UTC, datetime
from typing import TextIO

from annotator.exchange.formats.table import Cell, Table
from annotator.exchange.formats.text_cells import Rows

PROVENANCE = ("image", "class", "state", "source", "annotator", "decided_at", "probability")
GUARANTEE = ("run", "threshold", "precision", "confidence")
"""Columns of data sets with auto-accepted cells only."""
MISSING = ("missing",)
"""Why the image cannot be shown any more; a column of data sets with such images only."""


def write_values(table: Table, file: TextIO) -> None:
    """The table itself: image, then one column per class."""
    rows = Rows(file, table.raw)
    rows.row(["image", *(class_.name for class_ in table.classes)])
    for image, cells in table.rows():
        rows.row([image.name, *("" if cell.value is None else cell.value for cell in cells)])


def write_provenance(table: Table, file: TextIO) -> None:
    """One row per answered or filled cell."""
    rows = Rows(file, table.raw)
    rows.row(PROVENANCE + (GUARANTEE if table.accepted else ()) + (MISSING if table.missing else ()))
    for image, cells in table.rows():
        for class_, cell in zip(table.classes, cells, strict=True):
            if cell.source:
                probability = "" if cell.probability is None else cell.probability
                row = [image.name, class_.name, cell.state, cell.source, cell.annotator, when(cell), probability]
                if table.accepted:
                    row += [getattr(cell.accepted, name, "") for name in GUARANTEE]
                if table.missing:
                    row.append(table.missing.get(image.id, ""))
                rows.row(row)


def when(cell: Cell) -> str:
    """The time of a decision as ISO 8601 in UTC, empty where no person decided."""
    return "" if cell.decided_at is None else iso_time(cell.decided_at)


def iso_time(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
