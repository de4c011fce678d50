"""Sets of answer times in seconds, read from CSV. Missing values are the defaults."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel

TIMES_FOLDER = Path(__file__).with_name("times")
SHIPPED_TIME_SETS = {name: TIMES_FOLDER / f"{name}.csv" for name in ("published", "kinds")}
TIME_SET_COLUMNS = ("name", "source", "people", *TIME_PARTS)
MAX_PART_SECONDS = 600.0  # seconds of one part; the time model reads no longer answers

Row = Mapping[str | Any, str | Any]  # as csv.DictReader yields them


@dataclass(frozen=True)
class TimeSet:
    """A named set of answer times, with its source and the number of people measured."""

    name: str
    source: str
    people: int | None
    times: TimeModel

    def as_json(self) -> dict:
        return {"name": self.name, "source": self.source, "people": self.people, **vars(self.times)}


def read_time_sets(name_or_path: str) -> list[TimeSet]:
    """Return the sets in a CSV file, or of a name in SHIPPED_TIME_SETS, in order.

    Raises AnnotatorError that lists all problems by line.
    """
    path = SHIPPED_TIME_SETS.get(name_or_path, Path(name_or_path))
    if not path.is_file():
        raise AnnotatorError(
            f"There is no file of times {name_or_path!r}. {did_you_mean(name_or_path, SHIPPED_TIME_SETS)}"
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, skipinitialspace=True)
            problems = [f"line 1: {problem}" for problem in _find_column_problems(rows.fieldnames or ())]
            numbered = [(rows.line_num, row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AnnotatorError(f"The times {path} cannot be read: {error}.") from error
    sets = []
    lines: dict[str, int] = {}  # name -> its first line
    for line, row in numbered:
        name = (row.get("name") or "").strip()
        wrong = list(_find_row_problems(row, name))
        if name in lines:
            wrong.append(f"the name {name!r} is that of line {lines[name]}, too")
        elif name:
            lines[name] = line
        problems += [f"line {line}: {problem}" for problem in wrong]
        if not wrong and not problems:
            sets.append(_parse_time_set(row, name))
    if problems:
        raise combine_problems(f"The times {path} cannot be used:", problems)
    if not sets:
        raise AnnotatorError(f"The times {path} have no set: below the columns every row is one.")
    return sets


def _find_column_problems(columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if column not in TIME_SET_COLUMNS:
            yield f"there is no column {column!r}, only {', '.join(TIME_SET_COLUMNS)}"
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        yield f"the column {column!r} is there {columns.count(column)} times"
    if "name" not in columns:
        yield "the column 'name' is missing"


def _find_row_problems(row: Row, name: str) -> Iterator[str]:
    if None in row:
        yield "it has more cells than there are columns; a text with a comma needs quotation marks"
    if not name and "name" in row:
        yield "it has no name"
    people = (row.get("people") or "").strip()
    if people and not (people.isascii() and people.isdigit() and int(people)):
        yield f"people is {people!r}, not a whole number above 0"
    for part in TIME_PARTS:
        text = (row.get(part) or "").strip()
        if text and not 0 < _parse_number(text) <= MAX_PART_SECONDS:
            yield f"{part} is {text!r}, not a number of seconds above 0 and at most {MAX_PART_SECONDS:g}"


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _parse_time_set(row: Row, name: str) -> TimeSet:
    cells = {column: (row.get(column) or "").strip() for column in TIME_SET_COLUMNS}
    times = TimeModel(
        **{part: float(cells[part]) if cells[part] else getattr(DEFAULT_TIMES, part) for part in TIME_PARTS}
    )
    return TimeSet(name, cells["source"], int(cells["people"]) if cells["people"] else None, times)
