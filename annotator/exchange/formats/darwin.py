"""V7's Darwin JSON 2.0: one file per image, with tags, boxes and shapes.

Format: https://docs.v7labs.com/reference/darwin-json. An annotation with `inference` comes from a model, and is an
answer only if it has reviewers. A folder with such files, such as an export, is read as a whole.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

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
    require_text,
)
from annotator.exchange.reading.reading_options import ReadingOptions

IMAGE_SLOT = "image"
"""Type of the slots that hold images, as opposed to videos and volumes."""
RASTER_KEY = "raster_layer"
"""Key of the annotation with the pixels of all masks, which are annotations of their own."""


def recognize(path: Path) -> str | None:
    record = find_first_record(path, "version", "item", "annotations")
    return "Darwin JSON of V7: it has version 2, an item and its annotations" if _is_darwin(record) else None


def _is_darwin(record: Record) -> bool:
    return (
        get_field(record, "version", "").startswith("2")
        and bool(get_field(get_field(record, "item", {}), "name", ""))
        and isinstance(record.get("annotations"), list)
    )


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images. Item properties are fields, but `options.label_columns` names those that hold classes."""
    chosen = frozenset((*(options.label_columns or ()), *(options.class_columns or ())))

    def parse(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
        return _parse_record(record, left_out, chosen)

    said = [
        "A tag and the name of a box or shape are present; shapes are not kept.",
        "Item properties are fields of the image; --label-column NAME makes the values of one classes.",
    ]
    return read_tool_records(path, problems, options, parse, said, "property")


def _parse_record(record: Record, left_out: LeftOut, chosen: Collection[str]) -> Iterator[ToolAnswers]:
    if not _is_darwin(record):
        raise ForeignRecordError
    item = get_field(record, "item", {})
    folder, slots = get_field(item, "path", "").strip("/"), list_objects(item, "slots")
    image = f"{folder}/{item['name']}" if folder else item["name"]
    if len(slots) > 1 or any(slot.get("type", IMAGE_SLOT) != IMAGE_SLOT for slot in slots):
        left_out.add("item is not a single image", "items are not single images", image)
        return
    answers = ToolAnswers(image)
    for one in list_objects(record, "annotations"):
        if RASTER_KEY in one:
            continue
        if "inference" in one and not one.get("reviewers"):
            left_out.add("annotation is a model's", "annotations are a model's", image)
            continue
        answers.regions.append(require_text(one, "name"))
        if one.get("properties"):
            left_out.add("annotation has properties", "annotations have properties", image)
    for one in list_objects(record, "properties"):
        name, value = require_text(one, "name"), get_field(one, "value", "")
        if name in chosen:
            answers.choices.setdefault(name, []).append(value)
            answers.certain.add(name)
        elif value:
            answers.attributes[name] = ", ".join(filter(None, (answers.attributes.get(name), value)))
    answers.answered = bool(answers.regions or answers.choices)
    yield answers


DARWIN = Format(
    name="darwin",
    about="V7's Darwin JSON 2.0, one file per image: tags, and names of boxes and shapes",
    ending=".json",
    recognize=recognize,
    read=read,
)
