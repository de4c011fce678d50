"""The card of a classifier, as Markdown: what it was trained on, how good it is, whose weights it holds, how to use it.

The questions are those of Mitchell et al., "Model Cards for Model Reporting", FAT* 2019.
"""

import re

from annotator.exchange.classifier.description import Description
from annotator.shares import percent

_MARKUP = re.compile(r"[\\`*|<>\[\]_]")


def card(description: Description, file: str) -> str:
    """Return the card.

    Args:
        description: What the file states about itself.
        file: The name of the file.
    """
    facts, names = description.facts, description.classes
    lines = [
        f"# Classifier {_plain(file)}",
        "",
        f"Gives each image the probability of {len(names):,} classes; an image may show several of them, or none.",
        "",
        "## What it is",
        "",
        *(f"* {_plain(str(sentence))}" for sentence in _list(facts.get("about"))),
        f"* Network: {_plain(description.network)}. Licence of its weights: "
        f"{_plain(description.licence) or 'not known: find out before you pass the file on'}.",
        f"* Input: RGB, resized to {description.size} x {description.size} pixels ({description.interpolation}, not "
        "cropped), values 0 to 255; the file scales them itself.",
        "",
        "## How good it is",
        "",
        *(f"* {_plain(str(sentence))}" for sentence in _list(facts.get("quality"))),
        "",
        "## Classes and thresholds",
        "",
        "Present from, and absent up to, the probability at which at most "
        f"{percent(description.expected_error, digits=1)} of the answers of a class are expected to be wrong. A class "
        "without a threshold is never that sure.",
        "",
        "| class | present from | absent up to | |",
        "|---|---|---|---|",
        *(
            _row(_plain(one.name), _number(one.present_from), _number(one.absent_to), _plain(one.description))
            for one in names
        ),
        "",
        "## How to use it",
        "",
        "    annotator classify FILE.onnx FOLDER --format csv",
        "",
        "docs/classifier.md has the same for Python, with this program and without it.",
        "",
    ]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _plain(text: str) -> str:
    """Return the text on one line, its markup escaped."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))
