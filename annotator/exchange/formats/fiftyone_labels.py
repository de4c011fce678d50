"""FiftyOne folders of one label type: data/ and labels.json (https://docs.voxel51.com).

"labels" maps image names without ending to a class, class number, object with `label` (a score with
`confidence`), list of these, or null.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ijson

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import check_json, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.label_file_pairs import ImageFiles
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files

LABELS_FILE, DATA_FOLDER = "labels.json", "data"


def recognize(path: Path) -> str | None:
    file = path / LABELS_FILE if path.is_dir() else path
    start = read_start(file) if file.is_file() else b""
    compact = b"".join(start[: 1 << 12].split())
    if (
        start[:1] == b"{"
        and b'"labels":{' in b"".join(start.split())
        and compact.startswith((b'{"classes":', b'{"labels":{'))
    ):
        return f"labels of FiftyOne: {file.name} has classes and the labels of images"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images in labels.json as items. Raises AnnotatorError for invalid JSON or classes."""
    file = path / LABELS_FILE if path.is_dir() else path
    folder = file.parent / DATA_FOLDER
    check_json(file)  # refuses a file that is not JSON or is nested too deep
    classes = _read_class_names(file)
    images = ImageFiles(list_files(folder, leave_out=folder).list_images() if folder.is_dir() else ())
    said = ["A label without a confidence is present, one with a confidence is a score. Boxes are not kept."]
    items = _read_items(file, classes, images, folder, problems, said)
    return Contents(
        [(name, "") for name in dict.fromkeys(classes)],
        items,
        folder=folder if images.paths else None,
        place="entry",
        sentences=said,
    )


def _read_class_names(file: Path) -> list[str]:
    try:
        with open_file(file) as opened:
            found = next(ijson.items(opened, "classes"), None) or []
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file} cannot be read: {error}.") from error
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise AnnotatorError(f"{file}: classes must be a list of names; it is {found!r:.100}.")
    return found


def _read_items(
    file: Path, classes: Sequence[str], images: ImageFiles, folder: Path, problems: Problems, said: list[str]
) -> Iterator[Item]:
    empty = 0
    try:
        with open_file(file) as opened:
            for key, value in ijson.kvitems(opened, "labels", use_float=True):
                labels: dict[str, None] = {}
                scores: dict[str, float] = {}
                try:
                    for name, confidence in _parse_value(value, classes):
                        if confidence is None:
                            labels[name] = None
                        else:
                            scores[name] = max(scores.get(name, 0.0), confidence)
                except ValueError as error:
                    problems.add(f"labels.{key}: {error}")
                    continue
                found = find_file_inside(folder, key) or (images.find_image(f"{key}.json", "") if images.paths else "")
                empty += value is None
                yield Item(
                    found or key,
                    f"labels.{key}",
                    [ImportedLabel(name, PRESENT) for name in labels],
                    scores=scores,
                    file=found,
                    answered=value is not None and (bool(labels) or not scores),
                )
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file} cannot be read: {error}.") from error
    if empty:
        said.append(f"{format_count(empty, 'image has', 'images have')} no label (null).")


def _parse_value(value: Any, classes: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, list):
        for each in value:
            yield from _parse_value(each, classes)
    elif isinstance(value, dict):
        confidence = value.get("confidence")
        if confidence is not None and (isinstance(confidence, bool) or not isinstance(confidence, int | float)):
            raise ValueError(f"the confidence is {confidence!r:.100}, not a number")
        for name, _ in _parse_value(value.get("label"), classes):
            yield name, None if confidence is None else float(confidence)
    elif isinstance(value, str) and value:
        yield value, None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < len(classes) or value != int(value):
            raise ValueError(f"there is no class {value!r:.100}; the last one is {len(classes) - 1}")
        yield classes[int(value)], None
    elif value is not None:
        raise ValueError(f"{value!r:.100} is neither a class nor the number of one")


FIFTYONE_LABELS = Format(
    name="fiftyone-labels",
    about="FiftyOne's image classification and detection folders: data/ and labels.json",
    recognize=recognize,
    read=read,
)
