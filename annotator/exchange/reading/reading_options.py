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
    """The user's decisions about the meaning of a source. None lets the reader decide and report."""

    # label file in a folder, LABELS_FROM_FOLDERS, or NONE_VALUE for only images
    labels: str | None = None
    image_column: str | None = None
    # column of the folder, put before the image name
    folder_column: str | None = None
    # columns of present class names
    label_columns: tuple[str, ...] | None = None
    # columns that are classes. Empty makes all others fields
    class_columns: tuple[str, ...] | None = None
    # text between a cell's labels, or NONE_VALUE
    separator: str | None = None
    # present, absent, unsure, unknown: additional words
    present: tuple[str, ...] | None = None
    absent: tuple[str, ...] | None = None
    unsure: tuple[str, ...] | None = None
    unknown: tuple[str, ...] | None = None
    # words for "no class is present"
    empty_label: tuple[str, ...] | None = None
    # class names that look like something else, such as numbers, and are classes all the same
    accepted_names: tuple[str, ...] | None = None
    score_column: str | None = None
    # rows that hold people's answers, as COLUMN=WORD,WORD or COLUMN!=WORD, or NONE_VALUE for all rows
    kept_rows: str | None = None
    # column of the event, whose images the row then describes
    event_column: str | None = None
    # loosest name match of "name" (exact), "tail", "stem", "case", "url", "file", in this order. None allows all, but
    # "file" only if folder names do not help
    match: str | None = None
    # whether integers are "ids" or "counts"
    numbers: str | None = None


class Interpretation(NamedTuple):
    """A reader's decision about the meaning of a source."""

    # readingOptions field that overrides it
    field: str
    # equivalent value of this field, as typed
    value: str
    # decision and evidence in a sentence
    why: str
    # False for a question, resolved before storing
    is_sure: bool = True
    # alternative values
    others: Sequence[str] = ()


def has_facts_only(reading: ReadingOptions) -> bool:
    """Return whether the user's options exclude label or class columns, so that a table has only fields."""
    return reading.class_columns in ((), (NONE_VALUE,)) or reading.label_columns in ((), (NONE_VALUE,))
