"""Class lists: one class per line, optionally `name<TAB>description`."""

import re
from collections.abc import Container, Sequence
from pathlib import Path

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.text_files import read_text
from annotator.store.classes import name_lists
from annotator.store.classes.classes import check_usable, find_description_problem, find_name_problem

CLASS_LIST_NAMES = ("classes.txt", "class_names.txt", "labels.txt", "names.txt")
_LARGEST = 1 << 20  # bytes


def find_class_names(path: Path) -> list[str]:
    """Return the names in the class list next to a label file, in line order, or []."""
    for name in CLASS_LIST_NAMES:
        file = path.parent / name
        try:
            if file != path and file.is_file() and file.stat().st_size <= _LARGEST:
                return [name for name, _ in read_classes(file)]
        except (OSError, AnnotatorError):
            continue
    return []


def read_classes(path: Path) -> list[tuple[str, str]]:
    """Return the (name, description) pairs in a file. Raises as `parse_class_list`."""
    return parse_class_list(read_text(path, "the class list"), str(path))


def is_indented(path: Path) -> bool:
    return any(line.strip() and line[:1].isspace() for line in read_text(path, "the class list").splitlines())


def parse_class_list(text: str, where: str = "") -> list[tuple[str, str]]:
    """Return (name, description) pairs of a class list, or raise AnnotatorError with all invalid entries.

    A line of several names is one entry (see `resolve_class_list`).

    Args:
        where: Path for messages, "" for typed text.
    """
    # Not splitlines(): it also breaks lines at characters that a name may not contain, and would hide them.
    lines = re.split(r"\r\n|\r|\n", text)
    while lines and not lines[-1].strip():
        lines.pop()
    line_of: dict[str, int] = {}
    classes: list[tuple[str, str]] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        name, _, description = line.lstrip().partition("\t")  # an indented list is one of classes, too
        name = name.strip()
        if not name:
            problems.append(f"line {number}: blank")
        elif problem := _find_entry_problem(name, description.strip()):
            problems.append(f"line {number}: {problem}")
        elif name in line_of:
            problems.append(f"line {number}: {name!r} again (first in line {line_of[name]})")
        else:
            line_of[name] = number
            classes.append((name, description.strip()))
    if not lines:
        problems.append("it is empty: write one class a line")
    if problems:
        name = f"The class list {where}" if where else "This class list"
        raise combine_problems(f"{name} cannot be used, and nothing was changed:", problems)
    return classes


def resolve_class_list(
    listed: Sequence[tuple[str, str]], known: Container[str], where: str, commas: str | None
) -> list[tuple[str, str]]:
    """Return the entries with lists of names split or kept, or raise AnnotatorError for names that cannot be used."""
    pairs = name_lists.resolve_lists(listed, known, where, commas)
    check_usable(pairs)
    return pairs


def _find_entry_problem(name: str, description: str) -> str | None:
    """Return why an entry cannot be used, or None. An entry that is no name may be a list of names."""
    problem = find_name_problem(name)
    parts = [name] if description else name_lists.split_name(name)
    if problem and parts != [name]:
        problem = next((found for part in parts if (found := find_name_problem(part))), None)
    return problem or find_description_problem(name, description)
