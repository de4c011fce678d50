"""Class names that look like something else: a number, a list, a date, the word of a decision.

A column of ids, of vectors or of reviews has the same form as a column of class names. Its values tell them apart, so
that every name in every row is compared with the kinds below, and the user is asked about those that fit one.
"""

import re
from calendar import monthrange
from collections.abc import Collection

from annotator.exchange.reading.cell_words import EMPTY_WORDS, normalize_word, quote_words
from annotator.exchange.reading.reading_options import Interpretation
from annotator.humanize import format_count
from annotator.store.pictures.picture_kinds import looks_like_image

ALL_NAMES = "all"
"""Accepts every class name, whatever it looks like."""

DECISION_WORDS = frozenset(
    "accept accepted reject rejected ignore ignored approve approved predicted prediction validated unvalidated "
    "confirmed unconfirmed robot dubious skip skipped submitted discarded draft pending yes no true "
    "false maybe".split()
)
"""Words for what somebody decided about a label, in lower case without signs."""
MACHINE_WORDS = frozenset("robot machine model auto automatic ai predicted prediction".split())
"""Words for an answer that no person gave, in lower case without signs."""
MODEL_WORDS = frozenset("model robot ai classifier detector predicted prediction network".split())
"""Parts of names of models, such as RNN_model, in lower case."""
REVIEW_WORDS = DECISION_WORDS - {"yes", "no", "true", "false", "maybe"} | {"human", "machine"}
"""Words that say whether an answer counts, in lower case without signs."""
ACCEPTING_WORDS = frozenset(
    "accept accepted approve approved validated confirmed human submitted done completed complete finished final "
    "verified research".split()
)
"""Those of them that say so."""
UNLABELED_WORDS = frozenset("unknown unlabeled unlabelled unclassified undefined todo".split())
"""Words for an image that nobody has labeled, in lower case without signs."""
MODEL_NAME_STARTS = tuple(
    "megadetector speciesnet yolo gpt resnet efficientnet convnext mobilenet densenet bioclip llava gemini".split()
)
"""Starts of the names of models, in lower case."""
_MAX_NAME_WORDS = 3  # words of the name of a model
_WORD_PATTERN = re.compile(r"[a-z]+")
_MAX_KEPT_NAMES = 1000  # names that are kept for the question

_NUMBER = re.compile(r"[$€£¥]?\s?[+-]?\d[\d.,]*(e[+-]?\d+)?", re.IGNORECASE)
_PERCENTAGE = re.compile(r"[+-]?\d[\d.,]*\s?[%‰]")
_NUMBERS = re.compile(r"[\[({]?\s*[+-]?\d[\d.]*(?:[\s,;]+[+-]?\d[\d.]*)+\s*[\])}]?")
_LIST = re.compile(r"[\[({].*[\])}]|c\(.*\)", re.DOTALL)
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})([T ].*)?|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})( .*)?")
_UUID = re.compile(r"\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?", re.IGNORECASE)
_DENIAL_PATTERN = re.compile(r"(no|not|non|without)[\s_-]+\w", re.IGNORECASE)
_PREDICTION_PATTERN = re.compile(r"(predicted|prediction|pred)[\s_-]+\w", re.IGNORECASE)
_MARKUP_PATTERN = re.compile(r"</?[a-z]+\s*/?>|&(amp|lt|gt|quot|nbsp|#\d+);", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,9}://.*|[a-z]:\\.*|\.{0,2}/.*|.*\\.*", re.IGNORECASE | re.DOTALL)


def describe_odd_name(name: str) -> str:
    """Return what a class name looks like, such as "a number", or "" if it looks like a name."""
    text = name.strip()
    kinds = (
        ("a percentage", _PERCENTAGE.fullmatch(text)),
        ("a date", (found := _DATE.fullmatch(text)) and _is_date(found)),
        ("a number", _NUMBER.fullmatch(text)),
        ("a list of numbers", _NUMBERS.fullmatch(text)),
        ("a UUID", _UUID.fullmatch(text)),
        ("a list or JSON", _LIST.fullmatch(text)),
        ("a path or an address", _ADDRESS.fullmatch(text) or looks_like_image(text)),
        ("the word of a decision", normalize_word(text) in DECISION_WORDS),
        ("a text in quotation marks", len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`"),
        ("a denial", _DENIAL_PATTERN.match(text) and normalize_word(text) not in EMPTY_WORDS),
        ("a prediction", _PREDICTION_PATTERN.match(text)),
        ("markup", _MARKUP_PATTERN.search(text)),
        ("a word for no label", normalize_word(text) in UNLABELED_WORDS),
    )
    return next((kind for kind, fits in kinds if fits), "")


def is_machine_word(text: str) -> bool:
    """Return whether a text names a model as the source of an answer."""
    words = _WORD_PATTERN.findall(text.casefold())
    is_model = not MODEL_WORDS.isdisjoint(words) or any(word.startswith(MODEL_NAME_STARTS) for word in words)
    return normalize_word(text) in MACHINE_WORDS or (len(words) <= _MAX_NAME_WORDS and is_model)


def _is_date(found: re.Match[str]) -> bool:
    """Return whether the numbers are a year, a month and a day, in either order of the last two."""
    year, first, second = (int(part) for part in (found.group(1, 2, 3) if found[1] else found.group(7, 6, 5)))
    orders = ((first, second), (second, first))
    return any(1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1] for month, day in orders)


class OddNameCollector:
    """The class names of one source that look like something else.

    Args:
        accepted: Names that the user declares to be classes; ALL_NAMES for every name.
    """

    def __init__(self, accepted: Collection[str] | None):
        self._accepted = {name.casefold() for name in accepted or ()}
        self._kind_by_name: dict[str, str] = {}

    def add(self, name: str) -> None:
        """Note a class name of the source. Names that look like names are forgotten at once."""
        if ALL_NAMES in self._accepted or name in self._kind_by_name or name.casefold() in self._accepted:
            return
        if len(self._kind_by_name) < _MAX_KEPT_NAMES and (kind := describe_odd_name(name)):
            self._kind_by_name[name] = kind

    def make_question(self, columns: str) -> Interpretation | None:
        """Return the question about the names in these columns, or None if every name looks like one."""
        if not self._kind_by_name:
            return None
        kinds = dict.fromkeys(self._kind_by_name.values())
        shown = "; ".join(
            f"{quote_words([name for name, kind in self._kind_by_name.items() if kind == one], 3)} ({one})"
            for one in kinds
        )
        count = format_count(len(self._kind_by_name), "class name")
        why = (
            f"{columns} would give {count} that may be something else: {shown}. Name the column with the classes by "
            "--label-column, rename or leave out single names by a class map (--class-map), or accept these as classes"
        )
        names = list(self._kind_by_name)
        value = ",".join(names) if len(names) <= 5 and not any("," in name for name in names) else ALL_NAMES
        return Interpretation("accepted_names", value, why, False)
