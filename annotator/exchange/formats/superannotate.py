"""SuperAnnotate's export: one JSON file per image, with metadata, instances and tags, and classes/classes.json.

Format: https://doc.superannotate.com/docs/vector-json. Only images that were submitted (Completed, QualityCheck) hold
answers. Instances that a model created are not read.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.exchange.formats.shared.tool_records import (
    ForeignRecordError,
    LeftOut,
    Record,
    ToolAnswers,
    find_first_record,
    get_field,
    list_objects,
    read_tool_records,
    require_text,
)
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions

CLASSES_FILE = "classes.json"
MAX_CLASSES_BYTES = 16 << 20
SUBMITTED_STATUSES = ("", "Completed", "QualityCheck")
"""Statuses of images whose annotator is done. Exports of old versions have none."""
PEOPLES_CREATION_TYPES = ("", "Manual", "Preannotation")
"""Ways of creation that leave the instance to the annotator. A preannotation was confirmed with its image."""


class _Class(msgspec.Struct):
    id: int
    name: str


_CLASSES_DECODER = msgspec.json.Decoder(list[_Class])


def recognize(path: Path) -> str | None:
    record = find_first_record(path, "metadata", "instances", "name")
    return "an export of SuperAnnotate: metadata and instances of an image" if _is_superannotate(record) else None


def _is_superannotate(record: Record) -> bool:
    metadata, instances = get_field(record, "metadata", {}), record.get("instances")
    has_metadata = bool(get_field(metadata, "name", "")) and not {"status", "lastAction", "projectId"}.isdisjoint(
        metadata
    )
    return (
        has_metadata
        and isinstance(instances, list)
        and all(isinstance(one, dict) and not {"className", "classId", "meta"}.isdisjoint(one) for one in instances)
    )


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images. `options.kept_rows` of "none" also reads those that were not submitted."""
    names = _read_class_names(path)
    parse = partial(_parse_record, names=names, is_any_status=options.kept_rows == NONE_VALUE)
    said = ["The class of a tag, box or shape is present; shapes and attributes are not kept."]
    known_files = [CLASSES_FILE] if names else []
    return read_tool_records(path, problems, options, parse, said, "attribute", known_files)


def _read_class_names(path: Path) -> dict[int, str]:
    """Return the names of classes by id, or {} without a valid list."""
    root = path if path.is_dir() else path.parent
    for file in (root / "classes" / CLASSES_FILE, root / CLASSES_FILE):
        try:
            return {one.id: one.name for one in _CLASSES_DECODER.decode(read_start(file, MAX_CLASSES_BYTES))}
        except (msgspec.MsgspecError, RecursionError):
            continue
    return {}


def _parse_record(
    record: Record, left_out: LeftOut, names: Mapping[int, str], is_any_status: bool
) -> Iterator[ToolAnswers]:
    if not _is_superannotate(record):
        raise ForeignRecordError
    metadata = get_field(record, "metadata", {})
    image, status = require_text(metadata, "name"), get_field(metadata, "status", "")
    if "duration" in metadata or any("meta" in one for one in record["instances"]):
        left_out.add("item is a video", "items are videos", image)
        return
    if status not in SUBMITTED_STATUSES and not is_any_status:
        left_out.add(f"image has the status {status:.40}", f"images have the status {status:.40}", image)
        yield ToolAnswers(image, answered=False)
        return
    answers = ToolAnswers(image, annotator=get_field(metadata, "annotatorEmail", ""))
    for one in list_objects(record, "instances"):
        if get_field(one, "creationType", "") not in PEOPLES_CREATION_TYPES:
            left_out.add("instance was not created by a person", "instances were not created by a person", image)
            continue
        name = get_field(one, "className", "").strip() or names.get(get_field(one, "classId", -1), "")
        if not name:
            left_out.add("instance has no class", "instances have no class", image)
            continue
        answers.regions.append(name)
        answers.decided_at = parse_iso_time(get_field(one, "updatedAt", "")) or answers.decided_at
        if one.get("attributes"):
            left_out.add("instance has attributes", "instances have attributes", image)
    answers.regions += [tag for tag in get_field(record, "tags", []) if isinstance(tag, str) and tag.strip()]
    answers.answered = bool(answers.regions)
    if record.get("comments"):
        left_out.add("image has comments", "images have comments", image)
    yield answers


SUPERANNOTATE = Format(
    name="superannotate",
    about="SuperAnnotate's export, one JSON file per image: classes of submitted images",
    ending=".json",
    recognize=recognize,
    read=read,
)
