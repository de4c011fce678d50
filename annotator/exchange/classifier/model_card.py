"""Model cards of classifiers in Markdown (Mitchell et al., FAT* 2019)."""

import re

from annotator.exchange.classifier.description import Description
from annotator.humanize import format_percent

_MARKUP = re.compile(r"[\\`*|<>\[\]_]")


def format_model_card(description: Description, file: str) -> str:
    facts, names = description.facts, description.classes
    lines = [
        f"# Classifier {_escape_text(file)}",
        "",
        f"Gives each image the probability of {len(names):,} classes; an image may show several of them, or none.",
        "",
        "## What it is",
        "",
        *(f"* {_escape_text(str(sentence))}" for sentence in _list_or_empty(facts.get("about"))),
        f"* Network: {_escape_text(description.network)}. Licence of its weights: "
        f"{_escape_text(description.licence) or 'not known: find out before you pass the file on'}.",
        f"* Input: RGB, resized to {description.size} x {description.size} pixels ({description.interpolation}, not "
        "cropped), values 0 to 255; the file scales them itself.",
        "",
        "## How good it is",
        "",
        *(f"* {_escape_text(str(sentence))}" for sentence in _list_or_empty(facts.get("quality"))),
        "",
        "## Classes and thresholds",
        "",
        "Present from, and absent up to, the probability at which at most "
        f"{format_percent(description.expected_error, digits=1)} of the answers of a class are expected to be wrong. A "
        "class without a threshold is never that sure.",
        "",
        "| class | present from | absent up to | |",
        "|---|---|---|---|",
        *(
            _format_row(
                _escape_text(one.name),
                _format_number(one.present_from),
                _format_number(one.absent_to),
                _escape_text(one.description),
            )
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


def _format_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _list_or_empty(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _escape_text(text: str) -> str:
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))
