"""Columns that are empty in the first rows of a table, which decide what its columns mean, and filled in later ones."""

from collections.abc import Sequence

from annotator.exchange.reading.cell_words import UNKNOWN_WORDS, Cell, build_state_words, normalize_word
from annotator.exchange.reading.column_names import AMBIGUOUS_COLUMN_NAMES, is_fact_column, is_score_column
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.exchange.reading.table_sample import ColumnMeanings


class LateColumns:
    """The columns of a table that are empty in its first rows, with their first value of a later row.

    Args:
        cells: Cells of the first rows, by column.
        columns: What the first rows made of the columns.
    """

    def __init__(
        self, names: Sequence[str], cells: Sequence[Sequence[Cell]], columns: ColumnMeanings, options: ReadingOptions
    ):
        self._names, self._columns, self._options = names, columns, options
        self._states = build_state_words(options)
        self._empty = [place for place in columns.facts if not any(map(_has_value, cells[place]))]
        self._first: dict[int, tuple[int | str, Cell]] = {}

    def add_row(self, place: int | str, row: Sequence[Cell]) -> None:
        """Note the first value of each column that was empty so far."""
        if filled := [column for column in self._empty if _has_value(row[column])]:
            self._first |= {column: (place, row[column]) for column in filled}
            self._empty = [column for column in self._empty if column not in filled]

    def make_questions(self) -> list[Interpretation]:
        """Return a question for each column whose late values may be answers, class names or scores."""
        found: list[Interpretation] = []
        for column, (place, cell) in self._first.items():
            name = self._names[column]
            start = f"`{name}` is empty in the first rows and holds {str(cell)[:40]!r} from row {place} on: "
            if is_score_column(name):
                if self._options.score_column is None and self._columns.labels:
                    why = start + f"a model's scores, or facts of the images ({NONE_VALUE})"
                    found.append(Interpretation("score_column", name, why, False, (NONE_VALUE,)))
            elif not is_fact_column(name) and self._is_answer(cell):
                found += self._ask_answers(name, start)
        return found

    def _is_answer(self, cell: Cell) -> bool:
        return isinstance(cell, str) and cell.strip().lower() in self._states

    def _ask_answers(self, name: str, start: str) -> list[Interpretation]:
        if self._options.class_columns is not None or self._options.label_columns is not None:
            return []
        if self._columns.labels:
            if normalize_word(name) in AMBIGUOUS_COLUMN_NAMES:  # as in the first rows, these are facts beside labels
                return []
            value = ",".join(self._names[place] for place in self._columns.labels)
            why = start + f"answers for a class of this name, beside `{value}`, or facts of the images"
            return [Interpretation("label_columns", value, why, False, (NONE_VALUE,))]
        others = ",".join(self._names[place] for place in self._columns.classes)
        every = f"{others},{name}" if others else name
        return [Interpretation("class_columns", every, start + "a class, or a fact of the images", False, (others,))]


def _has_value(cell: Cell) -> bool:
    return bool(cell) and not (isinstance(cell, str) and cell.strip().lower() in UNKNOWN_WORDS)
