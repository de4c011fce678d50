"""Argilla 2 records as JSON: fields, responses of people and suggestions of models.

Format: https://docs.argilla.io/latest/how_to_guides/import_export. Only submitted responses are answers.
"""

from collections.abc import Iterator
from pathlib import Path

from annotator.errors import did_you_mean
from annotator.exchange.files.image_addresses import is_image_address
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
)
from annotator.exchange.reading.reading_options import ReadingOptions

SUBMITTED_STATUS, COMPLETED_STATUS = "submitted", "completed"


def recognize(path: Path) -> str | None:
    record = read_first_record(path, "fields", "responses", "suggestions")
    has_objects = all(isinstance(record.get(key), dict) for key in ("fields", "responses", "suggestions"))
    if has_objects and "id" in record and any(map(_is_image, record["fields"].values())):
        return "records of Argilla: each has fields, suggestions and responses"
    return None


def _is_image(value: object) -> bool:
    return isinstance(value, str) and is_image_address(value)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the records. `options.image_column` names the field with the image, if several have one."""

    def parse(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
        return _parse_record(record, left_out, options.image_column)

    said = ["What a submitted response chooses is present."]
    return read_tool_records(path, problems, options, parse, said, "question")


def _parse_record(record: Record, left_out: LeftOut, image_field: str | None) -> Iterator[ToolAnswers]:
    image = _find_image(get_field(record, "fields", {}), image_field)
    facts = {
        name: str(value)
        for name, value in get_field(record, "metadata", {}).items()
        if isinstance(value, str | int | float)
    }
    if suggested := len(get_field(record, "suggestions", {})):
        left_out.add("suggestion is a model's", "suggestions are a model's", image, suggested)
    by_person: dict[str, ToolAnswers] = {}
    for question in get_field(record, "responses", {}):
        for response in list_objects(record["responses"], question):
            person = str(response.get("user_id") or "")
            status = response.get("status", SUBMITTED_STATUS if record.get("status") == COMPLETED_STATUS else "")
            if status != SUBMITTED_STATUS:
                left_out.add("response was not submitted", "responses were not submitted", image)
                continue
            answers = by_person.setdefault(person, ToolAnswers(image, attributes=facts, annotator=person))
            value = response.get("value")
            words = [value] if isinstance(value, str) else value
            if isinstance(words, list) and all(isinstance(word, str) and word for word in words):
                answers.choices[question] = words
                answers.certain |= {question} if isinstance(value, list) else set()
            elif isinstance(value, int | float):
                answers.attributes = answers.attributes | {question: str(value)}
            else:
                left_out.add("response is neither a label nor a list", "responses are neither labels nor lists", image)
    yield from by_person.values() or [ToolAnswers(image, attributes=facts, answered=False)]


def _find_image(fields: Record, image_field: str | None) -> str:
    if image_field is not None and image_field not in fields:
        raise ValueError(f"--image-column {image_field}: there is no such field. {did_you_mean(image_field, fields)}")
    names = [image_field] if image_field else [name for name, value in fields.items() if _is_image(value)]
    if len(names) != 1:
        listed = ", ".join(names or map(str, fields))
        raise ValueError(f"{len(names)} of its fields name an image ({listed:.200}); choose one with --image-column")
    return get_field(fields, names[0], "")


ARGILLA = Format(
    name="argilla",
    about="Argilla 2 records: submitted responses, and metadata as fields",
    ending=".json",
    recognize=recognize,
    read=read,
)
