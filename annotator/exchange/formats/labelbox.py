"""Labelbox's NDJSON export (version 2): data rows with the labels of their projects.

Format: https://docs.labelbox.com/reference/label-export. Checklists, radio buttons and the names of objects become
classes. Predictions of model runs (`experiments`) and labels that a review sent back are not answers.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from annotator.exchange.files.image_addresses import is_image_address
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.times import parse_iso_time
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
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions

VALID_STATUSES = ("", "DONE", "IN_REVIEW")
"""States of data rows whose labels count. Without project details, an export has none."""
NAME_KEYS = ("external_id", "global_key", "row_data")


def recognize(path: Path) -> str | None:
    record = read_first_record(path, "data_row")
    projects = get_field(record, "projects", {})
    if get_field(record, "data_row", {}).get("id") and projects and _has_labels(projects):
        return "an export of Labelbox: data rows with the labels of projects"
    return None


def _has_labels(projects: dict[str, Any]) -> bool:
    return all(isinstance(one, dict) and isinstance(one.get("labels"), list) for one in projects.values())


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the data rows, whose classifications are the questions."""
    said = ["A choice and the name of an object are present; boxes and masks are not kept."]
    parse = partial(_parse_record, is_any_status=options.kept_rows == NONE_VALUE)
    return read_tool_records(path, problems, options, parse, said, "classification")


def _parse_record(record: Record, left_out: LeftOut, is_any_status: bool) -> Iterator[ToolAnswers]:
    image = _find_image(get_field(record, "data_row", {}))
    if record.get("experiments"):
        left_out.add("data row has predictions of a model", "data rows have predictions of a model", image)
    yield ToolAnswers(image, answered=False)
    for project in get_field(record, "projects", {}).values():
        status = get_field(get_field(project, "project_details", {}), "workflow_status", "")
        is_valid = is_any_status or status in VALID_STATUSES
        for label in list_objects(project, "labels"):
            if not is_valid:
                left_out.add(f"label has the state {status:.40}", f"labels have the state {status:.40}", image)
                continue
            if get_field(get_field(label, "performance_details", {}), "skipped", False):
                left_out.add("label was skipped", "labels were skipped", image)
                continue
            annotations = get_field(label, "annotations", {})
            if "frames" in annotations:
                left_out.add("label is of a video", "labels are of videos", image)
                continue
            details = get_field(label, "label_details", {})
            answers = ToolAnswers(image, annotator=get_field(details, "created_by", ""))
            answers.decided_at = parse_iso_time(get_field(details, "created_at", ""))
            for one in list_objects(annotations, "objects"):
                answers.regions.append(require_text(one, "name"))
                if one.get("classifications"):
                    left_out.add("object has answers of its own", "objects have answers of their own", image)
            _add_choices(annotations, answers)
            yield answers


def _find_image(row: dict[str, Any]) -> str:
    names = [get_field(row, key, "") for key in NAME_KEYS]
    return next(filter(is_image_address, names), next(filter(None, names), ""))


def _add_choices(holder: Any, answers: ToolAnswers) -> None:
    """Add the answers to classifications, and to those inside of their choices."""
    for one in list_objects(holder, "classifications"):
        question = require_text(one, "name")
        chosen = list_objects(one, "checklist_answers")
        if isinstance(one.get("radio_answer"), dict):
            chosen = [*chosen, one["radio_answer"]]
        if text := get_field(get_field(one, "text_answer", {}), "content", ""):
            answers.attributes[question] = text
        else:
            answers.choices.setdefault(question, []).extend(require_text(choice, "name") for choice in chosen)
            answers.certain.add(question)
        for choice in chosen:
            _add_choices(choice, answers)


LABELBOX = Format(
    name="labelbox",
    about="Labelbox's NDJSON export: choices and names of objects of each data row",
    ending=".ndjson",
    recognize=recognize,
    read=read,
)
