"""Amazon SageMaker Ground Truth's output.manifest: JSON lines with source-ref and one label per labeling job.

Format: https://docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html. Labels with `human-annotated: no` come
from the service's model and are not answers.
"""

from collections.abc import Iterator
from pathlib import Path

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
from annotator.exchange.reading.reading_options import ReadingOptions

IMAGE_KEY = "source-ref"
METADATA_SUFFIX = "-metadata"
JOB_TYPE_PREFIX = "groundtruth/"


def recognize(path: Path) -> str | None:
    record = read_first_record(path, IMAGE_KEY, "human-annotated")
    if get_field(record, IMAGE_KEY, "") and _list_jobs(record):
        return "a manifest of SageMaker Ground Truth: it has source-ref and labels with their metadata"
    return None


def _list_jobs(record: Record) -> list[str]:
    """Return the names of label attributes that have metadata of Ground Truth."""
    jobs = (name.removesuffix(METADATA_SUFFIX) for name in record if name.endswith(METADATA_SUFFIX))
    return [
        name
        for name in jobs
        if name in record
        and get_field(record[name + METADATA_SUFFIX], "type", "").startswith(JOB_TYPE_PREFIX)
        and "human-annotated" in record[name + METADATA_SUFFIX]
    ]


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images, whose label attributes are the questions."""
    said = ["A class that a person chose or drew is present; boxes and confidences are not kept."]
    return read_tool_records(path, problems, options, _parse_record, said, "label attribute")


def _parse_record(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
    answers = ToolAnswers(require_text(record, IMAGE_KEY))
    jobs = _list_jobs(record)
    if not jobs:
        left_out.add("image has no label", "images have no label", answers.image)
    for job in jobs:
        metadata = record[job + METADATA_SUFFIX]
        if metadata["human-annotated"] != "yes":
            left_out.add("label is a model's (human-annotated: no)", "labels are a model's", answers.image)
        elif "failure-reason" in metadata:
            left_out.add("label failed", "labels failed", answers.image)
        else:
            names = _list_classes(record[job], metadata)
            if names is None:
                left_out.add("label is of another kind of job", "labels are of another kind of job", answers.image)
                continue
            answers.choices[job] = names
            answers.certain.add(job)
            answers.decided_at = parse_iso_time(get_field(metadata, "creation-date", ""))
    answers.answered = bool(answers.choices)
    yield answers


def _list_classes(value: object, metadata: Record) -> list[str] | None:
    """Return the classes of one label, or None for jobs that give none, such as verification."""
    kind, names = metadata["type"], get_field(metadata, "class-map", {})
    if kind.endswith("-classification") and "class-name" in metadata:
        return [require_text(metadata, "class-name")]
    if kind.endswith("-classification-multilabel") and isinstance(value, list):
        ids = value
    elif kind.endswith("object-detection") and isinstance(value, dict):
        ids = [one.get("class_id") for one in list_objects(value, "annotations")]
    else:
        return None
    return list(dict.fromkeys(require_text(names, str(one)) for one in ids))


SAGEMAKER = Format(
    name="sagemaker",
    about="SageMaker Ground Truth's output.manifest: labels that people gave",
    ending=".manifest",
    recognize=recognize,
    read=read,
)
