"""The records of a Croissant description: one JSON object per image with the class names in each state.

The file is JSON, not JSON lines or CSV, because mlcroissant reads those with pandas, which changes names such as
`NA` and `007`.
"""

import json
from typing import Any, TextIO

from annotator.exchange.formats.export_view import (
    STATE_ABSENT,
    STATE_PRESENT,
    STATE_UNANSWERED,
    STATE_UNSURE,
    Block,
    View,
)
from annotator.exchange.formats.shared.croissant_names import RECORDS_KEY, STATE_FIELDS

_STATE_OF_FIELD = dict(zip(STATE_FIELDS, (STATE_PRESENT, STATE_ABSENT, STATE_UNSURE, STATE_UNANSWERED), strict=True))


def write_records(view: View, file: TextIO) -> None:
    """Write all records, one per line, with one block in memory."""
    file.write(f'{{"{RECORDS_KEY}": [')
    separator = "\n"
    for block in view.blocks():
        for row in range(len(block.images)):
            file.write(separator + json.dumps(_build_record(view, block, row), ensure_ascii=False))
            separator = ",\n"
    file.write("\n]}\n")


def _build_record(view: View, block: Block, row: int) -> dict[str, Any]:
    image, states = block.images[row], block.states[row]
    record: dict[str, Any] = {"image": image.name, "sha256": image.sha256}
    if view.splits:
        record["split"] = block.splits[row] or None
    for field, state in _STATE_OF_FIELD.items():
        record[field] = [view.classes[column].name for column in (states == state).nonzero()[0].tolist()]
    return record
