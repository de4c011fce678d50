"""Scale AI's tasks as JSON: image annotation and categorization with their responses.

Format: https://scale.com/docs/api-reference/tasks. Only completed tasks that no review rejected hold answers. A
`hypothesis` is a model's and is not read.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

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

COMPLETED_STATUS = "completed"
VALID_REVIEWS = ("", "accepted", "fixed", "commented", "pending")
"""Review states of tasks whose response counts."""
IMAGE_ATTACHMENT = "image"


def recognize(path: Path) -> str | None:
    record = find_first_record(path, "task_id", "type", "status", "params", "attachment")
    return "tasks of Scale AI: each has params with an attachment" if any(map(_is_task, _list_tasks(record))) else None


def _list_tasks(record: Record) -> Sequence[Record]:
    """Return the tasks of a record: itself, or those of a page of the API's list."""
    return list_objects(record, "docs") if isinstance(record.get("docs"), list) else [record]


def _is_task(record: Record) -> bool:
    has_texts = all(get_field(record, key, "") for key in ("task_id", "type", "status"))
    return has_texts and bool(get_field(get_field(record, "params", {}), "attachment", ""))


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the tasks. `options.kept_rows` of "none" also reads those that are not completed, or were rejected."""
    chosen = (*(options.label_columns or ()), *(options.class_columns or ()))
    parse = partial(_parse_record, chosen=chosen, is_any_status=options.kept_rows == NONE_VALUE)
    said = [
        "A category and the label of a box or shape are present; shapes are not kept.",
        "Global attributes are fields of the image; --label-column NAME makes the values of one classes.",
    ]
    return read_tool_records(path, problems, options, parse, said, "attribute")


def _parse_record(
    record: Record, left_out: LeftOut, chosen: tuple[str, ...], is_any_status: bool
) -> Iterator[ToolAnswers]:
    for task in _list_tasks(record):
        if not _is_task(task):
            raise ForeignRecordError
        yield from _parse_task(task, left_out, chosen, is_any_status)


def _parse_task(task: Record, left_out: LeftOut, chosen: tuple[str, ...], is_any_status: bool) -> Iterator[ToolAnswers]:
    params, status = get_field(task, "params", {}), get_field(task, "status", "")
    image, review = require_text(params, "attachment"), get_field(task, "customer_review_status", "")
    if get_field(params, "attachment_type", IMAGE_ATTACHMENT) != IMAGE_ATTACHMENT:
        left_out.add("task is not about an image", "tasks are not about images", image)
        return
    if params.get("hypothesis"):
        left_out.add("task has a hypothesis of a model", "tasks have a hypothesis of a model", image)
    refused = status if status != COMPLETED_STATUS else review if review not in VALID_REVIEWS else ""
    if refused and not is_any_status:
        left_out.add(f"task is {refused:.40}", f"tasks are {refused:.40}", image)
        yield ToolAnswers(image, answered=False)
        return
    response = get_field(task, "response", {})
    answers = ToolAnswers(image, decided_at=parse_iso_time(get_field(task, "completed_at", "")))
    category = response.get("category")
    answers.regions = [one for one in (category if isinstance(category, list) else [category]) if isinstance(one, str)]
    for one in list_objects(response, "annotations"):
        answers.regions.append(require_text(one, "label"))
        if one.get("attributes"):
            left_out.add("annotation has attributes", "annotations have attributes", image)
    for name, value in get_field(response, "global_attributes", {}).items():
        words = [
            str(one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str | int | float)
        ]
        if name in chosen:
            answers.choices[name] = words
            answers.certain.add(name)
        elif words:
            answers.attributes[name] = ", ".join(words)
    if response.get("taxonomies"):
        left_out.add("task has answers in taxonomies", "tasks have answers in taxonomies", image)
    answers.answered = bool(answers.regions or answers.choices)
    yield answers


SCALE_AI = Format(
    name="scale-ai",
    about="Scale AI's tasks: categories, and labels of boxes and shapes of completed ones",
    ending=".json",
    recognize=recognize,
    read=read,
)
