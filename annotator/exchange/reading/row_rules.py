"""Rules for the rows of a table that are no answers of people: rejected ones, those of a model, and rows of types."""

from dataclasses import dataclass

from annotator.exchange.reading.cell_words import Cell


@dataclass(frozen=True)
class RowRule:
    """A rule that leaves rows out of a table."""

    # column whose cell decides. The rule is unused in a table without it
    column: str
    # noun phrase for the report
    reason: str = ""
    # cells of the rows to leave out, in lower case. Empty for all cells that are not empty
    words: frozenset[str] = frozenset()
    # if given, the only cells of the rows to read, in lower case
    kept: frozenset[str] = frozenset()

    def is_left_out(self, cell: Cell) -> bool:
        word = cell.strip().lower() if isinstance(cell, str) else "|".join(cell)
        if self.kept:
            return word not in self.kept
        return word in self.words if self.words else bool(word)


def parse_row_rule(text: str) -> RowRule | None:
    """Return the rule of --rows in "COLUMN=WORD,WORD" or "COLUMN!=WORD,WORD", or None for a text of another form."""
    column, _, listed = text.partition("=")
    words = frozenset(word.strip().lower() for word in listed.split(",") if word.strip())
    if not words:
        return None
    if column.endswith("!"):
        return RowRule(column[:-1].strip(), words=words)
    return RowRule(column.strip(), kept=words)
