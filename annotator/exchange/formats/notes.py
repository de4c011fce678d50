"""Flags and comments beside the labels, as CSV: one row each, image by image, the oldest first."""

from typing import TextIO

from annotator.exchange.formats.csv_table import iso_time
from annotator.exchange.formats.table import Table
from annotator.exchange.formats.text_cells import Rows

COLUMNS = ("image", "kind", "note", "annotator", "written_at")


def write_notes(table: Table, file: TextIO) -> None:
    """image, flag or comment, its text, who wrote it and when; only the header where there is none."""
    rows = Rows(file, table.raw)
    rows.row(COLUMNS)
    for image in table.images:
        for note in table.notes.get(image.id, ()):
            rows.row([image.name, note.kind, note.text, note.annotator, iso_time(note.at)])
