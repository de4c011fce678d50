"""Decides what the cells of labels and classes mean: separators, words for nothing, ids, and what -1 stands for."""

import re
from collections.abc import Sequence

from annotator.exchange.reading import separators
from annotator.exchange.reading.reading import NONE, Decided, Reading
from annotator.exchange.reading.sample import IDS, Columns, Sample
from annotator.exchange.reading.words import EMPTY_WORDS, MINUS, UNKNOWN_WORDS, in_words, plain, split
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.shares import counted

_SCORED = re.compile(r".*[^\W\d].*[:=(\s]\s*(?:0?\.\d+|1\.0+|\d{1,3}(?:\.\d+)?\s?%)\)?")
_MOSTLY = 0.5  # share of labels with a number behind them that makes them scores


def decide_labels(sample: Sample, found: Columns) -> None:
    """Decide what separates labels, which words name none, and what ids stand for."""
    if not found.labels:
        return
    named = ", ".join(f"`{sample.names[place]}`" for place in found.labels)
    if sample.reading.label_columns is None and all(one.field != "label_columns" for one in sample.decided):
        value = ",".join(sample.names[place] for place in found.labels)
        sample.decide("label_columns", value, f"{named} names the present classes of the image")
    if sample.reading.separator is not None:
        found.separator = "" if sample.reading.separator == NONE else sample.reading.separator
    else:
        cells = [cell for place in found.labels for cell in sample.cells[place]]
        decision = separators.decide(cells, sample.names[found.labels[0]])
        if decision:
            sample.decided.append(decision)
            found.separator = decision.value
    _ask_scores(sample, found)
    numbers = sample.reading.numbers or next((one.value for one in sample.decided if one.field == "numbers"), None)
    if numbers == IDS and sample.class_names:
        found.class_of = {str(place): name for place, name in enumerate(sample.class_names)}
    _nothing(sample, found)


def _ask_scores(sample: Sample, found: Columns) -> None:
    """Ask about labels with a number behind them, such as fox:0.9."""
    cells = [cell for place in found.labels for cell in sample.cells[place]]
    words = [word for cell in cells for word in split(cell, found.separator)]
    scored = [word for word in words if _SCORED.fullmatch(word)]
    if scored and len(scored) >= _MOSTLY * len(words) and sample.reading.score_column is None:
        name = sample.names[found.labels[0]]
        why = (
            f"`{name}` holds names with numbers, such as {scored[0][:40]!r}: what a model predicts, not answers. Give "
            f"each number a column of its own; if the number belongs to the name, it is {NONE}"
        )
        sample.decided.append(Decided("score_column", NONE, why, False))


def _nothing(sample: Sample, found: Columns) -> None:
    if sample.reading.empty_label is not None:
        found.nothing = frozenset(plain(word) for word in sample.reading.empty_label if word != NONE)
        return
    cells = [cell for place in found.labels for cell in sample.cells[place]]
    words = dict.fromkeys(word for cell in cells for word in split(cell, found.separator) if plain(word) in EMPTY_WORDS)
    if words:
        why = (
            f"{in_words(words)} may say that none of the classes is on the image (all are then absent), or be a class "
            f"of this name ({NONE})"
        )
        sample.decide("empty_label", ",".join(words), why, False, (NONE,))
        found.nothing = frozenset(plain(word) for word in words)


def decide_states(sample: Sample, found: Columns) -> None:
    """Decide what -1 means, and say which words of the cells mean what."""
    if not found.classes:
        return
    cells = [cell for place in found.classes for cell in sample.cells[place] if isinstance(cell, str)]
    words = {cell.strip().lower() for cell in cells}
    minus = [word for word in MINUS if word in words and word not in found.states]
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
        if not any(set(MINUS) & set(given or ()) for given in _given_words(sample.reading)):
            sample.decided.append(Decided(field_, "-1", why, is_sure))
        found.states |= dict.fromkeys(MINUS, state)
    named = {PRESENT: "present", ABSENT: "absent", UNSURE: "unsure", None: "unknown"}
    known = sorted(words & found.states.keys())
    meanings = [
        f"{in_words(word or 'empty' for word in known if found.states[word] == state)} {name}"
        for state, name in named.items()
        if any(found.states[word] == state for word in known)
    ]
    sample.said.append(f"{counted(len(found.classes), 'column')} of classes: {', '.join(meanings)}")


def _given_words(reading: Reading) -> list[Sequence[str] | None]:
    return [reading.present, reading.absent, reading.unsure, reading.unknown]
