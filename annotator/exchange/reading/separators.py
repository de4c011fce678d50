"""Detection of the separator between labels in a cell."""

from collections import Counter
from collections.abc import Sequence

from annotator.exchange.reading.cell_words import Cell, normalize_word, parse_list
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation

SEPARATOR_NAMES = {
    "|": "|",
    ";": "semicolons",
    ",": "commas",
    "，": "full-width commas",
    "、": "ideographic commas",
    "；": "full-width semicolons",
    "،": "Arabic commas",
    "/": "slashes",
    "+": "+",
    "&": "&",
    "\n": "line ends",
    "_": "underscores",
    " ": "blanks",
}
"""Separator -> what it is called; in the order in which they are tried."""
LIST_SEPARATORS = ";,，、；،"
"""Separators that stand in lists more often than in names."""
JOINING_SIGNS = f"{LIST_SEPARATORS}/+&"
"""Separators that are asked about even where no part occurs in another cell."""
_MIN_RECURRING_SHARE = 0.7  # share of the parts that other cells hold too, from which a separator is sure
_PLURAL_COLUMN_NAMES = frozenset(
    "labels tags classes categories keywords findings findinglabels objects animals concepts targets diagnoses".split()
)
"""Names of columns that promise several labels, so that a blank is asked about even where no part recurs."""
_MIN_TAXA = 3  # parts from which cells with the same first part may be a path of taxa


def detect_separator(cells: Sequence[Cell], column: str) -> Interpretation | None:
    """Return the separator between labels in these cells, or None without a candidate.

    It is sure if nearly all parts are labels of other cells, but never for a space.
    """
    texts = [text for cell in cells if isinstance(cell, str) and (text := cell.strip()) and parse_list(text) is None]
    distinct = Counter(texts)
    for separator, name in SEPARATOR_NAMES.items():
        joined = [text for text in distinct if separator in text]
        if not joined:
            continue
        parts = [part.strip() for text in joined for part in text.split(separator) if part.strip()]
        if not parts or (separator in "/+&" and all(len(text.split(separator)) < 2 for text in joined)):
            continue
        if separator == "_" and not any(all(part in distinct for part in text.split("_")) for text in joined):
            continue  # red_fox is a name, unless red and fox are labels, too
        # In how many different cells a part occurs, alone or with others.
        cells_of = Counter(part for text in distinct for part in {one.strip() for one in text.split(separator)})
        recurring = sum(cells_of[part] > 1 for part in parts)
        alone = sum(part in distinct for part in parts)
        evidence = f"{recurring:,} of {len(parts):,} parts are in other cells too, {alone:,} of them alone"
        why = f"`{column}` holds several labels separated by {name}: {evidence}"
        others = [mark for mark in LIST_SEPARATORS if any(mark in text for text in joined)]
        if separator == "|" and others:
            why = f"`{column}` holds | and {SEPARATOR_NAMES[others[0]]} such as {joined[0][:60]!r}: lists, or paths"
            return Interpretation("separator", others[0], why, False, (separator, NONE_VALUE))
        if separator == "|":
            return Interpretation("separator", separator, why)
        if not recurring:
            if separator in JOINING_SIGNS or (separator == " " and normalize_word(column) in _PLURAL_COLUMN_NAMES):
                example = joined[0][:60]
                return Interpretation(
                    "separator",
                    separator,
                    f"`{column}` has {name} in {len(joined):,} of {len(distinct):,} different cells, such as "
                    f"{example!r}: each is one label, or several",
                    False,
                    (NONE_VALUE,),
                )
            continue
        is_taxa = _is_path_of_taxa(joined, separator)
        is_sure = (
            (separator in LIST_SEPARATORS or separator == "\n")
            and recurring >= _MIN_RECURRING_SHARE * len(parts)
            and not is_taxa
        )
        if is_taxa:
            why = f"`{column}` holds cells such as {joined[0][:60]!r}: several labels, or the path of one in a taxonomy"
        elif not is_sure:
            why = f"`{column}` may hold several labels separated by {name}, or names with {name}: {evidence}"
        return Interpretation("separator", separator, why, is_sure, (NONE_VALUE,))
    return None


def _is_path_of_taxa(joined: Sequence[str], separator: str) -> bool:
    lengths = {len(text.split(separator)) for text in joined}
    firsts = {text.split(separator)[0] for text in joined}
    return len(joined) > 1 and len(lengths) == 1 and min(lengths) >= _MIN_TAXA and len(firsts) == 1
