"""CSV: one row per image, one column per class (1, 0, empty); beside it a CSV of where each value came from.

The second file has the columns image,class,state,... and can be read back with `annotator init --labels`.
"""

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from annotator.store.arrays import replacing
from annotator.store.formats.table import Cell, Table

PROVENANCE = ("image", "class", "state", "source", "annotator", "decided_at", "probability")
PROMISE = ("run", "threshold", "precision", "confidence")
"""Columns that only a data set with automatically accepted cells has."""


def write_csv(table: Table, target: Path) -> list[Path]:
    """Write `target` and `target`.provenance.csv; returns both. Raises DiskFull, leaving what was there before."""
    beside = provenance_path(target)
    # The table is renamed last: whoever finds a new one finds its provenance beside it.
    with replacing(target) as table_part, replacing(beside) as beside_part:
        with table_part.open("w", newline="", encoding="utf-8") as file:
            write_values(table, file)
        with beside_part.open("w", newline="", encoding="utf-8") as file:
            write_provenance(table, file)
    return [target, beside]


def provenance_path(target: Path) -> Path:
    return target.with_name(f"{target.stem}.provenance.csv")


def write_values(table: Table, file: TextIO) -> None:
    """The table itself: image, then one column per class."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["image", *(one.name for one in table.classes)])
    for image, cells in table.rows():
        writer.writerow([image.name, *("" if cell.value is None else cell.value for cell in cells)])


def write_provenance(table: Table, file: TextIO) -> None:
    """One row per answered or filled cell."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(PROVENANCE + (PROMISE if table.accepted else ()))
    for image, cells in table.rows():
        for one, cell in zip(table.classes, cells, strict=True):
            if cell.source:
                probability = "" if cell.probability is None else cell.probability
                row = [image.name, one.name, cell.state, cell.source, cell.annotator, when(cell), probability]
                if table.accepted:
                    row += [getattr(cell.accepted, name, "") for name in PROMISE]
                writer.writerow(row)


def when(cell: Cell) -> str:
    """The time of a decision as ISO 8601 in UTC, empty where no person decided."""
    if cell.decided_at is None:
        return ""
    return datetime.fromtimestamp(cell.decided_at, UTC).isoformat(timespec="milliseconds")
