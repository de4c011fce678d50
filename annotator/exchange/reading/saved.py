"""A reading as options, and as a file that repeats it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError, several
from annotator.exchange.reading.reading import NONE, Decided, Reading
from annotator.exchange.reading.sample import NUMBERS
from annotator.store.disk.open_files import open_file
from annotator.store.images.name_kinds import KINDS

LISTS = ("label_columns", "class_columns", "present", "absent", "unsure", "unknown", "empty_label")
WORDS = ("present", "absent", "unsure", "unknown")
SEPARATORS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "blank": " ", "tab": "\t", "line": "\n"}
"""Words for separators that are hard to type."""
OPTION: Mapping[str, str] = {"label_columns": "--label-column"}
"""Fields whose option has another name than theirs."""
_LARGEST = 1 << 20  # bytes


def option(field: str) -> str:
    """Return the option of a field: "--image-column" for "image_column"."""
    return OPTION.get(field, f"--{field.replace('_', '-')}")


def parsed(field: str, text: str) -> str | tuple[str, ...]:
    """Return the value of a field from what a person has typed: lists have commas, and NONE is an empty list."""
    if field == "separator":
        return SEPARATORS.get(text.strip().lower(), text)
    if field not in LISTS:
        return text
    if text.strip().lower() == NONE and field in ("label_columns", "class_columns"):
        return ()
    return tuple(word.strip() for word in text.split(",")) if text else ("",)


def checked(reading: Reading) -> Reading:
    """Return the reading. Raises AnnotatorError, with all problems, where a field has a value that it cannot have."""
    problems = []
    if reading.numbers not in (None, *NUMBERS):
        problems.append(f"--numbers cannot be {reading.numbers!r}; it is one of {', '.join(NUMBERS)}")
    if reading.match not in (None, *KINDS):
        problems.append(f"--match cannot be {reading.match!r}; it is one of {', '.join(KINDS)}")
    if reading.separator == "":
        problems.append("--separator cannot be empty; a cell that is one label: none")
    if reading.label_columns and reading.class_columns:
        problems.append("--label-column and --class-columns cannot both be given: the labels are in one of them")
    if problems:
        raise several("The source cannot be read like this:", problems)
    return reading


def load(path: Path) -> Reading:
    """Return a reading from its file. Raises AnnotatorError for a file that is none."""
    try:
        with open_file(path) as file:
            said = msgspec.json.decode(file.read(_LARGEST), type=dict[str, str | list[str] | None])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise AnnotatorError(f"{path} cannot be read as a reading: {error}. --save-reading FILE writes one.") from error
    known = {field.name for field in fields(Reading)}
    if strange := sorted(said.keys() - known):
        raise AnnotatorError(
            f"{path} is no reading: it has {', '.join(strange)}; known are {', '.join(sorted(known))}."
        )
    wrong = [name for name, value in said.items() if value is not None and isinstance(value, list) != (name in LISTS)]
    if wrong:
        raise AnnotatorError(f"{path} is no reading: {', '.join(wrong)} must be a text, or a list of texts.")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    return checked(Reading(**values))


def save(path: Path, reading: Reading) -> None:
    """Write a reading; fields that nobody has decided are left out. Raises AnnotatorError if the file exists."""
    said = {name: value for name, value in asdict(reading).items() if value is not None}
    try:
        with path.open("xb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(said), indent=1) + b"\n")
    except FileExistsError as error:
        raise AnnotatorError(f"{path} exists already and is not written over.") from error
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be written: {error.strerror or error}.") from error


def settled(reading: Reading, decided: Sequence[Decided]) -> Reading:
    """Return the reading with the decisions of a reader where the person has decided nothing."""
    found: dict[str, Any] = {}
    for one in decided:
        given, value = getattr(reading, one.field), parsed(one.field, one.value)
        found[one.field] = value if given is None else (*given, *value) if one.field in WORDS else given
    return replace(reading, **found)


def as_options(decided: Sequence[Decided], reading: Reading) -> list[str]:
    """Return the words of the options that repeat a reading."""
    words: list[str] = []
    for name, value in asdict(settled(reading, decided)).items():
        if value is not None:
            words += [option(name), value if isinstance(value, str) else ",".join(value) or NONE]
    return words
