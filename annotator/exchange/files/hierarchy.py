"""Class hierarchies from indented text, COCO, Open Images or taxonomy paths, told apart by content."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError

MAX_FILE_BYTES = 50_000_000
MAX_LEVELS = 100  # levels


def read_hierarchy(path: Path) -> list[tuple[str, str]]:
    """Return unique (child, parent) class names in file order. Raises AnnotatorError.

    * JSON with `categories`: COCO supercategories.
    * JSON with `LabelName` and `Subcategory`: Open Images.
    * Text with semicolons: one taxonomy path per line, as in SpeciesNet.
    * Other text: one class per line, indented below its parent.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise AnnotatorError(f"{path} has more than {MAX_FILE_BYTES:,} bytes: that is no list of classes.")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} cannot be read as text in UTF-8: {error}") from error
    if text.lstrip().startswith(("{", "[")):
        pairs = list(_parse_json(path, text))
    elif ";" in text:
        pairs = list(_parse_taxonomy_paths(text))
    else:
        pairs = list(_parse_indented_lines(path, text))
    if not pairs:
        raise AnnotatorError(
            f"{path} says of no class what it is a kind of. Read are indented lines, COCO's supercategories, the "
            "hierarchy of Open Images, and paths such as animalia;mammalia;canidae."
        )
    return list(dict.fromkeys(pairs))


def _parse_json(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnnotatorError(f"{path} is no JSON: {error}") from error
    if isinstance(value, dict) and isinstance(value.get("categories"), list):
        for category in value["categories"]:
            name, above = (str(category.get(key) or "").strip() for key in ("name", "supercategory"))
            if name and above and name != above:
                yield name, above
    elif isinstance(value, dict) and "LabelName" in value:
        yield from _parse_open_images(value)
    else:
        raise AnnotatorError(f"{path} has neither COCO's `categories` nor the `LabelName` of Open Images.")


def _parse_open_images(value: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > MAX_LEVELS:
        raise AnnotatorError(f"The hierarchy has more than {MAX_LEVELS} levels.")
    for below in value.get("Subcategory") or []:
        if isinstance(below, dict) and below.get("LabelName"):
            yield str(below["LabelName"]), str(value["LabelName"])
            yield from _parse_open_images(below, depth + 1)


def _parse_taxonomy_paths(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(";")]
        if parts and len(parts[0]) == 36 and parts[0].count("-") == 4:  # SpeciesNet's id of a taxon
            parts = parts[1:]
        ranks = [part for part in parts if part]
        yield from ((child, parent) for parent, child in pairwise(ranks) if child != parent)


def _parse_indented_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        name = line.strip().partition("\t")[0].strip()  # a description may follow, as in lists of classes
        if not name:
            continue
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        if indent and not above:
            raise AnnotatorError(f"Line {number} of {path} is indented, but nothing stands above it: {name!r}.")
        if above:
            yield name, above[-1][1]
        above.append((indent, name))
        if len(above) > MAX_LEVELS:
            raise AnnotatorError(f"The hierarchy has more than {MAX_LEVELS} levels.")
