"""Records of JSON: a list of objects, or one object a line, each with the name of an image and its labels.

Formats: RFC 8259 and https://jsonlines.org; what pandas' to_json(orient="records") writes. The fields are columns, and
what they mean is decided as for all tables (reading/deciding.py). Objects inside objects are fields with a point:
"meta.site".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import pieces, starts_with
from annotator.exchange.files.lines import first_line, lines
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.class_list import names_beside
from annotator.exchange.formats.shared.table_items import SAMPLE, Table, contents
from annotator.exchange.reading.columns import IMAGE, label_number
from annotator.exchange.reading.reading import Reading
from annotator.exchange.reading.words import Cell, as_cell, plain
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.kinds import looks_like_image

MOST_FIELDS = 10_000
_ONE = msgspec.json.Decoder(dict[str, Any])
_LIST = msgspec.json.Decoder(list[dict[str, Any]])
_FIRST_KEY = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:')
_LARGEST_MAPPING = 256 << 20  # bytes
_GLANCED = 1 << 16  # bytes of a first record


def recognise(path: Path) -> str | None:
    """Return why a file holds such records, or None: its first record has a field that names images, and another."""
    if not path.is_file():
        return None
    if _is_mapping(path):
        return "JSON with the names of images and their labels"
    first = _first(path)
    if first is None or len(first) < 2 or {plain(name) for name in first}.isdisjoint(IMAGE):
        return None
    shown = ", ".join(list(first)[:4]) + (", ..." if len(first) > 4 else "")
    return f"JSON with one record an image: {shown}"


def _is_mapping(path: Path) -> bool:
    """Return whether a file is one object whose first key is the name of an image: {"a.jpg": ["fox"], ...}."""
    match = _FIRST_KEY.match(starts_with(path, _GLANCED).removeprefix(b"\xef\xbb\xbf"))
    return match is not None and looks_like_image(match[1].decode("utf-8", "replace").replace("\\\\", "/"))


def _first(path: Path) -> dict[str, Any] | None:
    """Return the first record, None where the file has none."""
    start = starts_with(path, 8).lstrip(b"\xef\xbb\xbf \t\r\n")
    try:
        if start.startswith(b"{"):
            return _flat(_ONE.decode(first_line(path, _GLANCED)))
        if start.startswith(b"["):
            for piece in pieces(path, lambda key: not key, _GLANCED):
                for _, record in piece.decode(_LIST, Problems()):
                    return _flat(record)
    except (msgspec.MsgspecError, ValueError, RecursionError, AnnotatorError):
        return None
    return None


def read(path: Path, problems: Problems) -> Contents:
    """Return the labels of the records, as `read_as` with the reader's own decisions."""
    return read_as(path, problems, Reading())


def read_as(path: Path, problems: Problems, reading: Reading) -> Contents:
    """Return the labels of the records. Raises AnnotatorError as the readers of JSON and of tables do."""
    names: dict[str, None] = {}
    for _, record in islice(_records(path, Problems()), SAMPLE):
        names |= dict.fromkeys(record)
    if not names:
        raise AnnotatorError(f"{path} holds no records: it is empty, or a list of other things than objects.")
    columns = list(names)[:MOST_FIELDS]

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        for number, record in _records(path, problems):
            yield number, [as_cell(record.get(name)) for name in columns]

    return contents(Table(path, columns, rows(), None, names_beside(path), place="record"), problems, reading)


def _records(path: Path, problems: Problems) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (number from 1, record)."""
    if _is_mapping(path):
        yield from enumerate(_of_mapping(path), start=1)
        return
    if starts_with(path, 8).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        for piece in pieces(path, lambda key: not key):
            for index, record in piece.decode(_LIST, problems):
                yield index + 1, _flat(record)
        return
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            try:
                yield number, _flat(_ONE.decode(line))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                problems.add(f"line {number}: {error}")


def _of_mapping(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield a record for each image of an object. Raises AnnotatorError for a file that is broken, or too large."""
    try:
        if path.stat().st_size > _LARGEST_MAPPING:
            raise AnnotatorError(
                f"{path} is one object of {path.stat().st_size:,} bytes; {_LARGEST_MAPPING:,} are read at most. "
                "Write one "
                'record a line instead: {"image": ..., "labels": [...]}.'
            )
        with open_file(path) as file:
            images = _ONE.decode(file.read())
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error
    for name, value in images.items():
        yield {"image": name, **(_flat(value) if isinstance(value, dict) else {"labels": value})}


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the fields of objects inside it as fields of its own, one level deep."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            prefix = "" if label_number(name) else f"{name}."  # {"labels": {"fox": 1}} has a column fox
            flat |= {f"{prefix}{inner}": one for inner, one in value.items() if not isinstance(one, dict)}
        else:
            flat[name] = value
    return flat


RECORDS = Format(
    name="records",
    about="JSON with one record an image, as a list or one a line; read as tables are",
    ending=".json",
    recognise=recognise,
    read=read,
    read_as=read_as,
    is_general=True,
)
