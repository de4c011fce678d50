"""Label Studio's JSON-MIN, CSV and TSV, with one row per annotation.

Format: https://labelstud.io/guide/export. In JSON-MIN, controls stand between `id` and `annotator`. CSV
columns are sorted, so controls are recognized by their content.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.files.image_addresses import extract_image_name, is_image_address
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows, read_header_line
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.shared.controls import Controls
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

META_FIELDS = (
    "id",
    "annotator",
    "annotation_id",
    "created_at",
    "updated_at",
    "lead_time",
    "agreement",
    "history",
    "_row_id",
)
IMAGE_FIELDS = ("image", "img", "image_url", "url")

_MARKING_KEYS = re.compile(rb'"(annotation_id|annotator|annotations|data)"\s*:')


def recognize(path: Path) -> str | None:
    if not path.is_file():
        return None
    start = read_start(path)
    keys = {match[1] for match in _MARKING_KEYS.finditer(start)} if start[:1] == b"[" else set()
    if keys == {b"annotation_id", b"annotator"}:
        return "JSON-MIN of Label Studio: a list of annotations with annotator and annotation_id"
    if start[:1] not in (b"[", b"{") and is_header(_read_header(path)[0]):
        return "a table of Label Studio: it has the columns annotation_id, annotator and lead_time"
    return None


def is_header(names: Sequence[str]) -> bool:
    """Return whether these column names are those of Label Studio's export."""
    return {"annotation_id", "annotator", "lead_time"} <= set(names)


def _read_header(path: Path) -> tuple[list[str], str]:
    line = read_header_line(path)
    delimiter = "\t" if "\t" in line else ","
    try:
        return next(csv.reader(io.StringIO(line), delimiter=delimiter), []), delimiter
    except csv.Error:
        return [], delimiter


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the annotations as items. A first pass over the file determines the meaning of controls."""
    is_table = read_start(path, 1) not in (b"[", b"{")
    rows = (lambda noted: _read_table_rows(path, noted)) if is_table else (lambda noted: _read_json_rows(path, noted))
    place = "line" if is_table else "entry"
    controls = Controls(options)
    names: dict[str, None] = {}
    is_ordered = not is_table
    for _, row in rows(Problems()):  # `_items` notes what cannot be read
        fields, is_between = _find_controls(row, is_table)
        is_ordered &= is_between
        for name in fields:
            if name in names or options.image_column != name:
                words, regions, is_certain = parse_control_value(row[name])
                names[name] = None
                if words:
                    controls.count_choices(name, words, is_certain)
                controls.count_regions(regions)
    controls.interpret_controls("control", are_all=is_ordered)
    said = [
        "Choices and the labels of regions are present; what is not chosen stays unknown, unless the set is said to be "
        "exhaustive.",
        *controls.sentences,
    ]
    items = _read_items(rows(problems), controls, is_table, options.image_column, place, problems)
    return Contents((), items, place=place, sentences=said, interpretations=controls.interpretations)


def _read_json_rows(path: Path, problems: Problems) -> Iterator[tuple[int, Mapping[str, Any]]]:
    decoder = msgspec.json.Decoder(list[dict[str, Any]])
    for piece in read_pieces(path, wanted=lambda key: key == ""):
        yield from ((index + 1, row) for index, row in piece.decode(decoder, problems))


def _read_table_rows(path: Path, problems: Problems) -> Iterator[tuple[int, Mapping[str, Any]]]:
    names, delimiter = _read_header(path)
    rows = read_csv_rows(path, problems, delimiter=delimiter)
    next(rows, None)
    for line, row in rows:
        yield line, dict(zip(names, map(_parse_cell, row), strict=True))


def _parse_cell(text: str) -> Any:
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _find_controls(row: Mapping[str, Any], is_table: bool) -> tuple[list[str], bool]:
    names = list(row)
    if not is_table and "id" in row and "annotator" in row and names.index("id") < names.index("annotator"):
        between = names[names.index("id") + 1 : names.index("annotator")]
        return [name for name in between if name not in META_FIELDS], True
    others = (name for name in names if name not in META_FIELDS and name not in IMAGE_FIELDS)
    return [name for name in others if not (isinstance(row[name], str) and is_image_address(row[name]))], False


def parse_control_value(value: Any) -> tuple[list[str], list[str], bool]:
    """Return a control's choices, its region labels, and whether the choices cannot be free text."""
    if isinstance(value, str):
        return ([value] if value else []), [], False
    words: list[str] = []
    regions: list[str] = []
    is_certain = False
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            words.append(each)
        for key, named in each.items() if isinstance(each, dict) else ():
            listed = named if isinstance(named, list) else [named]
            if key == "choices":
                words += [name for name in listed if isinstance(name, str)]
                is_certain = True
            elif key == "taxonomy":
                regions += [
                    path[-1] for path in listed if isinstance(path, list) and path and isinstance(path[-1], str)
                ]
            elif key.endswith("labels"):
                regions += [name for name in listed if isinstance(name, str)]
    return words, regions, is_certain


def _read_items(
    rows: Iterator[tuple[int, Mapping[str, Any]]],
    controls: Controls,
    is_table: bool,
    image_column: str | None,
    place: str,
    problems: Problems,
) -> Iterator[Item]:
    for number, row in rows:
        fields, _ = _find_controls(row, is_table)
        if image_column and image_column not in row:
            raise AnnotatorError(
                f"--image-column {image_column}: there is no such field. {did_you_mean(image_column, row)}"
            )
        data = {name: value for name, value in row.items() if name not in fields and name not in META_FIELDS}
        image = extract_image_name(str(row[image_column])) if image_column else find_image_name(data)
        if not image:
            listed = f" ({', '.join(map(repr, list(data)[:10]))})" if data else ""
            problems.add(f"{place} {number}: no field{listed} names an image")
            continue
        found = {name: parse_control_value(row[name]) for name in fields}
        try:
            named = controls.interpret_choices((name, words) for name, (words, _, _) in found.items() if words)
        except ValueError as error:
            problems.add(f"{place} {number}: {error}")
            continue
        labels = dict.fromkeys(named.labels)
        labels |= dict.fromkeys((word, PRESENT) for _, regions, _ in found.values() for word in regions)
        origin = (format_annotator(row.get("annotator"), None), parse_iso_time(str(row.get("created_at") or "")), "")
        yield Item(
            image,
            number,
            [ImportedLabel(name, state, *origin) for name, state in labels],
            exhaustive=named.is_nothing and not any(state == PRESENT for _, state in labels),
            attributes=named.facts,
        )


def format_annotator(by: Any, username: Any) -> str:
    """Return the annotator's email, else name, else "user 3"."""
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    if isinstance(by, int):
        return username.rsplit(",", 1)[0].strip() if isinstance(username, str) and username.strip() else f"user {by}"
    return (f"user {by}" if by.isdigit() else by) if isinstance(by, str) else ""


def find_image_name(data: Mapping[str, Any]) -> str:
    """Return the image name in a task's data: field `image`, else a URL, else the only text, else ""."""
    texts = {key: value for key, value in data.items() if isinstance(value, str) and value}
    fields = [key for key in IMAGE_FIELDS if key in texts]
    fields += [key for key, value in texts.items() if is_image_address(value)]
    fields += list(texts) if len(texts) == 1 else []
    return next((name for key in fields if (name := extract_image_name(texts[key]))), "")
