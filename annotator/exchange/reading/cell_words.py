"""Cell words for present, absent, unsure, unanswered, or no class."""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions
from annotator.records import ABSENT, PRESENT, STATES, UNSURE

Cell = str | list[str]
"""A cell as text, or the texts of a list that the source holds."""

_PRESENT_WORDS = ("1", "1.0", "+1", "true", "t", "yes", "y", "x", "✓", "✔", "positive", "pos")
_ABSENT_WORDS = ("0", "0.0", "false", "f", "no", "n", "negative", "neg")
_UNSURE_WORDS = ("uncertain", "maybe", "?", "possible", "doubtful")
UNKNOWN_WORDS = frozenset(
    ("", "na", "n/a", "#n/a", "nan", "null", "-", "--", ".", "unknown", "missing", "not available", "<na>", "nat")
)
"""Words for an empty cell, in small letters: R writes NA, pandas nan, spreadsheets #N/A."""
EMPTY_WORDS = frozenset(
    "empty blank none nothing nothinghere nofinding nofindings noanimal noanimals background noobject noobjects "
    "nolabel nolabels false trigger falsetrigger misfire nil".split()
)
"""Words that may say "looked at, and nothing is here", in small letters without blanks."""
MINUS_ONE_WORDS = ("-1", "-1.0")
"""Absent, unsure or unknown: tables of this kind differ."""

STATE_BY_WORD: Mapping[str, int | None] = (
    dict.fromkeys(UNKNOWN_WORDS)
    | dict.fromkeys(_PRESENT_WORDS, PRESENT)
    | dict.fromkeys(_ABSENT_WORDS, ABSENT)
    | dict.fromkeys(_UNSURE_WORDS, UNSURE)
    | STATES
)
"""Word in small letters -> its state; None: unknown."""

_R_LIST = re.compile(r"c\((.*)\)", re.DOTALL)
_MAX_LIST_CHARS = 100_000  # letters


def build_state_words(reading: ReadingOptions) -> dict[str, int | None]:
    """Return the state by lower-case word, the user's words first."""
    words = dict(STATE_BY_WORD)
    for given, state in (
        (reading.present, PRESENT),
        (reading.absent, ABSENT),
        (reading.unsure, UNSURE),
        (reading.unknown, None),
    ):
        words |= dict.fromkeys((word.strip().lower() for word in given or ()), state)
    return words


def normalize_word(word: str) -> str:
    """Return a word in lower case without spaces and signs, for comparison."""
    return re.sub(r"[\W_]+", "", word.casefold()) or word.strip()


def to_cell(value: Any) -> Cell:
    """Convert a typed value to a table cell: 1.0 to "1", true to "true", null to ""."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value if abs(value) < 1e15 else 0):
        return str(int(value))
    if isinstance(value, list | tuple | set):
        return [text for one in value if isinstance(text := to_cell(one), str) and text]
    return str(value)


def parse_list(cell: str) -> list[str] | None:
    """Return the texts of a list in JSON, Python or R (c("fox", "deer")) syntax, None if it is not a list."""
    text = cell.strip()
    if match := _R_LIST.fullmatch(text):
        text = f"[{match[1]}]"
    if len(text) < 2 or text[0] + text[-1] not in ("[]", "()", "{}") or len(text) > _MAX_LIST_CHARS:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(found, list | tuple | set):
            cells = to_cell(list(found))
            return list(cells) if isinstance(cells, list) else None
    # Written by hand or by NumPy, without quotes: [fox, deer], [fox deer].
    inner = text[1:-1]
    if text[0] == "[" and inner and not set("[]{}()") & set(inner):
        return [part.strip().strip("'\"") for part in inner.split(",") if part.strip()]
    return [] if text in ("[]", "()", "{}") else None


def parse_vector(cell: Cell) -> list[str]:
    """Return the values of a list of 0 and 1, also as NumPy prints it ("[1 0 1]"), or [] for other cells."""
    parts = (parse_list(cell) or []) if isinstance(cell, str) else cell
    values = " ".join(parts).split()
    return values if len(values) > 1 and set(values) <= {"0", "1"} else []


def split_labels(cell: Cell, separator: str) -> list[str]:
    """Return the unique labels of a cell, from a list or between separators ("" or NONE for one label)."""
    if isinstance(cell, str):
        found = parse_list(cell)
        if found is None:
            found = cell.split(separator) if separator and separator != NONE_VALUE else [cell]
    else:
        found = cell
    return list(dict.fromkeys(word for part in found if (word := part.strip())))


def is_whole_number(text: str) -> bool:
    """Return whether a cell is a non-negative integer, which may have the form "2.0"."""
    return text.removesuffix(".0").isdecimal()


def parse_number(text: str) -> float | None:
    """Return the number in a cell, which may have a decimal comma, or None."""
    try:
        return float(text.replace(",", ".") if text.count(",") == 1 else text)
    except ValueError:
        return None


def parse_score(text: str) -> float | None:
    """Return the score in a cell, a number or a percentage ("98 %" is 0.98), or None."""
    if text.rstrip().endswith("%"):
        number = parse_number(text.rstrip()[:-1].strip())
        return None if number is None else number / 100
    return parse_number(text)


def quote_words(words: Iterable[str], shown: int = 5) -> str:
    """Return at most `shown` quoted words, and the number of others."""
    listed_words = list(words)
    text = ", ".join(f"{word[:40]!r}" for word in listed_words[:shown])
    return text + (f" and {len(listed_words) - shown:,} more" if len(listed_words) > shown else "")
