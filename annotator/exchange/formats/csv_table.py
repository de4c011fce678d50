"""CSV tables (RFC 4180), wide (one row per image) or long (one row per image and class).

Label provenance and unsure labels are in separate files (sidecars.py).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.csv_cells import CsvField
from annotator.exchange.formats.export_view import Block, Output, TableColumns, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.cell_columns import LONG_COLUMNS, VALUE_TEXTS, format_cell_column
from annotator.exchange.formats.shared.label_table import read_table, recognize_table

IMAGE_COLUMNS = ("image", "sha256", "width", "height", "split", "missing", "event", "frame")
CELL_COLUMNS = ("class", "state", "value", "source", "annotator", "decided_at", "seconds", "probability")


def write_csv(view: View, out: Output) -> None:
    """Write a header, and a row per image (wide) or per answered or filled-in label (long)."""
    names = select_columns(view)
    field = CsvField(view.raw)
    with out.open_text() as file:
        file.write(",".join(field(name) for _, name in names) + "\n")
        rows = format_long_rows if view.columns.long else format_wide_rows
        for block in view.blocks():
            file.writelines(rows(view, block, [column for column, _ in names], field))


def select_columns(view: View) -> list[tuple[str, str]]:
    """Return (column, name in the file) of the chosen columns. Raises AnnotatorError for unknown or duplicate names."""
    names = [class_.name for class_ in view.classes]
    if view.columns.chosen:
        known = available_columns(view.columns, names, view.attributes)
        problems = [
            f"there is no column {name!r}" + (" in the long form" if view.columns.long else "")
            for name, _ in view.columns.chosen
            if name not in known
        ]
        written = [name for _, name in view.columns.chosen]
        twice = sorted(name for name, count in Counter(written).items() if count > 1)
        problems += [f"two columns are called {name!r}" for name in twice]
        if problems:
            raise combine_problems("These columns cannot be written:", problems)
        return list(view.columns.chosen)
    usual = default_columns(view.columns, names, bool(view.splits))
    if usual.count("split") > 1:
        raise AnnotatorError("A class is called 'split', as the column of splits is: choose the columns by name.")
    return [(name, name) for name in usual]


def default_columns(columns: TableColumns, classes: Sequence[str], has_splits: bool) -> list[str]:
    split = ["split"] if has_splits else []
    if columns.long:
        return ["image", *split, *LONG_COLUMNS[1:], *(["seconds"] if columns.seconds else []), "probability"]
    return ["image", *split, *classes]


def available_columns(columns: TableColumns, classes: Sequence[str], attributes: Sequence[str]) -> set[str]:
    return {*IMAGE_COLUMNS, *attributes, *(CELL_COLUMNS if columns.long else classes)}


def format_wide_rows(view: View, block: Block, names: Sequence[str], field: CsvField) -> Iterator[str]:
    column_of = {class_.name: column for column, class_ in enumerate(view.classes)}
    of_images = {name: _format_image_column(name, block, field) for name in names if name not in column_of}
    classes = [column_of[name] for name in names if name in column_of]
    values = block.values[:, classes].tolist()
    is_class = [name in column_of for name in names]
    if is_class == sorted(is_class):  # images first, as usual: no search for each cell
        leading = [of_images[name] for name in names if name not in column_of]
        for row, cells in enumerate(values):
            yield ",".join([*(column[row] for column in leading), *(VALUE_TEXTS[value] for value in cells)]) + "\n"
        return
    for row, cells in enumerate(values):
        rest = iter(cells)
        yield ",".join(VALUE_TEXTS[next(rest)] if name in column_of else of_images[name][row] for name in names) + "\n"


def format_long_rows(view: View, block: Block, names: Sequence[str], field: CsvField) -> Iterator[str]:
    """Yield one line per answered or filled-in label of the block."""
    rows, _ = block.sources.nonzero()
    of_images = {name: _format_image_column(name, block, field) for name in names if name not in CELL_COLUMNS}
    listed = [
        [of_images[name][row] for row in rows.tolist()]
        if name in of_images
        else format_cell_column(name, view, block, field)
        for name in names
    ]
    for line in zip(*listed, strict=True):
        yield ",".join(line) + "\n"


def _format_image_column(name: str, block: Block, field: CsvField) -> list[str]:
    if name in ("split", "missing"):
        return [field(text) for text in (block.splits if name == "split" else block.missing)]
    if name == "image":
        return [field(image.name) for image in block.images]
    if name in ("event", "frame"):
        events = [block.event(row) for row in range(len(block.images))]
        return ["" if event is None else str(event.id if name == "event" else event.frame) for event in events]
    if name in IMAGE_COLUMNS:
        return [str(getattr(image, name)) for image in block.images]
    return [field(facts.get(name, "")) for facts in block.attributes]


CSV = Format(
    name="csv",
    about="one row per image, one column per class (or one row per answer); read by everything",
    ending=".csv",
    recognize=partial(recognize_table, delimiters=",;"),
    read=read_table,
    write=write_csv,
    lost=FormatLosses(unknown=False, unsure=False, provenance=True),
    is_general=True,
)

TSV = Format(
    name="tsv",
    about="the same with tabs between columns",
    ending=".tsv",
    recognize=partial(recognize_table, delimiters="\t"),
    read=read_table,
    is_general=True,
)
