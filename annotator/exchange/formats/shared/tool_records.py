"""Records of labeling tools: JSON arrays, JSON lines, or one JSON file per image, as items.

A tool's reader parses one record into ToolAnswers. The questions of all records become classes by controls.py.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.image_addresses import extract_image_name
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_first_line, read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.shared.controls import Controls
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT

MAX_FIRST_LINE_BYTES = 4 << 20
_RECORD_DECODER = msgspec.json.Decoder(dict[str, Any])
_RECORD_LIST_DECODER = msgspec.json.Decoder(list[dict[str, Any]])

Record = Mapping[str, Any]
T = TypeVar("T")


@dataclass
class ToolAnswers:
    """The answers of one annotator about one image."""

    # name, path or URL in the source
    image: str
    # classes of the image, or of its boxes and regions
    regions: list[str] = field(default_factory=list)
    # choices by question
    choices: dict[str, list[str]] = field(default_factory=dict)
    # questions whose choices cannot be free text
    certain: set[str] = field(default_factory=set)
    # fields by name
    attributes: dict[str, str] = field(default_factory=dict)
    # annotator, or ""
    annotator: str = ""
    # Unix seconds, or None
    decided_at: float | None = None
    # false if nobody answered
    answered: bool = True


class LeftOut:
    """A counter of the parts of a source that are not read, with the first image of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, one: str, many: str, image: str, count: int = 1) -> None:
        """Count a part. `one` and `many` are sentences without their end, such as "record was rejected"."""
        self._counts[one, many] += count
        self._first.setdefault((one, many), image)

    def format_sentences(self) -> list[str]:
        """Return one sentence per kind."""
        return [
            f"Not read: {format_count(count, *kind)} (first: {self._first[kind]})."
            for kind, count in self._counts.items()
        ]


Parse = Callable[[Record, LeftOut], Iterator[ToolAnswers]]


def get_field(value: Any, key: str, otherwise: T) -> T:
    """Return a field of a JSON object if it has the type of `otherwise`, else `otherwise`."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, type(otherwise)) else otherwise


def list_objects(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in a list field. Other entries raise ValueError."""
    found = get_field(value, key, [])
    if wrong := [one for one in found if not isinstance(one, dict)]:
        raise ValueError(f"`{key}` has {wrong[0]!r:.100}, not an object")
    return found


def require_text(value: Any, key: str) -> str:
    """Return a text field that is not empty, or raise ValueError."""
    if text := get_field(value, key, "").strip():
        return text
    raise ValueError(f"`{key}` is {value.get(key) if isinstance(value, dict) else value!r:.100}, not a name")


def read_first_record(path: Path, *keys: str) -> Record:
    """Return the first record of a JSON array or JSON lines, or {} unless the file's start has all `keys`."""
    start = read_start(path) if path.is_file() else b""
    if start[:1] not in (b"[", b"{") or not all(f'"{key}"'.encode() in start for key in keys):
        return {}
    try:
        if start[:1] == b"{":
            return _RECORD_DECODER.decode(read_first_line(path, MAX_FIRST_LINE_BYTES).removeprefix("\ufeff"))
        for piece in read_pieces(path, lambda key: not key, 1 << 16):
            for _, record in piece.decode(_RECORD_LIST_DECODER, Problems()):
                return record
    except (msgspec.MsgspecError, ValueError, RecursionError, AnnotatorError):
        pass
    return {}


def read_records(path: Path, problems: Problems) -> Iterator[tuple[str, Record]]:
    """Yield (place, record) of a JSON array or JSON lines. Raises AnnotatorError for an invalid array."""
    if read_start(path, 1) == b"[":
        for piece in read_pieces(path, lambda key: not key):
            yield from ((piece.place(index), one) for index, one in piece.decode(_RECORD_LIST_DECODER, problems))
        return
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield f"line {number}", _RECORD_DECODER.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                problems.add(f"line {number}: {error}")


def read_tool_records(
    path: Path, problems: Problems, options: ReadingOptions, parse: Parse, sentences: Sequence[str], noun: str
) -> Contents:
    """Return the items of a file with one record per image or task.

    The first of two passes determines what questions mean, and counts what is not read.

    Args:
        parse: Yields a record's answers. Raises ValueError.
        sentences: Remarks on the meaning of the file.
        noun: The tool's word for a question, in messages.
    """

    controls, left_out = Controls(options), LeftOut()
    for _, answers in _parse_rows(read_records(path, Problems()), parse, left_out, Problems()):
        controls.count_regions(answers.regions)
        for name, words in answers.choices.items():
            controls.count_choices(name, words, name in answers.certain)
    controls.interpret_controls(noun)
    said = [
        *sentences,
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
        *controls.sentences,
        *left_out.format_sentences(),
    ]
    items = _read_items(_parse_rows(read_records(path, problems), parse, LeftOut(), problems), controls, problems)
    return Contents((), items, place="record", sentences=said, interpretations=controls.interpretations)


def _parse_rows(
    rows: Iterator[tuple[str, Record]], parse: Parse, left_out: LeftOut, problems: Problems
) -> Iterator[tuple[str, ToolAnswers]]:
    for place, record in rows:
        try:
            for answers in parse(record, left_out):
                if not extract_image_name(answers.image):
                    raise ValueError("it names no image")
                yield place, answers
        except ValueError as error:
            problems.add(f"{place}: {error}")


def _read_items(rows: Iterator[tuple[str, ToolAnswers]], controls: Controls, problems: Problems) -> Iterator[Item]:
    for place, answers in rows:
        try:
            found = controls.interpret_choices(answers.choices.items())
        except ValueError as error:
            problems.add(f"{place}: {error}")
            continue
        states = dict.fromkeys([*((name, PRESENT) for name in answers.regions), *found.labels])
        labels = [ImportedLabel(name, state, answers.annotator, answers.decided_at) for name, state in states]
        yield Item(
            extract_image_name(answers.image),
            place,
            labels,
            exhaustive=found.is_nothing and not any(given.state == PRESENT for given in labels),
            attributes=found.facts | answers.attributes,
            answered=answers.answered,
        )
