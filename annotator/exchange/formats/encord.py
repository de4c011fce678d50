"""Encord's JSON export: label rows with data units, objects and answers to classifications.

Format: https://docs.encord.com/platform-documentation/Annotate/annotate-export/annotate-export-json. Labels with
`manualAnnotation: false` come from a model, and label rows of an unfinished task are not answers.
"""

from collections.abc import Iterator
from functools import partial
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
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions

ROW_KEYS = ("label_hash", "data_title", "data_type", "data_units", "object_answers", "classification_answers")
IMAGE_TYPES = ("image", "img_group")
FINISHED_STATUSES = frozenset(
    ("", "complete", "completed", "in_review", "labelled", "review_in_progress", "reviewed", "reviewed_twice")
)
"""States of label rows whose annotator is done, in lower case."""


def recognize(path: Path) -> str | None:
    record = find_first_record(path, *ROW_KEYS[:4])
    return "label rows of Encord: each has data units and answers" if _is_label_row(record) else None


def _is_label_row(record: Record) -> bool:
    objects = all(isinstance(record.get(key), dict) for key in ROW_KEYS[3:])
    return objects and all(isinstance(record.get(key), str) for key in ROW_KEYS[:3])


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images, whose classifications are the questions. `options.kept_rows` of "none" reads all states."""
    parse = partial(_parse_record, is_any_status=options.kept_rows == NONE_VALUE)
    said = ["An answer of a classification and the name of an object are present; boxes and masks are not kept."]
    return read_tool_records(path, problems, options, parse, said, "classification")


def _parse_record(record: Record, left_out: LeftOut, is_any_status: bool) -> Iterator[ToolAnswers]:
    if not _is_label_row(record):
        raise ForeignRecordError
    title, status = record["data_title"], _find_status(record)
    if record["data_type"] not in IMAGE_TYPES:
        left_out.add("label row is not about images", "label rows are not about images", title)
        return
    is_finished = is_any_status or status.lower() in FINISHED_STATUSES
    for unit in record["data_units"].values():
        image = require_text(unit, "data_title")
        if not is_finished:
            left_out.add(f"image has the state {status:.40}", f"images have the state {status:.40}", image)
            yield ToolAnswers(image, answered=False)
            continue
        yield _read_unit(image, get_field(unit, "labels", {}), record, left_out)


def _find_status(record: Record) -> str:
    """Return the state of a task: its stage in a workflow, else the older two fields."""
    stage = get_field(get_field(record, "workflow_graph_node", {}), "title", "")
    return stage or get_field(record, "annotation_task_status", "") or get_field(record, "label_status", "")


def _read_unit(image: str, labels: Record, record: Record, left_out: LeftOut) -> ToolAnswers:
    answers = ToolAnswers(image)
    for one in [*list_objects(labels, "objects"), *list_objects(labels, "classifications")]:
        if one.get("manualAnnotation", True) is not True:
            left_out.add("label is a model's (manualAnnotation: false)", "labels are a model's", image)
            continue
        answers.annotator = answers.annotator or get_field(one, "createdBy", "")
        if "objectHash" in one:
            answers.regions.append(require_text(one, "name"))
            if get_field(record["object_answers"].get(str(one["objectHash"])), "classifications", []):
                left_out.add("object has answers of its own", "objects have answers of their own", image)
            continue
        given = record["classification_answers"].get(require_text(one, "classificationHash"))
        for answer in list_objects(given, "classifications"):
            question, chosen = require_text(answer, "name"), answer.get("answers")
            if isinstance(chosen, str | int | float):
                answers.attributes[question] = str(chosen)
            elif isinstance(chosen, list):
                names = [require_text(choice, "name") for choice in list_objects(answer, "answers")]
                answers.choices.setdefault(question, []).extend(names)
                answers.certain.add(question)
    answers.answered = bool(answers.regions or answers.choices)
    return answers


ENCORD = Format(
    name="encord",
    about="Encord's JSON export: answers of classifications and names of objects",
    ending=".json",
    recognize=recognize,
    read=read,
)
