"""CSV (RFC 4180): one row an image and one column a class (1, 0, empty), or one row a cell; columns can be chosen.

Where each value came from stands in the file beside it (provenance.py), which has a row for unsure ones too.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

from annotator.errors import AnnotatorError, several
from annotator.exchange.files.text_cells import Field
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.label_table import read, recognise
from annotator.exchange.formats.view import STATE_WORDS, Block, Output, View

OF_IMAGE = ("image", "sha256", "width", "height", "split", "missing")
OF_CELL = ("class", "state", "value", "source", "annotator", "decided_at", "seconds", "probability")
LONG = ("image", "class", "state", "source", "annotator", "decided_at")
WORDS = ("0", "1", "")  # of a value; the last is UNKNOWN


def write_csv(view: View, out: Output) -> None:
    """The chosen columns, or all of the classes; a row for each answered or filled cell in the long form."""
    names = columns_of(view)
    field = Field(view.raw)
    with out.text() as file:
        file.write(",".join(field(name) for _, name in names) + "\n")
        rows = long_rows if view.columns.long else wide_rows
        for block in view.blocks():
            file.writelines(rows(view, block, [column for column, _ in names], field))


def columns_of(view: View) -> list[tuple[str, str]]:
    """(column, its name in the file) of a table of this view. Raises AnnotatorError for columns that there are not."""
    if view.columns.chosen:
        known = {*OF_IMAGE, *view.attributes, *(OF_CELL if view.columns.long else ())}
        known |= set() if view.columns.long else {class_.name for class_ in view.classes}
        problems = [
            f"there is no column {name!r}" + (" in the long form" if view.columns.long else "")
            for name, _ in view.columns.chosen
            if name not in known
        ]
        written = [name for _, name in view.columns.chosen]
        problems += [
            f"two columns are called {name!r}" for name in sorted({n for n in written if written.count(n) > 1})
        ]
        if problems:
            raise several("These columns cannot be written:", problems)
        return list(view.columns.chosen)
    if view.columns.long:
        usual = [*LONG, *(["seconds"] if view.columns.seconds else []), "probability"]
    else:
        usual = ["image", *(class_.name for class_ in view.classes)]
    if view.splits and "split" in usual:
        raise AnnotatorError("A class is called 'split', as the column of splits is: choose the columns by name.")
    if view.splits:
        usual.insert(1, "split")
    return [(name, name) for name in usual]


def wide_rows(view: View, block: Block, names: Sequence[str], field: Field) -> Iterator[str]:
    """One line an image."""
    column_of = {class_.name: column for column, class_ in enumerate(view.classes)}
    of_images = {name: _of_image(name, block, field) for name in names if name not in column_of}
    classes = [column_of[name] for name in names if name in column_of]
    values = block.values[:, classes].tolist()
    is_class = [name in column_of for name in names]
    if is_class == sorted(is_class):  # images first, as usual: no search for each cell
        leading = [of_images[name] for name in names if name not in column_of]
        for row, cells in enumerate(values):
            yield ",".join([*(column[row] for column in leading), *(WORDS[value] for value in cells)]) + "\n"
        return
    for row, cells in enumerate(values):
        rest = iter(cells)
        yield ",".join(WORDS[next(rest)] if name in column_of else of_images[name][row] for name in names) + "\n"


def long_rows(view: View, block: Block, names: Sequence[str], field: Field) -> Iterator[str]:
    """One line an answered or filled cell."""
    rows, _ = block.sources.nonzero()
    of_images = {name: _of_image(name, block, field) for name in names if name not in OF_CELL}
    listed = [
        [of_images[name][row] for row in rows.tolist()] if name in of_images else cell_column(name, view, block, field)
        for name in names
    ]
    for line in zip(*listed, strict=True):
        yield ",".join(line) + "\n"


def cell_column(name: str, view: View, block: Block, field: Field) -> list[str]:
    """One column of the cells with a source, as text, image by image."""
    rows, columns = block.sources.nonzero()
    cells = rows, columns
    if name == "class":
        names = [field(class_.name) for class_ in view.classes]
        return [names[column] for column in columns.tolist()]
    if name == "state":
        return [STATE_WORDS[state] for state in block.states[cells].tolist()]
    if name == "value":
        return [WORDS[value] for value in block.values[cells].tolist()]
    if name == "source":
        sources = [field(source) for source in view.sources]
        return [sources[source] for source in block.sources[cells].tolist()]
    if name == "annotator":
        people = [field(person) for person in view.annotators]
        return [people[person] for person in block.annotators[cells].tolist()]
    if name == "decided_at":
        return _once(block.decided_at[cells], iso_time)
    numbers = block.seconds if name == "seconds" else block.probabilities
    digits = 3 if name == "seconds" else 4
    return _once(numbers[cells], lambda number: f"{round(number, digits)}")


def iso_time(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _of_image(name: str, block: Block, field: Field) -> list[str]:
    if name in ("split", "missing"):
        return [field(text) for text in (block.splits if name == "split" else block.missing)]
    if name == "image":
        return [field(image.name) for image in block.images]
    if name in OF_IMAGE:
        return [str(getattr(image, name)) for image in block.images]
    return [field(facts.get(name, "")) for facts in block.attributes]


def _once(values: np.ndarray, in_words: Callable[[float], str]) -> list[str]:
    """Each value in words, "" for nan; equal ones, of which there are many, are worded once."""
    unique, which = np.unique(values, return_inverse=True)
    words = ["" if value != value else in_words(value) for value in unique.tolist()]
    return [words[place] for place in which.tolist()]


CSV = Format(
    name="csv",
    about="one row per image, one column per class (or one row per answer); read by everything",
    ending=".csv",
    recognise=partial(recognise, delimiters=",;"),
    read=read,
    write=write_csv,
    lost=Lost(unknown=False, unsure=False, provenance=True),
)

TSV = Format(
    name="tsv",
    about="the same with tabs between columns",
    ending=".tsv",
    recognise=partial(recognise, delimiters="\t"),
    read=read,
)
