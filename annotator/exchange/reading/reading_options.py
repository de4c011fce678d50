"""The decisions of user and reader about the meaning of an imported source."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NONE_VALUE = "none"
"""Stands for "there is none" in an option: no label file, no separator, no class column."""
LABELS_FROM_FOLDERS = "folders"
"""The value of Reading.labels for classes that are the names of folders."""


@dataclass(frozen=True)
class ReadingOptions:
    """The user's decisions about the meaning of a source. None lets the reader decide and report.

    Attributes:
        labels: Label file in a folder, LABELS_FROM_FOLDERS, or NONE_VALUE for only images.
        folder_column: Column of the folder, put before the image name.
        label_columns: Columns of present class names.
        class_columns: Columns that are classes. Empty makes all others fields.
        separator: Text between a cell's labels, or NONE_VALUE.
        present, absent, unsure, unknown: Additional words.
        empty_label: Words for "no class is present".
        accepted_names: Class names that look like something else, such as numbers, and are classes all the same.
        kept_rows: Rows that hold people's answers, as COLUMN=WORD,WORD or COLUMN!=WORD,
            or NONE_VALUE for all rows.
        event_column: Column of the event, whose images the row then describes.
        match: Loosest name match of "name" (exact), "tail", "stem", "case", "url", "file", in this order. None
            allows all, but "file" only if folder names do not help.
        numbers: Whether integers are "ids" or "counts".
    """

    labels: str | None = None
    image_column: str | None = None
    folder_column: str | None = None
    label_columns: tuple[str, ...] | None = None
    class_columns: tuple[str, ...] | None = None
    separator: str | None = None
    present: tuple[str, ...] | None = None
    absent: tuple[str, ...] | None = None
    unsure: tuple[str, ...] | None = None
    unknown: tuple[str, ...] | None = None
    empty_label: tuple[str, ...] | None = None
    accepted_names: tuple[str, ...] | None = None
    score_column: str | None = None
    kept_rows: str | None = None
    event_column: str | None = None
    match: str | None = None
    numbers: str | None = None


class Interpretation(NamedTuple):
    """A reader's decision about the meaning of a source.

    Attributes:
        field: ReadingOptions field that overrides it.
        value: Equivalent value of this field, as typed.
        why: Decision and evidence in a sentence.
        is_sure: False for a question, resolved before storing.
        others: Alternative values.
    """

    field: str
    value: str
    why: str
    is_sure: bool = True
    others: Sequence[str] = ()


class KeptRows(NamedTuple):
    """A rule of --rows: the rows whose cell in a column is one of some words, or none of them."""

    column: str
    words: Sequence[str]
    is_excluding: bool


def parse_kept_rows(text: str) -> KeptRows:
    """Return the rule in "COLUMN=WORD,WORD" or "COLUMN!=WORD,WORD". It has no words in a text of another form."""
    column, _, words = text.partition("=")
    is_excluding = column.endswith("!")
    column = column.removesuffix("!").strip()
    return KeptRows(column, [word.strip().lower() for word in words.split(",") if word.strip()], is_excluding)


def has_facts_only(reading: ReadingOptions) -> bool:
    """Return whether the user's options exclude label or class columns, so that a table has only fields."""
    return reading.class_columns in ((), (NONE_VALUE,)) or reading.label_columns in ((), (NONE_VALUE,))
