"""The first rows of a table and their interpretation, on which table_interpreter.py and cell_meanings.py build."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotator.exchange.reading.cell_words import UNKNOWN_WORDS, Cell
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions

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
    """The meaning of the columns of a table, each by its place.

    Attributes:
        image, folder, sha256, score, event: Places of these columns, None without one.
        labels: Columns whose cells name present classes.
        classes: Columns with an answer of one class in each cell.
        scores: Columns with a score of one class in each cell.
        counts: Those of `classes` whose cells are counts.
        facts: Columns that become facts of the image.
        separator: Between the labels of a cell, "" for none.
        states: Word in small letters -> state, None for unknown.
        empty_words: Words, as `plain` gives them, that say that no class is present.
        class_of: Text of a cell -> name of the class, for ids.
    """

    image: int
    folder: int | None = None
    sha256: int | None = None
    score: int | None = None
    event: int | None = None
    labels: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    counts: frozenset[int] = frozenset()
    facts: list[int] = field(default_factory=list)
    separator: str = ""
    states: dict[str, int | None] = field(default_factory=dict)
    empty_words: frozenset[str] = frozenset()
    class_of: Mapping[str, str] = field(default_factory=dict)


class TableSample:
    """The first rows of a table.

    Args:
        names: Of the columns.
        rows: Cells as `words.as_cell` gives them.
        reading: The person's, which goes before every decision.
        class_names: Names of the classes by number, where a file beside the table lists them.

    Attributes:
        cells: Those of each column.
        interpretations: The decisions so far.
        sentences: Sentences about the table that nobody has to decide.
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
        """Return the filled cells of a column that are texts, without blanks around them."""
        return [text for cell in self.cells[place] if isinstance(cell, str) and (text := cell.strip())]

    def list_answer_texts(self, place: int) -> list[str]:
        """Return those of `texts` that are no word for an unknown answer."""
        return [text for text in self.list_texts(place) if text.lower() not in UNKNOWN_WORDS]

    def add_interpretation(
        self, field_: str, value: str, why: str, is_sure: bool = True, others: Sequence[str] = ()
    ) -> None:
        """Keep a decision, unless the person has made it."""
        if getattr(self.reading, field_) is None:
            self.interpretations.append(Interpretation(field_, value, why, is_sure, others))

    def is_text_column(self, place: int) -> bool:
        """Return whether no cell of a column is a list."""
        return all(isinstance(cell, str) for cell in self.cells[place])
