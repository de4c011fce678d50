"""Prodigy's JSON lines about images: choices, binary decisions and drawn regions.

Format: https://prodi.gy/docs/api-interfaces. Only records with the answer "accept" hold labels.
"""

from collections.abc import Iterator
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.tool_records import (
    LeftOut,
    Record,
    ToolAnswers,
    get_field,
    list_objects,
    read_first_record,
    read_tool_records,
    require_text,
)
from annotator.exchange.reading.reading_options import ReadingOptions

ANSWERS = ("accept", "reject", "ignore")
STORED_IMAGE_PREFIX = "data:"


def recognize(path: Path) -> str | None:
    record = read_first_record(path, "image", "answer")
    if not get_field(record, "image", "") or record.get("answer") not in ANSWERS:
        return None
    if _has_options(record) and isinstance(record.get("accept"), list):
        return "choices of Prodigy: each record has options, accept and answer"
    has_task = "_task_hash" in record and "_input_hash" in record
    if has_task and (get_field(record, "label", "") or isinstance(record.get("spans"), list)):
        return "records of Prodigy: each has an image, a label or spans, and an answer"
    return None


def _has_options(record: Record) -> bool:
    options = get_field(record, "options", [])
    return bool(options) and all(isinstance(one, dict) and "id" in one for one in options)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images of accepted records."""
    said = ["What is chosen or drawn in an accepted record is present; regions are not kept."]
    return read_tool_records(path, problems, options, _parse_record, said, "question")


def _parse_record(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
    image, answer = _find_image(record), record.get("answer")
    if answer not in ANSWERS:
        raise ValueError(f"`answer` is {answer!r:.100}; it must be one of: {', '.join(ANSWERS)}")
    if answer != "accept":
        verb = "rejected" if answer == "reject" else "ignored"
        left_out.add(f"record was {verb}", f"records were {verb}", image)
        yield ToolAnswers(image, answered=False)
        return
    names = {str(one.get("id")): _find_option_name(one) for one in list_objects(record, "options")}
    if len(set(names.values())) < len(names):
        raise ValueError(f"two of its options have the same text: {', '.join(names.values()):.200}")
    chosen = [str(one) for one in get_field(record, "accept", [])]
    if unknown := [one for one in chosen if one not in names]:
        raise ValueError(f"`accept` has {unknown[0]!r:.100}, which is none of its options: {', '.join(names):.200}")
    labels = [names[one] for one in chosen]
    labels += [require_text(one, "label") for one in list_objects(record, "spans")]
    labels += [record["label"]] if not names and get_field(record, "label", "") and not record.get("spans") else []
    at = record.get("_timestamp")
    yield ToolAnswers(
        image,
        list(dict.fromkeys(labels)),
        annotator=get_field(record, "_annotator_id", "") or get_field(record, "_session_id", ""),
        decided_at=float(at) if isinstance(at, int | float) and not isinstance(at, bool) else None,
    )


def _find_image(record: Record) -> str:
    """Return the path or URL of an image, for images inside of the record that of their file."""
    image = get_field(record, "image", "")
    if not image or image.startswith(STORED_IMAGE_PREFIX):
        image = get_field(record, "path", "") or get_field(get_field(record, "meta", {}), "file", "")
    if not image:
        raise ValueError("its image is stored inside, and neither `path` nor `meta.file` has its name")
    return image


def _find_option_name(option: Record) -> str:
    text = get_field(option, "text", "").strip() or str(option.get("id", "")).strip()
    if not text:
        raise ValueError(f"the option {option!r:.100} has no text and no id")
    return text


PRODIGY = Format(
    name="prodigy",
    about="Prodigy's JSON lines about images: accepted choices, labels and regions",
    ending=".jsonl",
    recognize=recognize,
    read=read,
)
