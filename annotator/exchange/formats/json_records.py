"""JSON records with image names and labels, as a list or one per line.

As from pandas' to_json(orient="records"). Fields are read as table columns, nested ones as "meta.site".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_first_line, read_lines
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.formats.shared.table_items import SAMPLE_ROWS, RawTable, interpret_table
from annotator.exchange.reading.cell_words import Cell, normalize_word, to_cell
from annotator.exchange.reading.column_names import IMAGE_COLUMN_NAMES, parse_label_column
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.picture_kinds import looks_like_image

MAX_FIELDS = 10_000
_RECORD_DECODER = msgspec.json.Decoder(dict[str, Any])
_RECORD_LIST_DECODER = msgspec.json.Decoder(list[dict[str, Any]])
_FIRST_KEY = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:')
_MAX_MAPPING_BYTES = 256 << 20
_FIRST_RECORD_BYTES = 1 << 16  # bytes of a first record


def recognize(path: Path) -> str | None:
    if not path.is_file():
        return None
    if _is_mapping(path):
        return "JSON with the names of images and their labels"
    first = _read_first_record(path)
    if first is None or len(first) < 2 or {normalize_word(name) for name in first}.isdisjoint(IMAGE_COLUMN_NAMES):
        return None
    shown = ", ".join(list(first)[:4]) + (", ..." if len(first) > 4 else "")
    return f"JSON with one record an image: {shown}"


def _is_mapping(path: Path) -> bool:
    """Return whether a file is an object with image names as keys: {"a.jpg": ["fox"], ...}."""
    match = _FIRST_KEY.match(read_start(path, _FIRST_RECORD_BYTES).removeprefix(b"\xef\xbb\xbf"))
    return match is not None and looks_like_image(match[1].decode("utf-8", "replace").replace("\\\\", "/"))


def _read_first_record(path: Path) -> dict[str, Any] | None:
    start = read_start(path, 8).lstrip(b"\xef\xbb\xbf \t\r\n")
    try:
        if start.startswith(b"{"):
            return _flatten_record(_RECORD_DECODER.decode(read_first_line(path, _FIRST_RECORD_BYTES)))
        if start.startswith(b"["):
            for piece in read_pieces(path, lambda key: not key, _FIRST_RECORD_BYTES):
                for _, record in piece.decode(_RECORD_LIST_DECODER, Problems()):
                    return _flatten_record(record)
    except (msgspec.MsgspecError, ValueError, RecursionError, AnnotatorError):
        return None
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of the records, or raise AnnotatorError."""
    names: dict[str, None] = {}
    for _, record in islice(_read_records(path, Problems()), SAMPLE_ROWS):
        names |= dict.fromkeys(record)
    if not names:
        raise AnnotatorError(f"{path} holds no records: it is empty, or a list of other things than objects.")
    columns = list(names)[:MAX_FIELDS]

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        for number, record in _read_records(path, problems):
            yield number, [to_cell(record.get(name)) for name in columns]

    return interpret_table(
        RawTable(path, columns, rows(), None, find_class_names(path), place="record"), problems, options
    )


def _read_records(path: Path, problems: Problems) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if _is_mapping(path):
        yield from enumerate(_read_mapping(path), start=1)
        return
    if read_start(path, 8).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        for piece in read_pieces(path, lambda key: not key):
            for index, record in piece.decode(_RECORD_LIST_DECODER, problems):
                yield index + 1, _flatten_record(record)
        return
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield number, _flatten_record(_RECORD_DECODER.decode(line))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                problems.add(f"line {number}: {error}")


def _read_mapping(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if path.stat().st_size > _MAX_MAPPING_BYTES:
            raise AnnotatorError(
                f"{path} is one object of {path.stat().st_size:,} bytes; {_MAX_MAPPING_BYTES:,} are read at most. "
                "Write one "
                'record a line instead: {"image": ..., "labels": [...]}.'
            )
        with open_file(path) as file:
            images = _RECORD_DECODER.decode(file.read())
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error
    for name, value in images.items():
        yield {"image": name, **(_flatten_record(value) if isinstance(value, dict) else {"labels": value})}


def _flatten_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record in which nested fields are lifted by one level."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            prefix = "" if parse_label_column(name) else f"{name}."  # {"labels": {"fox": 1}} has a column fox
            flat |= {f"{prefix}{inner}": one for inner, one in value.items() if not isinstance(one, dict)}
        else:
            flat[name] = value
    return flat


RECORDS = Format(
    name="records",
    about="JSON with one record an image, as a list or one a line; read as tables are",
    ending=".json",
    recognize=recognize,
    read=read,
    is_general=True,
)
