"""Labels in JSON lines (https://jsonlines.org), read line by line.

"labels" of an "image" is {class: 1 | 0 | null} or a list of present classes. Own exports add provenance and
other fields.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_first_line, read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item, Remark
from annotator.exchange.formats.shared.times import parse_seconds
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, STATES


class OriginRecord(msgspec.Struct, gc=False):
    """JSON record: the provenance that a label had in the file it was imported from."""

    source: str | None = None
    annotator: str | None = None
    decided_at: str | float | None = None


class ProvenanceRecord(msgspec.Struct, gc=False):
    """JSON record: state and provenance of the label for one class."""

    state: str = ""
    source: str | None = None
    annotator: str | None = None
    decided_at: str | float | None = None
    origin: OriginRecord | None = None


class Comment(msgspec.Struct, gc=False):
    """A comment on an image."""

    text: str
    annotator: str | None = None
    written_at: str | float | None = None


class LabelRecord(msgspec.Struct, gc=False):
    """One line: an image with its labels."""

    image: str
    labels: dict[str, int | float | None] | list[str]
    sha256: str | None = None
    provenance: dict[str, ProvenanceRecord] = {}
    split: str | None = None
    attributes: dict[str, Any] = {}
    flag: str | None = None
    flagged_by: str | None = None
    flagged_at: str | float | None = None
    comments: list[Comment] = []


_DECODER = msgspec.json.Decoder(LabelRecord)


def recognize(path: Path) -> str | None:
    if not path.is_file() or path.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        return None
    text = read_first_line(path, 1 << 20)
    if not (text.startswith("{") and '"image"' in text and '"labels"' in text):
        return None
    try:
        _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return "JSON lines with an image and its labels in each"


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    items = _read_items(path, problems)
    first = next(items, None)
    if first is None:
        return Contents([], iter(()))
    classes, item = first
    return Contents([(name, "") for name in classes], (item for _, item in chain([(classes, item)], items)))


def _read_items(path: Path, problems: Problems) -> Iterator[tuple[list[str], Item]]:
    for number, text in enumerate(read_lines(path), start=1):
        if not text.strip():
            continue
        try:
            line = _DECODER.decode(text)
            yield list(line.labels) if isinstance(line.labels, dict) else [], _build_item(line, number)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            problems.add(f"line {number}: {error}")


def _build_item(line: LabelRecord, number: int) -> Item:
    attributes = {name: str(value) for name, value in line.attributes.items() if value is not None}
    if line.split:
        attributes["split"] = line.split
    remarks = [Remark("flag", line.flag, line.flagged_by or "", _to_seconds(line.flagged_at))] if line.flag else []
    remarks += [Remark("comment", one.text, one.annotator or "", _to_seconds(one.written_at)) for one in line.comments]
    if isinstance(line.labels, list):
        labels = [ImportedLabel(name, PRESENT) for name in dict.fromkeys(line.labels)]
    else:
        labels = [given for name, value in line.labels.items() if (given := _parse_label(name, value, line))]
        labels += [_build_stated_label(name, said) for name, said in line.provenance.items() if name not in line.labels]
    return Item(line.image, number, labels, sha256=line.sha256 or "", attributes=attributes, remarks=remarks)


def _parse_label(name: str, value: float | None, line: LabelRecord) -> ImportedLabel | None:
    said = line.provenance.get(name)
    if value not in (0, 1, None):
        raise ValueError(f"the label {name!r} is {value!r}; it must be 1, 0 or null")
    if said is None or not said.state:
        return None if value is None else ImportedLabel(name, PRESENT if value else ABSENT)
    given = _build_stated_label(name, said)
    if value != {PRESENT: 1, ABSENT: 0}.get(given.state):
        raise ValueError(f"the label {name!r} is {value!r}, but its provenance says {said.state!r}")
    return given


def _build_stated_label(name: str, said: ProvenanceRecord) -> ImportedLabel:
    if said.state not in STATES:
        raise ValueError(f"the state of {name!r} is {said.state!r}; it must be present, absent or unsure")
    by = said.origin or said
    return ImportedLabel(name, STATES[said.state], by.annotator or "", _to_seconds(by.decided_at), by.source or "")


def _to_seconds(at: str | float | None) -> float | None:
    return parse_seconds(at) if isinstance(at, str) else at
