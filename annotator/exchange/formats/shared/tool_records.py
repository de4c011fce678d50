"""Records of labeling tools: JSON arrays, JSON lines, or one JSON file per image, as items.

A tool's reader parses one record into ToolAnswers. The questions of all records become classes by controls.py.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from annotator.exchange.formats.shared.label_file_pairs import find_first_files
from annotator.exchange.reading.class_name_checks import OddNameCollector
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files, unescape_path

MAX_FIRST_RECORD_BYTES = 4 << 20
MAX_RECORD_BYTES = 64 << 20  # bytes of a file with one record
MAX_FILES_TRIED = 50  # files of a folder
RECORD_SUFFIX = ".json"
"""Ending of the files of a folder with one file per image."""
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


class ForeignRecordError(ValueError):
    """A record is not one of the tool, and is counted."""


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
    """Return the first record of an array, lines or one object, or {} unless the file's start has all `keys`."""
    start = read_start(path) if path.is_file() else b""
    if start[:1] not in (b"[", b"{") or not all(f'"{key}"'.encode() in start for key in keys):
        return {}
    try:
        if start[:1] == b"{":
            if _is_single_object(path):
                return _read_single_record(path, MAX_FIRST_RECORD_BYTES)
            return _RECORD_DECODER.decode(read_first_line(path, MAX_FIRST_RECORD_BYTES).removeprefix("\ufeff"))
        for piece in read_pieces(path, lambda key: not key, 1 << 16):
            for _, record in piece.decode(_RECORD_LIST_DECODER, Problems()):
                return record
    except (msgspec.MsgspecError, OSError, ValueError, RecursionError, AnnotatorError):
        pass
    return {}


def find_first_record(path: Path, *keys: str) -> Record:
    """Return the first record of a file, or of the first JSON file below a folder that has all `keys`, or {}."""
    files = find_first_files(path, (RECORD_SUFFIX,), MAX_FILES_TRIED) if path.is_dir() else [path]
    return next(filter(None, (read_first_record(file, *keys) for file in files)), {})


def _is_single_object(path: Path) -> bool:
    """Return whether a file begins with an object of several lines."""
    line = read_first_line(path, MAX_FIRST_RECORD_BYTES).strip()
    return line.startswith("{") and (line == "{" or not line.endswith("}"))


def _read_single_record(path: Path, max_bytes: int = MAX_RECORD_BYTES) -> Record:
    """Return the object that is a whole file. Raises ValueError, OSError."""
    with open_file(path) as file:
        text = file.read(max_bytes + 1)
    if len(text) > max_bytes:
        raise ValueError(f"it has more than {max_bytes >> 20} MB")
    try:
        return _RECORD_DECODER.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read_record_files(path: Path, known_files: Collection[str], problems: Problems) -> Iterator[tuple[str, Record]]:
    """Yield (file, record) of a folder with one JSON file per image, and {} for a file that is not an object."""
    for name in list_files(path, leave_out=path).paths:
        file = path / unescape_path(name)
        if name.lower().endswith(RECORD_SUFFIX) and file.name not in known_files:
            try:
                yield name, _read_single_record(file) if read_start(file)[:1] == b"{" else {}
            except (OSError, ValueError) as error:
                problems.add(f"{name}: {error}")


def read_records(path: Path, problems: Problems, known_files: Collection[str] = ()) -> Iterator[tuple[str, Record]]:
    """Yield (place, record) of a JSON array, JSON lines, one object, or a folder with one file per image.

    `known_files` are names of files in the folder that are not records. Raises AnnotatorError for an invalid array.
    """
    if path.is_dir():
        yield from _read_record_files(path, known_files, problems)
    elif read_start(path)[:1] == b"[":
        for piece in read_pieces(path, lambda key: not key):
            yield from ((piece.place(index), one) for index, one in piece.decode(_RECORD_LIST_DECODER, problems))
    elif _is_single_object(path):
        try:
            yield path.name, _read_single_record(path)
        except (OSError, ValueError) as error:
            problems.add(f"{path.name}: {error}")
    else:
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                try:
                    yield f"line {number}", _RECORD_DECODER.decode(line)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    problems.add(f"line {number}: {error}")


def read_tool_records(
    path: Path,
    problems: Problems,
    options: ReadingOptions,
    parse: Parse,
    sentences: Sequence[str],
    noun: str,
    known_files: Collection[str] = (),
    are_all: bool = True,
) -> Contents:
    """Return the items of a file with one record per image or task, or of a folder with one file per image.

    The first of two passes determines what questions mean, and counts what is not read.

    Args:
        parse: Yields a record's answers. Raises ValueError, and ForeignRecordError for JSON of another kind.
        sentences: Remarks on the meaning of the file.
        noun: The tool's word for a question, in messages.
        known_files: Names of files in the folder that are not records.
        are_all: False if some questions may be fields.
    """
    controls, left_out = Controls(options), LeftOut()
    for _, answers in _parse_rows(read_records(path, Problems(), known_files), parse, left_out, Problems()):
        controls.count_regions(answers.regions)
        for name, words in answers.choices.items():
            controls.count_choices(name, words, name in answers.certain)
    controls.interpret_controls(noun, are_all)
    odd_names = OddNameCollector(options.accepted_names)
    for name in controls.list_class_names():
        odd_names.add(name)
    if question := odd_names.make_question("The labels"):
        controls.interpretations.append(question)
    said = [
        *sentences,
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
        *controls.sentences,
        *left_out.format_sentences(),
    ]
    rows = read_records(path, problems, known_files)
    items = _read_items(_parse_rows(rows, parse, LeftOut(), problems), controls, problems)
    has_images = path.is_dir() and bool(list_files(path, leave_out=path).list_images())
    folder = path if has_images else None
    return Contents((), items, folder, "record", said, controls.interpretations)


def _parse_rows(
    rows: Iterator[tuple[str, Record]], parse: Parse, left_out: LeftOut, problems: Problems
) -> Iterator[tuple[str, ToolAnswers]]:
    for place, record in rows:
        try:
            for answers in parse(record, left_out):
                if not extract_image_name(answers.image):
                    raise ValueError("it names no image")
                yield place, answers
        except ForeignRecordError:
            left_out.add("record is of another kind", "records are of another kind", place)
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
