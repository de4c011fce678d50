"""Google's Vertex AI and AutoML: import and export files about images, as JSON lines or CSV without a header.

Format: https://cloud.google.com/vertex-ai/docs/image-data/classification/prepare-data.

    {"imageGcsUri": "gs://..", "classificationAnnotations": [{"displayName": ".."}]}
    TRAIN,gs://bucket/a.jpg,label,label          the split may be missing
    TRAIN,gs://bucket/a.jpg,label,0.1,0.2,,,0.5,0.6,,          one box per line
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from annotator.exchange.files.image_addresses import extract_image_name, is_image_address
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_first_line, read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
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
from annotator.exchange.reading.class_name_checks import OddNameCollector
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

IMAGE_KEY = "imageGcsUri"
LIST_KEYS = ("classificationAnnotations", "boundingBoxAnnotations")
SINGLE_KEY = "classificationAnnotation"
SPLIT_KEY = "aiplatform.googleapis.com/ml_use"
BUCKET_PREFIX = "gs://"
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "validate": "validation",
    "validation": "validation",
    "test": "test",
    "unassigned": "",
    "": "",
}
"""Words of Google for a split, in lower case -> name of the split."""
_BOX_CELLS = 8  # coordinates after a label


def recognize(path: Path) -> str | None:
    if not path.is_file():
        return None
    record = read_first_record(path, IMAGE_KEY)
    if get_field(record, IMAGE_KEY, "").startswith(BUCKET_PREFIX) and not {*LIST_KEYS, SINGLE_KEY}.isdisjoint(record):
        return "JSON lines of Vertex AI: imageGcsUri and annotations"
    is_row = bool(_split_row(_parse_line(read_first_line(path)))[1])
    return "a CSV of Vertex AI or AutoML: split, gs:// address and labels, without a header" if is_row else None


def _parse_line(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error:
        return []


def _split_row(cells: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """Return (split, image, labels) of a row, or an image of "" for a row of another form."""
    if cells and cells[0].startswith(BUCKET_PREFIX) and is_image_address(cells[0]):
        return "", cells[0], cells[1:]
    if len(cells) > 1 and cells[0].lower() in SPLIT_NAMES and cells[1].startswith(BUCKET_PREFIX):
        return SPLIT_NAMES[cells[0].lower()], cells[1], cells[2:]
    return "", "", ()


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images with their labels and splits."""
    said = ["A label is present; boxes are not kept."]
    if read_first_record(path, IMAGE_KEY):
        return read_tool_records(path, problems, options, _parse_record, said, "annotation")
    odd_names, contents = OddNameCollector(options.accepted_names), Contents((), iter(()), sentences=said)
    for item in _read_rows(path, Problems()):
        for label in item.labels:
            odd_names.add(label.class_name)
    question = odd_names.make_question("the labels")
    contents.interpretations = [question] if question else []
    contents.items = _read_rows(path, problems)
    return contents


def _parse_record(record: Record, left_out: LeftOut) -> Iterator[ToolAnswers]:
    answers = ToolAnswers(require_text(record, IMAGE_KEY))
    found = [one for key in LIST_KEYS for one in list_objects(record, key)]
    if isinstance(record.get(SINGLE_KEY), dict):
        found.append(record[SINGLE_KEY])
    answers.regions = list(dict.fromkeys(require_text(one, "displayName") for one in found))
    word = get_field(get_field(record, "dataItemResourceLabels", {}), SPLIT_KEY, "")
    if split := SPLIT_NAMES.get(word.lower(), word):
        answers.attributes["split"] = split
    answers.answered = bool(found)
    yield answers


def _read_rows(path: Path, problems: Problems) -> Iterator[Item]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        split, image, labels = _split_row(_parse_line(line))
        if not image:
            problems.add(f"line {number}: {line.strip()[:80]!r} is not a split, a gs:// address and labels")
            continue
        names = labels[:1] if len(labels) == _BOX_CELLS + 1 and _are_coordinates(labels[1:]) else labels
        present = [ImportedLabel(name, PRESENT) for name in dict.fromkeys(names) if name]
        fields = {"split": split} if split else {}
        yield Item(extract_image_name(image), number, present, attributes=fields, answered=bool(present))


def _are_coordinates(cells: Sequence[str]) -> bool:
    try:
        return all(0 <= float(cell) <= 1 for cell in cells if cell)
    except ValueError:
        return False


VERTEX_AI = Format(
    name="vertex-ai",
    about="Google's Vertex AI and AutoML: JSON lines and CSV about images in gs://",
    ending=".jsonl",
    recognize=recognize,
    read=read,
)
