"""Errors for sources of no known format: what the file looks like, and commands that may read it."""

import json
import re
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.text_lines import read_header_line, split_header

ARCHIVE_KINDS = {
    b"7z\xbc\xaf\x27\x1c": "7z archive",
    b"Rar!\x1a\x07": "RAR archive",
    b"\xfd7zXZ\x00": "file compressed with xz",
    b"\x28\xb5\x2f\xfd": "file compressed with zstd",
}
"""Kinds of archives that are not unpacked here, by first bytes."""
BINARY_KINDS = {
    b"\x89HDF": "HDF5 file",
    b"MATLAB 5.0": "MATLAB file",
    b"\x93NUMPY": "NumPy array",
    b"\x80": "Python pickle, which could run any program",
    b"PK\x03\x04": "zip file or a document stored as one",
    b"%PDF": "PDF document",
    b"SQLite format 3\x00": "SQLite database",
}
"""Kinds of other files by first bytes."""
_ARCHIVE_PART = re.compile(r"\.(z\d\d|r\d\d|7z\.\d{3}|zip\.\d{3}|part\d+\.rar)$", re.IGNORECASE)
_JSON_KEY = re.compile(r'"((?:[^"\\]|\\.){1,60})"\s*:')
_MAX_KEYS_SHOWN = 8
_MAX_TEXT_SHOWN = 100  # characters


def describe_unknown_source(path: Path) -> AnnotatorError:
    """Return the error for a file or folder that no format recognizes."""
    if not path.is_file():
        return AnnotatorError(
            f"{path} has no images and no label files of a known format. Check the path. The command `annotator "
            "formats` lists the supported formats; --format NAME chooses one."
        )
    start = read_start(path)
    archive = next((kind for magic, kind in ARCHIVE_KINDS.items() if start.startswith(magic)), "")
    if not archive and _ARCHIVE_PART.search(path.name):
        archive = "part of a divided archive"
    if archive:
        return AnnotatorError(
            f"{path} is a {archive}, which is not supported. Unpack it first and import the folder, or make a "
            ".zip of it."
        )
    look, formats = _describe_start(path, start)
    tries = [f"annotator import PROJECT {path.name} --format {name}" for name in formats]
    commands = f" If you know its layout, try: {' ; '.join(tries)}." if tries else ""
    return AnnotatorError(
        f"{path} is not in a known format. It {look}.{commands} The command `annotator formats` lists the supported "
        "formats. A CSV with the columns image and labels is always supported."
    )


def _describe_start(path: Path, start: bytes) -> tuple[str, tuple[str, ...]]:
    """Return what a file looks like, and the names of at most three formats that may read it."""
    if not start:
        return "is empty or cannot be read", ()
    binary = next((kind for magic, kind in BINARY_KINDS.items() if start.startswith(magic)), "")
    if binary:
        return f"looks like a {binary}", ()
    if b"\0" in start:
        return f"is a binary file that begins with the bytes {start[:8].hex(' ')}", ()
    text = start.decode("utf-8", "replace")
    if text[0] in "{[":
        keys = list(dict.fromkeys(_JSON_KEY.findall(text)))[:_MAX_KEYS_SHOWN]
        kind = "a JSON list" if text[0] == "[" else "a JSON object or JSON lines"
        shown = f" with the first keys {', '.join(keys)}" if keys else " without keys"
        return f"looks like {kind}{shown}", ("records", "jsonl") if keys else ()
    if text[0] == "<":
        return f"looks like XML that begins with {json.dumps(text[:_MAX_TEXT_SHOWN], ensure_ascii=False)}", (
            "voc",
            "cvat",
        )
    columns, delimiter = split_header(read_header_line(path))
    if len(columns) > 1:
        return (
            f"looks like a table with the columns {', '.join(columns[:_MAX_KEYS_SHOWN]):.300}",
            ("tsv",) if delimiter == "\t" else ("csv",),
        )
    line = text.splitlines()[0][:_MAX_TEXT_SHOWN]
    return f"looks like a text file whose first line is {json.dumps(line, ensure_ascii=False)}", ()
