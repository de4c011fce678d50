"""Sentences about the decisions of a reading, for the command line and the Import page."""

from annotator.exchange.reading.reading import Decided
from annotator.exchange.reading.saved import SEPARATORS, option

ADDS_SCORES = "annotator predictions PROJECT FILE --name MODEL"


def typed(one: Decided, value: str) -> str:
    """Return an option with a value as a person types it: "--separator comma"."""
    value = word_of(one, value)
    return f'{option(one.field)} "{value}"' if " " in value or not value else f"{option(one.field)} {value}"


def word_of(one: Decided, value: str) -> str:
    """Return a value of a decision as a person types it: "comma" for ","."""
    words = {text: word for word, text in SEPARATORS.items()} if one.field == "separator" else {}
    return words.get(value, value)


def doubt_in_words(one: Decided) -> str:
    """Return a question with the options that answer it."""
    answers = [typed(one, value) for value in (one.value, *one.others)]
    hint = f" ({ADDS_SCORES} adds them)" if one.field == "score_column" else ""
    return f"{one.why}. Answer it with: {' or '.join(answers[:6])}{hint}"


def decision_in_words(one: Decided) -> str:
    """Return a decision in a sentence, with the option that overrules it."""
    return f"{one.why} ({typed(one, one.value)})"
