"""Interpretation of label cells: separators, words for "no class", numeric class ids, and -1."""

import re
from collections.abc import Sequence

from annotator.exchange.reading import separators
from annotator.exchange.reading.cell_words import (
    EMPTY_WORDS,
    MINUS_ONE_WORDS,
    UNKNOWN_WORDS,
    normalize_word,
    quote_words,
    split_labels,
)
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.exchange.reading.table_sample import NUMBERS_AS_IDS, ColumnMeanings, TableSample
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT, UNSURE

_NAME_WITH_NUMBER = re.compile(r".*[^\W\d].*[:=(\s]\s*(?:0?\.\d+|1\.0+|\d{1,3}(?:\.\d+)?\s?%)\)?")
_MIN_SCORED_SHARE = 0.5  # share of labels with a number behind them that makes them scores


def decide_labels(sample: TableSample, found: ColumnMeanings) -> None:
    """Decide which separators, words for "no class" and class ids the label cells use."""
    if not found.labels:
        return
    named = ", ".join(f"`{sample.names[place]}`" for place in found.labels)
    if found.vector_names:
        value = sample.names[found.labels[0]]
        why = (
            f"{named} holds a vector of answers for the {len(found.vector_names)} classes of the list beside the table"
        )
        sample.add_interpretation("label_columns", value, why)
        return
    if sample.reading.label_columns is None and all(one.field != "label_columns" for one in sample.interpretations):
        value = ",".join(sample.names[place] for place in found.labels)
        sample.add_interpretation("label_columns", value, f"{named} names the present classes of the image")
    if sample.reading.separator is not None:
        found.separator = "" if sample.reading.separator == NONE_VALUE else sample.reading.separator
    else:
        cells = [cell for place in found.labels for cell in sample.cells[place]]
        decision = separators.detect_separator(cells, sample.names[found.labels[0]])
        if decision:
            sample.interpretations.append(decision)
            found.separator = decision.value
    _ask_scores(sample, found)
    numbers = sample.reading.numbers or next(
        (one.value for one in sample.interpretations if one.field == "numbers"), None
    )
    if numbers == NUMBERS_AS_IDS and sample.class_names:
        found.class_of = {str(place): name for place, name in enumerate(sample.class_names)}
    _decide_empty_words(sample, found)


def _ask_scores(sample: TableSample, found: ColumnMeanings) -> None:
    cells = [cell for place in found.labels for cell in sample.cells[place]]
    words = [word for cell in cells for word in split_labels(cell, found.separator)]
    scored = [word for word in words if _NAME_WITH_NUMBER.fullmatch(word)]
    if scored and len(scored) >= _MIN_SCORED_SHARE * len(words) and sample.reading.score_column is None:
        name = sample.names[found.labels[0]]
        why = (
            f"`{name}` holds names with numbers, such as {scored[0][:40]!r}: what a model predicts, not answers. Give "
            f"each number a column of its own; if the number belongs to the name, it is {NONE_VALUE}"
        )
        sample.interpretations.append(Interpretation("score_column", NONE_VALUE, why, False))


def _decide_empty_words(sample: TableSample, found: ColumnMeanings) -> None:
    if sample.reading.empty_label is not None:
        found.empty_words = frozenset(normalize_word(word) for word in sample.reading.empty_label if word != NONE_VALUE)
        return
    cells = [cell for place in found.labels for cell in sample.cells[place]]
    words = dict.fromkeys(
        word for cell in cells for word in split_labels(cell, found.separator) if normalize_word(word) in EMPTY_WORDS
    )
    if words:
        why = (
            f"{quote_words(words)} may say that none of the classes is on the image (all are then absent), or be a "
            f"class of this name ({NONE_VALUE})"
        )
        sample.add_interpretation("empty_label", ",".join(words), why, False, (NONE_VALUE,))
        found.empty_words = frozenset(normalize_word(word) for word in words)


def decide_states(sample: TableSample, found: ColumnMeanings) -> None:
    """Decide which state -1 and each word in the cells mean."""
    if not found.classes:
        return
    cells = [cell for place in found.classes for cell in sample.cells[place] if isinstance(cell, str)]
    words = {cell.strip().lower() for cell in cells}
    minus = [word for word in MINUS_ONE_WORDS if word in words and word not in found.states]
    if minus:
        has_zero, has_empty = bool(words & {"0", "0.0"}), bool(words & UNKNOWN_WORDS)
        if not has_zero:
            state, field_, why, is_sure = ABSENT, "absent", "no cell is 0: -1 is absent", True
        elif has_empty:
            state, field_, is_sure = UNSURE, "unsure", False
            why = "-1 stands beside 0 and empty cells: unsure, as in CheXpert (--unsure -1), or unknown (--unknown -1)"
        else:
            state, field_, is_sure = None, "unknown", False
            why = "-1 stands beside 0: it is unknown (--unknown -1) or unsure (--unsure -1), or absent (--absent -1)"
        if not any(set(MINUS_ONE_WORDS) & set(given or ()) for given in _given_words(sample.reading)):
            sample.interpretations.append(Interpretation(field_, "-1", why, is_sure))
        found.states |= dict.fromkeys(MINUS_ONE_WORDS, state)
    named = {PRESENT: "present", ABSENT: "absent", UNSURE: "unsure", None: "unknown"}
    known = sorted(words & found.states.keys())
    meanings = [
        f"{quote_words(word or 'empty' for word in known if found.states[word] == state)} {name}"
        for state, name in named.items()
        if any(found.states[word] == state for word in known)
    ]
    sample.sentences.append(f"{format_count(len(found.classes), 'column')} of classes: {', '.join(meanings)}")


def _given_words(reading: ReadingOptions) -> list[Sequence[str] | None]:
    return [reading.present, reading.absent, reading.unsure, reading.unknown]
