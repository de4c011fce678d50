"""Sentences about how a source is interpreted, for the command line and the Import page."""

from annotator.exchange.reading.reading_file import SEPARATOR_WORDS, format_option_name
from annotator.exchange.reading.reading_options import Interpretation

ADD_SCORES_COMMAND = "annotator predictions PROJECT FILE --name MODEL"


def format_option(one: Interpretation, value: str) -> str:
    """Format a decision as the command line option that sets it: "--separator comma"."""
    value = format_value(one, value)
    return (
        f'{format_option_name(one.field)} "{value}"'
        if " " in value or not value
        else f"{format_option_name(one.field)} {value}"
    )


def format_value(one: Interpretation, value: str) -> str:
    """Format a decision's value as a user types it: "comma" for ","."""
    words = {text: word for word, text in SEPARATOR_WORDS.items()} if one.field == "separator" else {}
    return words.get(value, value)


def describe_question(one: Interpretation) -> str:
    """Return an open question with the options that answer it."""
    answers = [format_option(one, value) for value in (one.value, *one.others)]
    hint = f" ({ADD_SCORES_COMMAND} adds them)" if one.field == "score_column" else ""
    return f"{one.why}. Answer it with: {' or '.join(answers[:6])}{hint}"


def describe_interpretation(one: Interpretation) -> str:
    return f"{one.why} ({format_option(one, one.value)})"
