"""The role of each field of a table: image, class names, answers for a class, score, field of the image, or ignored."""

from collections.abc import Sequence
from typing import NamedTuple

from annotator.exchange.reading.cell_words import normalize_word
from annotator.exchange.reading.column_names import BOX_COLUMN_NAMES
from annotator.exchange.reading.row_rules import RowRule
from annotator.exchange.reading.table_sample import ColumnMeanings, TableSample
from annotator.humanize import format_count

_IGNORED_ROLE = "ignored"
_SHOWN_EXAMPLES = 3  # values of a field
_MAX_EXAMPLE_CHARS = 30  # characters of a value
_MAX_SHOWN_ALONE = 12  # fields of one role that have a row each


class FieldRole(NamedTuple):
    """What a field of a source is read as."""

    # its name, such as a column's
    field: str
    # one of a few words, such as "image" or "class names"
    role: str
    # its first different values
    examples: Sequence[str]
    # what the role does, or why the field is ignored
    why: str


def list_field_roles(sample: TableSample, columns: ColumnMeanings) -> list[FieldRole]:
    """Return the role of each column of a table, in the order of the columns."""
    special = {
        columns.image: ("image", "names the image"),
        columns.folder: ("folder", "folder of the image, before its name"),
        columns.sha256: ("checksum", "SHA-256 of the image file"),
        columns.score: ("score", "a model's score of the class: no answer"),
        columns.event: ("event", "event that the labels are about"),
        columns.review: ("kept rows", _describe_rule(columns.row_rule)),
    }
    roles: dict[int | None, tuple[str, str]] = {}
    roles |= dict.fromkeys(columns.facts, ("field", "kept as a field of the image"))
    roles |= dict.fromkeys(columns.labels, ("class names", "its classes are present"))
    roles |= dict.fromkeys(columns.classes, ("class", "answers for the class of this name"))
    roles |= dict.fromkeys(columns.counts, ("class", "counts of the class of this name"))
    roles |= dict.fromkeys(columns.scores, ("score", "a model's scores of the class of this name: no answers"))
    roles |= special
    found = []
    for place, name in enumerate(sample.names):
        role, why = roles.get(place) or (_IGNORED_ROLE, _explain_ignored(name))
        found.append(FieldRole(name, role, _list_examples(sample, place), why))
    return found


def _describe_rule(rule: RowRule | None) -> str:
    if rule is None:
        return ""
    sign, words = ("with", rule.kept) if rule.kept else ("without", rule.words)
    return f"rows {sign} {', '.join(sorted(words))} are read"


def _explain_ignored(name: str) -> str:
    word = normalize_word(name)
    if not word:
        return "the column has no name"
    if word in BOX_COLUMN_NAMES:
        return "boxes are not read: a class with a box is present"
    return "measured from the image" if word in ("width", "height") else "not read"


def _list_examples(sample: TableSample, place: int) -> list[str]:
    found: dict[str, None] = {}
    for cell in sample.cells[place]:
        text = (cell if isinstance(cell, str) else "|".join(cell)).strip()
        if text:
            found[text if len(text) <= _MAX_EXAMPLE_CHARS else f"{text[: _MAX_EXAMPLE_CHARS - 1]}…"] = None
        if len(found) == _SHOWN_EXAMPLES:
            break
    return list(found)


def shorten_roles(roles: Sequence[FieldRole]) -> list[FieldRole]:
    """Return the roles with one row for the many fields that share a role, such as a thousand classes."""
    groups: dict[tuple[str, str], list[FieldRole]] = {}
    for one in roles:
        groups.setdefault((one.role, one.why), []).append(one)
    shown: dict[tuple[str, str, str], FieldRole] = {}
    for one in roles:
        fields = groups[one.role, one.why]
        name = one.field
        if len(fields) > _MAX_SHOWN_ALONE:
            listed = ", ".join(field.field for field in fields[:_SHOWN_EXAMPLES])
            name = f"{listed}, ... ({format_count(len(fields), 'field')})"
        shown.setdefault((name, one.role, one.why), one._replace(field=name))
    return list(shown.values())
