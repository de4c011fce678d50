"""The decisions about the meaning of a source: those that a person has made, and those that a reader has made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NONE_VALUE = "none"
"""Stands for "there is none" in an option: no label file, no separator, no class column."""
LABELS_FROM_FOLDERS = "folders"
"""The value of Reading.labels for classes that are the names of folders."""


@dataclass(frozen=True)
class ReadingOptions:
    """The meaning of a source, as a person has given it; None: the reader decides, and says what it decided.

    Attributes:
        labels: The file of a folder that holds the labels, LABELS_FROM_FOLDERS, or NONE_VALUE: only images are
            imported.
        image_column: The column or field that names the image.
        folder_column: The column or field with the folder of the image, put before its name.
        label_columns: Columns whose cells name the present classes.
        class_columns: Columns that are classes, with an answer in each cell; (): all other columns are facts.
        separator: The text between several labels of one cell; NONE_VALUE: a cell is one label.
        present, absent, unsure, unknown: Words of cells with this meaning, in addition to those known by everybody.
        empty_label: Words that name no class: nothing of what is looked for is on the image.
        score_column: The column or field with the score of a model.
        event_column: The column or field that names the event; each row then speaks of all images of the event.
        match: The loosest kind in which an image is found by its name (store/images/name_kinds.py): "name" (exactly),
            "tail", "stem", "case", "url" or "file"; all that come before it count too. None: all, but "file" only where
            the folders' names say nothing.
        numbers: "ids" or "counts": what whole numbers in the cells of a label column or class column are.
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
    score_column: str | None = None
    event_column: str | None = None
    match: str | None = None
    numbers: str | None = None


class Interpretation(NamedTuple):
    """A decision of a reader about a source.

    Attributes:
        field: The field of Reading that overrules it, such as "separator".
        value: The value of this field that gives the same reading, as a person would write it.
        why: A sentence that says what was decided and by what evidence: "`labels` holds several labels separated by
            commas: 41 of 43 parts are class names".
        is_sure: False for a question: another value fits as well, or the evidence is thin. Nothing is stored until a
            person has settled it; a reader does not ask what the Reading has settled.
        others: Other values that a person could choose.
    """

    field: str
    value: str
    why: str
    is_sure: bool = True
    others: Sequence[str] = ()


def has_facts_only(reading: ReadingOptions) -> bool:
    """Return whether a person has said that a table holds facts only."""
    return reading.class_columns in ((), (NONE_VALUE,)) or reading.label_columns in ((), (NONE_VALUE,))
