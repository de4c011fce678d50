"""Labels as columns of text, for long tables and provenance files."""

from collections.abc import Callable

import numpy as np

from annotator.exchange.files.csv_cells import CsvField
from annotator.exchange.formats.export_view import PROBABILITY_DIGITS, STATE_WORDS, Block, View
from annotator.exchange.formats.shared.times import format_iso_time

LONG_COLUMNS = ("image", "class", "state", "source", "annotator", "decided_at")
VALUE_TEXTS = ("0", "1", "")  # by value 0, 1, and -1 (UNKNOWN), which indexes the last
SECONDS_DIGITS = 3


def format_cell_column(name: str, view: View, block: Block, field: CsvField) -> list[str]:
    """Return the column `name` ("class", "state", ...) of a long table as texts, one per label with a source."""
    rows, columns = block.sources.nonzero()
    cells = rows, columns
    if name == "class":
        names = [field(class_.name) for class_ in view.classes]
        return [names[column] for column in columns.tolist()]
    if name == "state":
        return [STATE_WORDS[state] for state in block.states[cells].tolist()]
    if name == "value":
        return [VALUE_TEXTS[value] for value in block.values[cells].tolist()]
    if name == "source":
        sources = [field(source) for source in view.sources]
        return [sources[source] for source in block.sources[cells].tolist()]
    if name == "annotator":
        people = [field(person) for person in view.annotators]
        return [people[person] for person in block.annotators[cells].tolist()]
    if name == "decided_at":
        return format_values(block.decided_at[cells], format_iso_time)
    numbers, digits = (
        (block.seconds, SECONDS_DIGITS) if name == "seconds" else (block.probabilities, PROBABILITY_DIGITS)
    )
    return format_values(numbers[cells], lambda number: f"{round(number, digits)}")


def format_values(values: np.ndarray, word: Callable[[float], str]) -> list[str]:
    """Format numbers by `word`, which is called once per distinct value, with "" for NaN."""
    unique, which = np.unique(values, return_inverse=True)
    words = ["" if value != value else word(value) for value in unique.tolist()]
    return [words[place] for place in which.tolist()]
