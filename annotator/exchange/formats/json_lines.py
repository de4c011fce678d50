"""JSON lines: one object per image with its values and, per class, where each came from."""

import json
from typing import TextIO

from annotator.exchange.formats.csv_table import GUARANTEE, iso_time, when
from annotator.exchange.formats.table import Table


def write_lines(table: Table, file: TextIO) -> None:
    """{"image", "sha256", "width", "height", "labels": {class: 1 | 0 | null}, "provenance": {class: {...}}} a line, and
    "flag" with the note of a flagged image, "comments" with [{"text", "annotator", "written_at"}] of one with comments,
    "missing" with why the image cannot be shown any more."""
    for image, cells in table.rows():
        named = list(zip((class_.name for class_ in table.classes), cells, strict=True))
        row = {
            "image": image.name,
            "sha256": image.sha256,
            "width": image.width,
            "height": image.height,
            "labels": {name: cell.value for name, cell in named},
            "provenance": {
                name: {
                    "state": cell.state,
                    "source": cell.source,
                    "annotator": cell.annotator or None,
                    "decided_at": when(cell) or None,
                    "probability": cell.probability,
                }
                | ({name: getattr(cell.accepted, name) for name in GUARANTEE} if cell.accepted else {})
                for name, cell in named
                if cell.source
            },
        }
        notes = table.notes.get(image.id, ())
        for note in notes:
            if note.kind == "flag":
                row["flag"] = note.text
        if comments := [note for note in notes if note.kind == "comment"]:
            row["comments"] = [
                {"text": note.text, "annotator": note.annotator, "written_at": iso_time(note.at)} for note in comments
            ]
        if image.id in table.missing:
            row["missing"] = table.missing[image.id]
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
