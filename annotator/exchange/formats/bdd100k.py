"""BDD100K and Scalabel: frames with attributes of the image, and labels with categories.

Format: https://doc.bdd100k.com/format.html. Files are lists of frames, objects with `frames`, or one object per image
with `frames` and `objects`. A label with a `score` comes from a model. Attributes such as weather are a question.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.tool_records import (
    ForeignRecordError,
    LeftOut,
    Record,
    ToolAnswers,
    find_first_record,
    get_field,
    list_objects,
    read_tool_records,
)
from annotator.exchange.reading.reading_options import ReadingOptions

FRAME_KEYS = frozenset(("attributes", "videoName", "frameIndex", "timestamp"))
SHAPE_KEYS = frozenset(("box2d", "poly2d", "box3d", "rle", "graph", "id", "attributes"))
UNDEFINED_VALUE = "undefined"
"""The value of attributes that nobody answered."""


def recognize(path: Path) -> str | None:
    frames = _list_frames(find_first_record(path, "name"))
    return "frames of BDD100K or Scalabel: name, attributes and labels" if frames else None


def _list_frames(record: Record) -> Sequence[Record]:
    """Return the frames of a record, as objects with name and labels, or () for another kind of record."""
    parts = record.get("frames")
    found: list[Any] = [record]
    if isinstance(parts, list) and parts and isinstance(record.get("name"), str):
        labels = [get_field(part, "objects", [None]) for part in parts]
        found = [{**record, "labels": [one for some in labels for one in some]}]
    elif isinstance(parts, list):
        found = parts
    return found if found and all(map(_is_frame, found)) else ()


def _is_frame(frame: Any) -> bool:
    labels = frame.get("labels", ()) if isinstance(frame, dict) else ()
    return (
        bool(get_field(frame, "name", ""))
        and not FRAME_KEYS.isdisjoint(frame)
        and (labels is None or (isinstance(labels, list) and all(map(_is_label, labels))))
    )


def _is_label(label: Any) -> bool:
    return isinstance(label, dict) and "category" in label and not SHAPE_KEYS.isdisjoint(label)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the frames, whose attributes are the questions."""
    said = ["The category of a label is present; shapes and attributes of labels are not kept."]
    return read_tool_records(path, problems, options, _parse_record, said, "attribute", are_all=False)


def _parse_record(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
    frames = _list_frames(record)
    if not frames:
        raise ForeignRecordError
    for frame in frames:
        image = frame["name"]
        answers = ToolAnswers(image)
        for label in list_objects(frame, "labels"):
            category = get_field(label, "category", "").strip()
            if label.get("score") is not None:
                left_out.add("label is a model's (it has a score)", "labels are a model's", image)
            elif not category:
                left_out.add("label has no category", "labels have no category", image)
            else:
                answers.regions.append(category)
        for name, value in get_field(frame, "attributes", {}).items():
            words = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
            if words := [word for word in words if word.strip() and word != UNDEFINED_VALUE]:
                answers.choices[name] = words
        answers.answered = bool(answers.regions or answers.choices)
        yield answers


BDD100K = Format(
    name="bdd100k",
    about="BDD100K and Scalabel: categories of labels, and attributes of images",
    ending=".json",
    recognize=recognize,
    read=read,
)
