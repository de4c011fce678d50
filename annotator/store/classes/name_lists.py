"""Detection of class names that may be lists: "fox, deer" is one, "Fox, red" is not."""

import re
from collections.abc import Container, Iterable, Sequence

from annotator.errors import AnnotatorError

SPLIT, KEEP = "split", "keep"
"""What may be said of names that may be lists: they are several classes each, or one."""

# Commas and semicolons, also those of Chinese and Japanese; not between digits: "lens 1,4".
_SEPARATOR_PATTERN = re.compile(r"(?<!\d)[,;]|[,;](?!\d)|[，、；]")


def split_name(name: str) -> list[str]:
    """Split a name at commas and semicolons, and return the unique parts, or [name] if it is not a list."""
    parts = [part.strip() for part in _SEPARATOR_PATTERN.split(name) if part.strip()]
    return list(dict.fromkeys(parts)) if len(parts) > 1 else [name]


def find_lists(pairs: Iterable[tuple[str, str]], known: Container[str]) -> list[str]:
    """Return the names in (name, description) pairs that may be lists: with separators and without description."""
    return [name for name, text in pairs if not text and name not in known and split_name(name) != [name]]


def split_names(pairs: Iterable[tuple[str, str]], lists: Container[str]) -> list[tuple[str, str]]:
    """Return the pairs with names in `lists` split, without duplicates."""
    texts: dict[str, str] = {}
    for name, text in pairs:
        for part in split_name(name) if name in lists else [name]:
            texts[part] = text or texts.get(part, "")
    return list(texts.items())


def resolve_lists(
    pairs: Sequence[tuple[str, str]], known: Container[str], where: str, commas: str | None
) -> list[tuple[str, str]]:
    """Split names that may be lists, or keep them, as `commas` (SPLIT, KEEP or None) selects.

    Args:
        pairs: (name, description) pairs.

    Raises:
        AnnotatorError: Names may be lists, but `commas` is None.
    """
    lists = find_lists(pairs, known)
    if not lists or commas == KEEP:
        return list(pairs)
    if commas == SPLIT:
        return split_names(pairs, lists)
    first, more = lists[0], f" (and {len(lists) - 1:,} more names with commas)" if len(lists) > 1 else ""
    apart = ", ".join(map(repr, split_name(first)))
    raise AnnotatorError(
        f"{first!r} in {where}{more} may be {len(split_name(first))} classes or one, and nothing was changed. Say "
        f"which: --commas {SPLIT} makes it {apart}; --commas {KEEP} makes it one class of that name. Or write one "
        "class a line."
    )
