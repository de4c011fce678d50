"""Hugging Face image folders without declared features, read like other tables.

metadata.jsonl or .csv names images in `file_name` (https://huggingface.co/docs/datasets/image_dataset).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.huggingface_columns import STATE_COLUMNS
from annotator.exchange.formats.huggingface_tables import DatasetTable
from annotator.exchange.formats.shared import table_items
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.reading.cell_words import Cell, to_cell
from annotator.exchange.reading.reading_options import ReadingOptions

FILE_COLUMN = "file_name"


def is_plain(tables: Sequence[DatasetTable]) -> bool:
    """Return whether tables have no features, and only texts, numbers and flat lists."""
    if any(table.features for table in tables):
        return False
    first = list(islice(tables[0].rows(None), table_items.SAMPLE_ROWS))
    return all(FILE_COLUMN in row and row.keys().isdisjoint(STATE_COLUMNS) for row in first) and not any(
        isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value))
        for row in first
        for value in row.values()
    )


def read(path: Path, tables: Sequence[DatasetTable], problems: Problems, options: ReadingOptions) -> Contents:
    names: dict[str, None] = {}
    for table in tables:
        for row in islice(table.rows(None), table_items.SAMPLE_ROWS):
            names |= dict.fromkeys(row)
    columns, table_of = list(names), {table.name: table for table in tables}

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        for table in tables:
            for number, row in enumerate(table.rows(None), start=1):
                yield f"{table.name}, row {number}", [to_cell(row.get(name)) for name in columns]

    def of(place: object) -> DatasetTable:
        return table_of[str(place).rpartition(", row ")[0]]

    def file_of(place: int | str, name: str) -> str:
        return find_file_inside(path, of(place).folder + name)

    table = table_items.RawTable(
        path,
        columns,
        rows(),
        columns.index(FILE_COLUMN),
        find_class_names(path / FILE_COLUMN),
        place="row",
        file_of=file_of,
        folder=path,
    )
    found = table_items.interpret_table(table, problems, options)

    def items() -> Iterator[Item]:
        for item in found.items:
            if split := of(item.place).split:
                item.attributes = {**item.attributes, "split": split}
            yield item

    return replace(found, items=items())
