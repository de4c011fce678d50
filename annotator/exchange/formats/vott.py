"""VoTT 2 JSON exports (https://github.com/microsoft/VoTT), with region tags as present.

{"assets": {id: {"asset": {"name", "path"}, "regions": [{"tags": [...]}]}}}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import check_json, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file

VISITED_STATE = 1  # state of an asset that somebody opened; 2: it has regions; 0: nobody opened it


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    has_tool = b'"securityToken"' in start or b'"videoSettings"' in start or b'"activeLearningSettings"' in start
    if start[:1] == b"{" and has_tool and b'"tags"' in start and b'"assets"' in start:
        return "an export of VoTT: it has tags and assets"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the assets as items. Raises AnnotatorError for invalid JSON."""
    check_json(path)  # refuses a file that is not JSON or is nested too deep
    try:
        with open_file(path) as file:
            tags = next(ijson.items(file, "tags"), None) or []
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error
    listed = tags if isinstance(tags, list) else []
    names = [tag["name"] for tag in listed if isinstance(tag, dict) and isinstance(tag.get("name"), str)]
    said = ["The tags of a region are present. Regions are not kept."]
    return Contents(
        [(name, "") for name in dict.fromkeys(names)], _read_items(path, problems), place="asset", sentences=said
    )


def _read_items(path: Path, problems: Problems) -> Iterator[Item]:
    try:
        with open_file(path) as file:
            for key, entry in ijson.kvitems(file, "assets", use_float=True):
                place = f"assets.{key:.100}"
                asset = _get_field(entry, "asset", {})
                name = _get_field(asset, "name", "")
                if not name:
                    problems.add(f"{place} has no name of an image")
                    continue
                regions = [region for region in _get_field(entry, "regions", []) if isinstance(region, dict)]
                tags = dict.fromkeys(
                    tag for region in regions for tag in _get_field(region, "tags", []) if isinstance(tag, str)
                )
                answered = bool(tags) or _get_field(asset, "state", VISITED_STATE) != 0
                yield Item(name, place, [ImportedLabel(tag, PRESENT) for tag in tags], answered=answered)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error


def _get_field(value: Any, key: str, otherwise: Any) -> Any:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, type(otherwise)) else otherwise


VOTT = Format(
    name="vott",
    about="VoTT's JSON export: assets with the tags of their regions",
    ending=".json",
    recognize=recognize,
    read=read,
)
