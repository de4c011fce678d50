"""CSV (RFC 4180): one row an image and one column a class (1, 0, empty), or one row a cell; columns can be chosen.

The source of each value is in the file beside it (provenance.py), which has a row for unsure cells too.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from annotator.errors import AnnotatorError, several
from annotator.exchange.files.text_cells import Field
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.cell_columns import LONG, VALUES, cell_column
from annotator.exchange.formats.shared.label_table import read, read_as, recognise
from annotator.exchange.formats.view import Block, Columns, Output, View

OF_IMAGE = ("image", "sha256", "width", "height", "split", "missing", "event", "frame")
OF_CELL = ("class", "state", "value", "source", "annotator", "decided_at", "seconds", "probability")


def write_csv(view: View, out: Output) -> None:
    """Write a header and one row an image, or in the long form one row for each answered or filled cell."""
    names = columns_of(view)
    field = Field(view.raw)
    with out.text() as file:
        file.write(",".join(field(name) for _, name in names) + "\n")
        rows = long_rows if view.columns.long else wide_rows
        for block in view.blocks():
            file.writelines(rows(view, block, [column for column, _ in names], field))


def columns_of(view: View) -> list[tuple[str, str]]:
    """Return (column, its name in the file) of a table of this view.

    Raises AnnotatorError for unknown columns, and if two columns would have the same name.
    """
    names = [class_.name for class_ in view.classes]
    if view.columns.chosen:
        known = possible_columns(view.columns, names, view.attributes)
        problems = [
            f"there is no column {name!r}" + (" in the long form" if view.columns.long else "")
            for name, _ in view.columns.chosen
            if name not in known
        ]
        written = [name for _, name in view.columns.chosen]
        twice = sorted(name for name, count in Counter(written).items() if count > 1)
        problems += [f"two columns are called {name!r}" for name in twice]
        if problems:
            raise several("These columns cannot be written:", problems)
        return list(view.columns.chosen)
    usual = usual_columns(view.columns, names, bool(view.splits))
    if usual.count("split") > 1:
        raise AnnotatorError("A class is called 'split', as the column of splits is: choose the columns by name.")
    return [(name, name) for name in usual]


def usual_columns(columns: Columns, classes: Sequence[str], has_splits: bool) -> list[str]:
    """Return the columns of a table for which none are chosen."""
    split = ["split"] if has_splits else []
    if columns.long:
        return ["image", *split, *LONG[1:], *(["seconds"] if columns.seconds else []), "probability"]
    return ["image", *split, *classes]


def possible_columns(columns: Columns, classes: Sequence[str], attributes: Sequence[str]) -> set[str]:
    """Return all columns that can be chosen."""
    return {*OF_IMAGE, *attributes, *(OF_CELL if columns.long else classes)}


def wide_rows(view: View, block: Block, names: Sequence[str], field: Field) -> Iterator[str]:
    """Yield one line for each image of the block."""
    column_of = {class_.name: column for column, class_ in enumerate(view.classes)}
    of_images = {name: _of_image(name, block, field) for name in names if name not in column_of}
    classes = [column_of[name] for name in names if name in column_of]
    values = block.values[:, classes].tolist()
    is_class = [name in column_of for name in names]
    if is_class == sorted(is_class):  # images first, as usual: no search for each cell
        leading = [of_images[name] for name in names if name not in column_of]
        for row, cells in enumerate(values):
            yield ",".join([*(column[row] for column in leading), *(VALUES[value] for value in cells)]) + "\n"
        return
    for row, cells in enumerate(values):
        rest = iter(cells)
        yield ",".join(VALUES[next(rest)] if name in column_of else of_images[name][row] for name in names) + "\n"


def long_rows(view: View, block: Block, names: Sequence[str], field: Field) -> Iterator[str]:
    """Yield one line for each answered or filled cell of the block."""
    rows, _ = block.sources.nonzero()
    of_images = {name: _of_image(name, block, field) for name in names if name not in OF_CELL}
    listed = [
        [of_images[name][row] for row in rows.tolist()] if name in of_images else cell_column(name, view, block, field)
        for name in names
    ]
    for line in zip(*listed, strict=True):
        yield ",".join(line) + "\n"


def _of_image(name: str, block: Block, field: Field) -> list[str]:
    if name in ("split", "missing"):
        return [field(text) for text in (block.splits if name == "split" else block.missing)]
    if name == "image":
        return [field(image.name) for image in block.images]
    if name in ("event", "frame"):
        events = [block.event(row) for row in range(len(block.images))]
        return ["" if event is None else str(event.id if name == "event" else event.frame) for event in events]
    if name in OF_IMAGE:
        return [str(getattr(image, name)) for image in block.images]
    return [field(facts.get(name, "")) for facts in block.attributes]


CSV = Format(
    name="csv",
    about="one row per image, one column per class (or one row per answer); read by everything",
    ending=".csv",
    recognise=partial(recognise, delimiters=",;"),
    read=read,
    write=write_csv,
    lost=Lost(unknown=False, unsure=False, provenance=True),
    read_as=read_as,
    is_general=True,
)

TSV = Format(
    name="tsv",
    about="the same with tabs between columns",
    ending=".tsv",
    recognise=partial(recognise, delimiters="\t"),
    read=read,
    read_as=read_as,
    is_general=True,
)
