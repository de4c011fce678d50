"""Tagged exports: database rows plus safetensors files of exported cells.

Files have `image_ids` (N,) int64, `values` and `states` (N, C) int8, and the classes in the header.
"""

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.records import Class
from annotator.roles import Right
from annotator.store.database.arrays import remove_unfinished_files, replace_file_atomically
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import sync_folder
from annotator.store.disk.processes import build_temporary_path

MAX_NAME_CHARACTERS = 100
_HEADER_LENGTH_BYTES = 8  # bytes at the start of a safetensors file with the length of its header


@dataclass(frozen=True)
class Tag:
    """A tagged export (`tagged_at` in Unix seconds)."""

    id: int
    name: str
    annotator: str
    tagged_at: float
    last_decision: int
    format: str
    target: str
    choices: dict[str, Any]
    card: dict[str, Any]


@dataclass(frozen=True, eq=False)
class TaggedCells:
    """Memory-mapped cells of a tagged export."""

    # (id, name) per column
    classes: list[tuple[int, str]]
    # (N,) int64
    image_ids: np.ndarray
    # values, states: (N, C) int8
    values: np.ndarray
    states: np.ndarray


class TagWriter:
    """A writer of one export's cells file in blocks."""

    def __init__(self, file: BinaryIO, image_ids: np.ndarray, classes: Sequence[Class]):
        count, columns = len(image_ids), len(classes)
        begin = 8 * count
        cells = count * columns
        tensors = {
            "__metadata__": {"classes": json.dumps([[class_.id, class_.name] for class_ in classes])},
            "image_ids": {"dtype": "I64", "shape": [count], "data_offsets": [0, begin]},
            "values": {"dtype": "I8", "shape": [count, columns], "data_offsets": [begin, begin + cells]},
            "states": {"dtype": "I8", "shape": [count, columns], "data_offsets": [begin + cells, begin + 2 * cells]},
        }
        header = json.dumps(tensors).encode()
        header += b" " * (-len(header) % 8)
        self._file, self._columns, self._row = file, columns, 0
        file.write(len(header).to_bytes(_HEADER_LENGTH_BYTES, "little") + header + image_ids.astype("<i8").tobytes())
        self._values = _HEADER_LENGTH_BYTES + len(header) + begin
        self._states = self._values + cells

    def add(self, values: np.ndarray, states: np.ndarray) -> None:
        """Write the next rows, (n, C) int8 each."""
        for place, cells in ((self._values, values), (self._states, states)):
            self._file.seek(place + self._row * self._columns)
            self._file.write(np.ascontiguousarray(cells, np.int8).tobytes())
        self._row += len(values)


def load_tags(db: Database) -> list[Tag]:
    """Return all tags, oldest first."""
    rows = db.rows(
        """SELECT id, name, annotator, tagged_at, last_decision, format, target, choices, card FROM export_tag
        ORDER BY id"""
    )
    return [Tag(**row | {"choices": json.loads(row["choices"]), "card": json.loads(row["card"])}) for row in rows]


def get_newest_tag_id(db: Database) -> int:
    return db.value("SELECT coalesce(max(id), 0) FROM export_tag")


def find_tag(db: Database, name: str) -> Tag:
    """Return the tag with this name. Raises AnnotatorError if missing."""
    tags = {tag.name: tag for tag in load_tags(db)}
    if name not in tags:
        raise AnnotatorError(f"No export is tagged {name!r}. {did_you_mean(name, tags)}")
    return tags[name]


def find_name_problem(db: Database, name: str) -> str:
    """Return why an export cannot get this name, or ""."""
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        return (
            f"A tag has 1 to {MAX_NAME_CHARACTERS} letters, digits and marks, without blanks around: {name!r} has not."
        )
    if db.value("SELECT 1 FROM export_tag WHERE name = ?", [name]):
        return f"An export is tagged {name!r} already. A tag never changes: give another name."
    return ""


@contextmanager
def open_cell_writer(
    db: Database, image_ids: np.ndarray, classes: Sequence[Class]
) -> Generator[tuple[TagWriter, Path]]:
    """Open a writer of exported cells and yield it with its file, for `save_tag`. Raises DiskFull."""
    path = build_temporary_path(db.paths.tags / "cells", "new")
    make_folder_in_project(path.parent)
    remove_unfinished_files(path.parent, ".*")
    with replace_file_atomically(path, sync=False) as temporary, temporary.open("wb") as file:
        yield TagWriter(file, image_ids, classes), path


def save_tag(db: Database, new: Tag, cells: Path) -> Tag:
    """Store a tag with its cells file and return it with its id. Raises AnnotatorError for an invalid or used name."""
    try:
        with db.writing(right=Right.REVIEW) as sql:
            if problem := find_name_problem(db, new.name):
                raise AnnotatorError(problem)
            tag_id = get_inserted_id(
                sql.execute(
                    """INSERT INTO export_tag (name, annotator, tagged_at, last_decision, format, target, choices, card)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                    [
                        *(new.name, new.annotator, time.time(), new.last_decision, new.format, new.target),
                        *(json.dumps(new.choices), json.dumps(new.card)),
                    ],
                )
            )
            cells.replace(get_cells_path(db, tag_id))  # before the row is committed: a row always has its file
            sync_folder(db.paths.tags)
    finally:
        with suppress(OSError):
            cells.unlink()
    return find_tag(db, new.name)


def get_cells_path(db: Database, tag_id: int) -> Path:
    return db.paths.tags / f"{tag_id}.safetensors"


def read_cells(path: Path) -> TaggedCells:
    """Return a tag's cells. Raises AnnotatorError if unreadable."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_HEADER_LENGTH_BYTES), "little")
            header: dict[str, Any] = json.loads(file.read(length))
        arrays: dict[str, np.ndarray] = {}
        for name, dtype in (("image_ids", "<i8"), ("values", "i1"), ("states", "i1")):
            shape, begin = tuple(header[name]["shape"]), header[name]["data_offsets"][0]
            arrays[name] = (
                np.memmap(path, dtype, "r", _HEADER_LENGTH_BYTES + length + begin, shape)
                if all(shape)
                else np.zeros(shape, np.dtype(dtype))
            )
        classes = [(int(class_id), str(name)) for class_id, name in json.loads(header["__metadata__"]["classes"])]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AnnotatorError(
            f"The cells of this tag cannot be read ({path}: {error}). Was the file moved or changed? The export itself "
            "is where it was written."
        ) from error
    return TaggedCells(classes, **arrays)
