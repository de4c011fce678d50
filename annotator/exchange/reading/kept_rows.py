"""Proposals of the rows whose answers count, from the name of a column and the words in it."""

from collections.abc import Sequence

from annotator.exchange.reading.cell_words import STATE_BY_WORD, is_whole_number, normalize_word
from annotator.exchange.reading.class_name_checks import ACCEPTING_WORDS, REVIEW_WORDS, is_machine_word
from annotator.exchange.reading.reading_options import NONE_VALUE
from annotator.records import ABSENT, PRESENT

STATUS_COLUMN_NAMES = frozenset(
    "review reviewresult reviewstate labelstate annotationstate taskstate qc qa qualitycontrol qualitygrade validation "
    "verification approval decision progress".split()
)
"""Names of columns that may say whether the answers of a row count, next to those that end in "status"."""
CONFIRMING_COLUMN_NAMES = frozenset(
    "verified reviewed checked validated confirmed approved accepted isverified isreviewed ischecked isvalidated "
    "isconfirmed isapproved isaccepted".split()
)
"""Names of columns in which a no says that the answers of the row may not count."""
DENYING_COLUMN_NAMES = frozenset(
    "rejected deleted excluded exclude ignore ignored skipped discarded predicted prediction automatic machine "
    "needsreview isrejected isdeleted isexcluded isignored isskipped isdiscarded ispredicted isprediction "
    "isautomatic ismachine".split()
)
"""Names of columns in which a yes says that the answers of the row may not count."""
COUNT_COLUMN_NAMES = frozenset("count counts number quantity individualcount howmany numberofindividuals".split())
"""Names of columns in which a 0 next to a class says that it is not there."""


def propose_kept_rows(name: str, texts: Sequence[str]) -> str | None:
    """Return which rows hold answers, as --rows has it ("status=done" or "none"), or None if a column is no such."""
    words = {normalize_word(text): text for text in texts}
    column, states = normalize_word(name), {text: STATE_BY_WORD.get(text.strip().lower()) for text in texts}
    if not words:
        return None
    if column in CONFIRMING_COLUMN_NAMES and ABSENT in states.values():
        return _format_rule(name, "=", [text for text, state in states.items() if state == PRESENT])
    if column in DENYING_COLUMN_NAMES and PRESENT in states.values():
        return _format_rule(name, "!=", [text for text, state in states.items() if state == PRESENT])
    if column in COUNT_COLUMN_NAMES and all(map(is_whole_number, texts)):
        return _format_rule(name, "!=", [text for text in states if float(text) == 0]) if "0" in words else None
    accepted = [text for word, text in words.items() if word in ACCEPTING_WORDS]
    is_status = column in STATUS_COLUMN_NAMES or column.endswith("status")
    has_other_words = len(accepted) < len(words) and not all(map(is_whole_number, texts))
    if words.keys() <= REVIEW_WORDS or (is_status and has_other_words):
        return _format_rule(name, "=", accepted)
    machines = [text for text in words.values() if is_machine_word(text)]
    return _format_rule(name, "!=", machines) if machines else None


def _format_rule(name: str, sign: str, words: Sequence[str]) -> str:
    return f"{name}{sign}{','.join(words)}" if words else NONE_VALUE
