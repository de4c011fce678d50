"""The first rows of a table, and the decisions about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotator.exchange.reading.cell_words import UNKNOWN_WORDS, Cell, parse_list, parse_vector
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions
from annotator.exchange.reading.row_rules import RowRule

NUMBERS_AS_COUNTS, NUMBERS_AS_PRESENT_COUNTS, NUMBERS_AS_IDS, NUMBERS_AS_FACTS = (
    "counts",
    "present-counts",
    "ids",
    "facts",
)
NUMBER_MEANINGS = (NUMBERS_AS_COUNTS, NUMBERS_AS_PRESENT_COUNTS, NUMBERS_AS_IDS, NUMBERS_AS_FACTS)
"""The values of Reading.numbers."""


@dataclass
class ColumnMeanings:
    """The meaning of a table's columns, by column index."""

    image: int
    folder: int | None = None
    sha256: int | None = None
    score: int | None = None
    event: int | None = None
    # column that says which rows hold answers of people, by `row_rule`
    review: int | None = None
    row_rule: RowRule | None = None
    # columns of present class names
    labels: list[int] = field(default_factory=list)
    # columns of answers per class
    classes: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    # columns in `classes` with counts
    counts: frozenset[int] = frozenset()
    # columns that become fields
    facts: list[int] = field(default_factory=list)
    # "" for none
    separator: str = ""
    # state by lower-case word, None for unanswered
    states: dict[str, int | None] = field(default_factory=dict)
    # normalized words for "no class"
    empty_words: frozenset[str] = frozenset()
    # classes of the vectors of 0 and 1 in the label column, in their order. Empty without vectors
    vector_names: Sequence[str] = ()
    class_of: Mapping[str, str] = field(default_factory=dict)


class TableSample:
    """The first rows of a table, with the decisions about them.

    Args:
        rows: Cells as from `to_cell`.
        reading: Overrides every decision.

    Attributes:
        sentences: Remarks that need no decision.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        reading: ReadingOptions,
        class_names: Sequence[str] = (),
    ):
        self.names, self.reading, self.class_names = names, reading, class_names
        self.cells = [[row[place] for row in rows] for place in range(len(names))]
        self.interpretations: list[Interpretation] = []
        self.sentences: list[str] = []

    def list_texts(self, place: int) -> list[str]:
        return [text for cell in self.cells[place] if isinstance(cell, str) and (text := cell.strip())]

    def list_answer_texts(self, place: int) -> list[str]:
        """Return a column's texts, without words that mean unanswered."""
        return [text for text in self.list_texts(place) if text.lower() not in UNKNOWN_WORDS]

    def list_label_words(self, place: int) -> list[str]:
        """Return the texts in a column and in its lists, without words that mean unanswered."""
        words = []
        for cell in self.cells[place]:
            parts = cell if not isinstance(cell, str) else [cell] if (found := parse_list(cell)) is None else found
            words += [word for part in parts if (word := part.strip()) and word.lower() not in UNKNOWN_WORDS]
        return words

    def measure_vectors(self, place: int) -> int:
        """Return the length of the vectors of 0 and 1 in a column, or 0 if a cell is none of the same length."""
        lengths = {len(parse_vector(cell)) for cell in self.cells[place] if cell not in ("", [])}
        return lengths.pop() if len(lengths) == 1 else 0

    def add_interpretation(
        self, field_: str, value: str, why: str, is_sure: bool = True, others: Sequence[str] = ()
    ) -> None:
        """Record a decision of the reader, unless the user's options set its field."""
        if getattr(self.reading, field_) is None:
            self.interpretations.append(Interpretation(field_, value, why, is_sure, others))

    def is_text_column(self, place: int) -> bool:
        """Return whether all cells of a column are texts, and none a list."""
        return all(isinstance(cell, str) for cell in self.cells[place])
