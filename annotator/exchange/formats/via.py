"""VGG Image Annotator 1 and 2: attributes of files and regions, as project, JSON or CSV.

Format: https://www.robots.ox.ac.uk/~vgg/software/via/. Attributes become classes by shared/controls.py.
Regions are not kept.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import ijson

from annotator.errors import AnnotatorError
from annotator.exchange.files.image_addresses import extract_image_name
from annotator.exchange.files.json_stream import check_json, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows, read_header_line
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.controls import Controls
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file

PROJECT_KEY = "_via_img_metadata"
OPTIONS_KEY = "_via_attributes"  # {"file" or "region": {attribute: {"options": {id: description}}}}
TABLE_COLUMNS = ("filename", "file_attributes", "region_attributes")
UNSET_VALUES = ("", "undefined")
MAX_NAMES_SHOWN = 10

AttributeChoices = dict[str, dict[str, None]]
"""Attribute -> its choices on one image."""
OptionNames = Mapping[str, Mapping[str, str]]
"""Attribute -> id of an option -> the description that annotators read."""


def recognize(path: Path) -> str | None:
    if not path.is_file():
        return None
    start = read_start(path)
    if start[:1] == b"{":
        if b'"_via_settings"' in start or f'"{PROJECT_KEY}"'.encode() in start:
            return "a project of VGG Image Annotator"
        if b'"file_attributes"' in start and b'"regions"' in start and b'"filename"' in start:
            return "JSON of VGG Image Annotator: files with regions and attributes"
    elif set(TABLE_COLUMNS) <= set(_read_header(path)):
        return "a table of VGG Image Annotator: it has file_attributes and region_attributes"
    return None


def _read_header(path: Path) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(read_header_line(path).removeprefix("#"))), [])
    except csv.Error:
        return []


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the project's files as items. The options select attributes in place of columns."""
    is_table = read_start(path, 1) != b"{"
    rows: Callable[[Problems], Iterator[tuple[str, str, AttributeChoices]]]
    if not is_table:
        check_json(path)  # refuses a file that is not JSON or is nested too deep
    names = {} if is_table else _read_option_names(path)
    rows = (
        (lambda noted: _read_table_rows(path, noted))
        if is_table
        else (lambda noted: _read_json_rows(path, noted, names))
    )
    controls = Controls(options)
    for _, _, choices in rows(Problems()):  # the second time, problems are noted
        for name, words in choices.items():
            controls.count_choices(name, words, is_certain=False)
    controls.interpret_controls("attribute", are_all=False)
    said = ["Attributes of files and regions are present; what is not chosen stays unknown.", *controls.sentences]
    renamed = [f"{key} is {name!r}" for options in names.values() for key, name in options.items() if key != name]
    if renamed:
        more = f" and {len(renamed) - MAX_NAMES_SHOWN:,} more" if len(renamed) > MAX_NAMES_SHOWN else ""
        said.append(f"Options are read by their descriptions: {', '.join(renamed[:MAX_NAMES_SHOWN])}{more}.")
    place = "line" if is_table else "entry"
    return Contents(
        (),
        _read_items(rows(problems), controls, problems),
        place=place,
        sentences=said,
        interpretations=controls.interpretations,
    )


def _read_items(
    rows: Iterator[tuple[str, str, AttributeChoices]], controls: Controls, problems: Problems
) -> Iterator[Item]:
    for place, image, choices in rows:
        try:
            named = controls.interpret_choices((name, list(words)) for name, words in choices.items())
        except ValueError as error:
            problems.add(f"{place}: {error}")
            continue
        labels = [ImportedLabel(name, state) for name, state in named.labels]
        is_nothing = named.is_nothing and not any(given.state == PRESENT for given in labels)
        yield Item(
            image, place, labels, exhaustive=is_nothing, attributes=named.facts, answered=bool(labels) or is_nothing
        )


def _read_option_names(path: Path) -> dict[str, dict[str, str]]:
    """Return the descriptions of a project's options. Those that are not unique keep their ids."""
    try:
        with open_file(path) as file:
            kinds = next(ijson.items(file, OPTIONS_KEY), None)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error
    found: dict[str, dict[str, str]] = {}
    for kind in ("region", "file"):
        attributes = kinds.get(kind) if isinstance(kinds, Mapping) else None
        for name, attribute in attributes.items() if isinstance(attributes, Mapping) else ():
            options = attribute.get("options") if isinstance(attribute, Mapping) else None
            if isinstance(options, Mapping):
                texts = {key: text.strip() for key, text in options.items() if isinstance(text, str) and text.strip()}
                names: dict[str, str] = {str(key): texts.get(key) or str(key) for key in options}
                found[name] = found.get(name, {}) | (names if len(set(names.values())) == len(names) else {})
    return found


def _read_json_rows(path: Path, problems: Problems, names: OptionNames) -> Iterator[tuple[str, str, AttributeChoices]]:
    try:
        prefix = PROJECT_KEY if _has_project_key(path) else ""
        with open_file(path) as file:
            for key, entry in ijson.kvitems(file, prefix, use_float=True):
                place = f"the entry {key!r:.100}"
                image = extract_image_name(str(entry.get("filename") or "")) if isinstance(entry, dict) else ""
                if not image:
                    problems.add(f"{place} has no filename")
                    continue
                regions = entry.get("regions") or ()
                regions = list(regions.values()) if isinstance(regions, dict) else regions  # VIA 1 numbers them
                if not isinstance(regions, list | tuple):
                    problems.add(f"{place}: its regions are {regions!r:.100}, not a list")
                    continue
                of_regions = (region.get("region_attributes") for region in regions if isinstance(region, dict))
                yield place, image, _collect_choices(chain([entry.get("file_attributes")], of_regions), names)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error


def _has_project_key(path: Path) -> bool:
    with open_file(path) as file:
        return any(
            prefix == "" and event == "map_key" and value == PROJECT_KEY for prefix, event, value in ijson.parse(file)
        )


def _read_table_rows(path: Path, problems: Problems) -> Iterator[tuple[str, str, AttributeChoices]]:
    names = _read_header(path)
    rows = read_csv_rows(path, problems)
    next(rows, None)
    for line, cells in rows:
        row = dict(zip(names, cells, strict=False))
        image = extract_image_name(row["filename"])
        if not image:
            problems.add(f"line {line}: it has no filename")
            continue
        try:
            parsed = [json.loads(row[name] or "{}") for name in TABLE_COLUMNS[1:]]
        except (ValueError, RecursionError) as error:
            problems.add(f"line {line}: an attribute is not JSON: {error}")
            continue
        yield f"line {line}", image, _collect_choices(iter(parsed), {})


def _collect_choices(attributes: Iterator[Any], names: OptionNames) -> AttributeChoices:
    found: AttributeChoices = {}
    for each in attributes:
        for name, value in each.items() if isinstance(each, Mapping) else ():
            ticked = [key for key, is_ticked in value.items() if is_ticked] if isinstance(value, Mapping) else [value]
            words = [str(word).strip() for word in ticked if isinstance(word, str | int | float)]
            if words := [word for word in words if word not in UNSET_VALUES]:
                of_options = names.get(name, {})
                found[name] = found.get(name, {}) | dict.fromkeys(of_options.get(word, word) for word in words)
    return found


VIA = Format(
    name="via",
    about="VGG Image Annotator: a project, JSON or CSV with attributes of files and regions",
    ending=".json",
    recognize=recognize,
    read=read,
)
