"""Reading options as command line options, and in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.text_output import open_text_output
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.exchange.reading.row_rules import parse_row_rule
from annotator.exchange.reading.table_sample import NUMBER_MEANINGS
from annotator.store.disk.open_files import open_file
from annotator.store.images.name_kinds import MATCH_KINDS

LIST_FIELDS = (
    "label_columns",
    "class_columns",
    "present",
    "absent",
    "unsure",
    "unknown",
    "empty_label",
    "accepted_names",
)
STATE_WORD_FIELDS = ("present", "absent", "unsure", "unknown")
SEPARATOR_WORDS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "blank": " ", "tab": "\t", "line": "\n"}
"""Words for separators that are hard to type."""
OPTION_NAMES: Mapping[str, str] = {
    "label_columns": "--label-column",
    "accepted_names": "--accept-names",
    "kept_rows": "--rows",
}
"""Fields whose option has another name than theirs."""
_MAX_FILE_BYTES = 1 << 20


def format_option_name(field: str) -> str:
    """Return a field's option: "--image-column" for "image_column"."""
    return OPTION_NAMES.get(field, f"--{field.replace('_', '-')}")


def parse_option(field: str, text: str) -> str | tuple[str, ...]:
    """Parse a typed option value: lists have commas, and NONE is an empty list."""
    if field == "separator":
        return SEPARATOR_WORDS.get(text.strip().lower(), text)
    if field not in LIST_FIELDS:
        return text
    if text.strip().lower() == NONE_VALUE and field in ("label_columns", "class_columns"):
        return ()
    return tuple(word.strip() for word in text.split(",")) if text else ("",)


def check_reading(reading: ReadingOptions) -> ReadingOptions:
    """Return the options. Raises AnnotatorError that lists all invalid ones."""
    problems = []
    if reading.numbers not in (None, *NUMBER_MEANINGS):
        problems.append(f"--numbers cannot be {reading.numbers!r}; it is one of {', '.join(NUMBER_MEANINGS)}")
    if reading.match not in (None, *MATCH_KINDS):
        problems.append(f"--match cannot be {reading.match!r}; it is one of {', '.join(MATCH_KINDS)}")
    if reading.separator == "":
        problems.append("--separator cannot be empty; a cell that is one label: none")
    if reading.kept_rows not in (None, NONE_VALUE) and not parse_row_rule(reading.kept_rows or ""):
        problems.append(
            f"--rows cannot be {reading.kept_rows!r}; write COLUMN=WORDS (status=validated), COLUMN!=WORDS, or none"
        )
    if reading.label_columns and reading.class_columns:
        problems.append("--label-column and --class-columns cannot both be given: the labels are in one of them")
    if problems:
        raise combine_problems("The source cannot be read like this:", problems)
    return reading


def load_reading(path: Path) -> ReadingOptions:
    try:
        with open_file(path) as file:
            said = msgspec.json.decode(file.read(_MAX_FILE_BYTES), type=dict[str, str | list[str] | None])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise AnnotatorError(f"{path} cannot be read as a reading: {error}. --save-reading FILE writes one.") from error
    known = {field.name for field in fields(ReadingOptions)}
    if strange := sorted(said.keys() - known):
        raise AnnotatorError(
            f"{path} is no reading: it has {', '.join(strange)}; known are {', '.join(sorted(known))}."
        )
    wrong = [
        name for name, value in said.items() if value is not None and isinstance(value, list) != (name in LIST_FIELDS)
    ]
    if wrong:
        raise AnnotatorError(f"{path} is no reading: {', '.join(wrong)} must be a text, or a list of texts.")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    return check_reading(ReadingOptions(**values))


def write_reading(path: Path, reading: ReadingOptions) -> None:
    """Write reading options to a new file. Raises AnnotatorError if it exists."""
    said = {name: value for name, value in asdict(reading).items() if value is not None}
    with open_text_output(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(said), indent=1).decode() + "\n")


def merge_interpretations(reading: ReadingOptions, decided: Sequence[Interpretation]) -> ReadingOptions:
    """Return the user's options, completed with a reader's decisions."""
    found: dict[str, Any] = {}
    for one in decided:
        given, value = getattr(reading, one.field), parse_option(one.field, one.value)
        found[one.field] = value if given is None else (*given, *value) if one.field in STATE_WORD_FIELDS else given
    return replace(reading, **found)


def format_reading_options(decided: Sequence[Interpretation], reading: ReadingOptions) -> list[str]:
    """Return the command line words that repeat these decisions in another import."""
    words: list[str] = []
    for name, value in asdict(merge_interpretations(reading, decided)).items():
        if value is not None:
            words += [format_option_name(name), value if isinstance(value, str) else ",".join(value) or NONE_VALUE]
    return words
