"""The column schema of a known tool, which replaces the interpretation of a table by its content.

A profile applies to a table that has all of its required columns. Cells never decide it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.reading.cell_words import Cell
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.exchange.reading.row_rules import RowRule

MAX_SHARED_LEAVES = 20  # sentences


@dataclass(frozen=True)
class TableProfile:
    """The column schema of a known tool."""

    # tool, for messages
    name: str
    # kind of table, and where its schema is documented
    about: str
    # the complete signature. A name that ends with "*" stands for one or more columns
    required: tuple[str, ...]
    # column of image names, a name with "*" for the only such column, or "" to find it
    image_column: str = ""
    # columns of present classes. Several, or a "*" that fits several, are a question
    label_columns: tuple[str, ...] = ()
    # columns whose texts make one class name, with a space between
    joined_columns: tuple[str, ...] = ()
    # separator in label cells
    separator: str = NONE_VALUE
    # mark between the levels of a label, of which only the last is the class
    path_mark: str = ""
    # the user must confirm the label column
    is_question: bool = False
    # rules for rows that are not answers
    left_out: tuple[RowRule, ...] = ()
    # instruction for tables that cannot be read as they are
    refusal: str = ""

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether a table has the complete signature. Letter case and order do not matter."""
        return all(find_columns(one, names) for one in self.required)

    def format_joined_name(self) -> str:
        return " + ".join(self.joined_columns)


def find_columns(wanted: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a name, or a name that ends with "*", stands for."""
    word = wanted.strip().lower()
    if word.endswith("*"):
        return [name for name in names if name.strip().lower().startswith(word[:-1])]
    return [name for name in names if name.strip().lower() == word]


class ProfiledTable:
    """A table as its profile has it: options, decisions, and the rows to read.

    Raises AnnotatorError for a table that the profile refuses.
    """

    def __init__(self, profile: TableProfile, names: Sequence[str], options: ReadingOptions, source_name: str):
        is_told = options.label_columns is not None or options.class_columns is not None
        if profile.refusal and not is_told:
            raise AnnotatorError(f"{source_name} has the columns of {profile.name}. {profile.refusal}")
        self.profile, self.interpretations = profile, list[Interpretation]()
        self._joined = [list(names).index(find_columns(one, names)[0]) for one in profile.joined_columns]
        self.names = [*names, profile.format_joined_name()] if self._joined else list(names)
        found: dict[str, Any] = {}
        image = find_columns(profile.image_column, names) if profile.image_column else []
        if options.image_column is None and len(image) == 1:
            found["image_column"] = image[0]
            self._add("image_column", image[0], f"`{image[0]}` names the images")
        if not is_told:
            wanted = [profile.format_joined_name()] if self._joined else []
            wanted += [name for one in profile.label_columns for name in find_columns(one, names)]
            if wanted:
                found["label_columns"] = (wanted[0],)
                is_sure = len(wanted) == 1 and not profile.is_question
                why = f"`{wanted[0]}` names the present classes of the image"
                if not is_sure:
                    why = f"`{wanted[0]}` may name the classes: {profile.about}"
                others = () if is_sure else (*wanted[1:], NONE_VALUE)
                self._add("label_columns", wanted[0], why, is_sure, others)
        if profile.left_out and options.kept_rows is None:
            found["kept_rows"] = NONE_VALUE  # the rules of the profile have chosen the rows
        self.options = replace(options, **found)
        labels = self.options.label_columns or ()
        if labels and options.separator is None:
            self.options = replace(self.options, separator=profile.separator)
        self._paths = [place for place, name in enumerate(self.names) if profile.path_mark and name in labels]
        self._rules = [
            (list(names).index(column), rule)
            for rule in (() if options.kept_rows else profile.left_out)
            for column in find_columns(rule.column, names)
        ]
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._path_of: dict[str, str] = {}
        self._shared_leaves: dict[str, str] = {}  # last level of two different paths -> the second path

    def _add(self, field: str, value: str, why: str, is_sure: bool = True, others: Sequence[str] = ()) -> None:
        self.interpretations.append(
            Interpretation(field, value, f"columns of {self.profile.name}: {why}", is_sure, others)
        )

    def iter_rows(self, rows: Iterator[tuple[int | str, Sequence[Cell]]]) -> Iterator[tuple[int | str, Sequence[Cell]]]:
        """Yield the rows to read, and count the others."""
        image = find_columns(self.options.image_column or "", self.names)
        shown = self.names.index(image[0]) if image else 0
        for place, row in rows:
            rule = next((rule for column, rule in self._rules if rule.is_left_out(row[column])), None)
            if rule:
                self._counts[rule.reason] += 1
                self._first.setdefault(rule.reason, f"{row[shown]}")
                continue
            if self._joined or self._paths:
                cells = list(row)
                if self._joined:
                    parts = [str(cells[column]).strip() for column in self._joined]
                    cells.append(" ".join(parts) if all(parts) else "")
                for column in self._paths:
                    cells[column] = self._list_leaf_names(cells[column])
                row = cells
            yield place, row

    def _list_leaf_names(self, cell: Cell) -> list[str]:
        separator = self.options.separator or NONE_VALUE
        parts = cell if not isinstance(cell, str) else [cell] if separator == NONE_VALUE else cell.split(separator)
        leaves: list[str] = []
        for path in filter(None, map(str.strip, parts)):
            leaf = path.rpartition(self.profile.path_mark)[2].strip()
            if self._path_of.setdefault(leaf, path) != path:
                self._shared_leaves.setdefault(leaf, path)
            leaves.append(leaf)
        return leaves

    def format_left_out(self) -> list[str]:
        """Return a sentence per reason for the rows that were left out so far, and per class with two paths."""
        shared = [
            f"{self._path_of[leaf]!r} and {path!r} are one class, {leaf!r}"
            for leaf, path in list(self._shared_leaves.items())[:MAX_SHARED_LEAVES]
        ]
        return shared + [
            f"rows left out, {reason}: {count:,}, the first for {self._first[reason][:80]!r} (--rows none reads them)"
            for reason, count in self._counts.items()
        ]
