"""Bulk reads of image data for exports, as arrays. One `Database.reading()` around them keeps all blocks consistent."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.records import SOURCES
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.database.invalid_rows import VALID_ACCEPTED_STATES_SQL, VALID_LABEL_STATES_SQL
from annotator.store.images.stages import COMPLETE
from annotator.store.pictures.files import FileState

_WANTED_IDS_SQL = "json_each(?) w"
# CROSS JOIN fixes the join order: wanted images first, then their rows by key.


@dataclass(frozen=True, eq=False)
class AnsweredCells:
    """Answered or implied cells with state and causing decision, (n,) int64 each, by requested image, then class."""

    image_ids: np.ndarray
    class_ids: np.ndarray
    states: np.ndarray
    decision_ids: np.ndarray


@dataclass(frozen=True, eq=False)
class AcceptedCells:
    """Auto-accepted cells, (n,) each: int64 arrays and float64 scores."""

    image_ids: np.ndarray
    class_ids: np.ndarray
    states: np.ndarray
    acceptance_ids: np.ndarray
    scores: np.ndarray


def load_image_ids(db: Database) -> np.ndarray:
    """Return all image ids: (N,) int64, ascending."""
    ids = db.value("SELECT group_concat(id) FROM image")
    return np.sort(_parse_ids(ids))


def load_image_rows(db: Database, ids: np.ndarray) -> list[tuple[int, str, str, int, int, str]]:
    """Return (id, name, sha256, width, height, problem) per image."""
    return db.tuples(
        f"""SELECT i.id, i.name, i.sha256, i.width, i.height, i.problem FROM {_WANTED_IDS_SQL}
        CROSS JOIN image i ON i.id = w.value""",
        [_to_json(ids)],
    )


def load_image_files(db: Database, ids: np.ndarray) -> list[tuple[int, str, str, FileState]]:
    """Return (image id, folder, escaped path, file state at registration) of each image's first file."""
    rows = db.tuples(
        f"""SELECT f.image_id, d.path, f.path, f.bytes, f.modified_ns, f.stamp, min(f.id) FROM {_WANTED_IDS_SQL}
        CROSS JOIN file f ON f.image_id = w.value JOIN folder d ON d.id = f.folder_id GROUP BY f.image_id""",
        [_to_json(ids)],
    )
    return [(row[0], row[1], row[2], FileState(*row[3:6])) for row in rows]


def load_complete_image_ids(db: Database) -> np.ndarray:
    """Return ids of completely answered images: (n,) int64, ascending."""
    return np.sort(_parse_ids(db.value("SELECT group_concat(id) FROM image WHERE stage = ?", [COMPLETE])))


def load_cells(db: Database, ids: np.ndarray) -> AnsweredCells:
    # Four texts: fetching 80,000 rows would take several times as long.
    row = db.tuples(
        f"""SELECT group_concat(l.image_id), group_concat(l.class_id), group_concat(l.state),
        group_concat(l.decision_id) FROM {_WANTED_IDS_SQL} CROSS JOIN label l ON l.image_id = w.value
        WHERE l.state {VALID_LABEL_STATES_SQL}""",
        [_to_json(ids)],
    )[0]
    return AnsweredCells(_parse_ids(row[0]), _parse_ids(row[1]), _parse_ids(row[2]), _parse_ids(row[3]))


def load_accepted_cells(db: Database, ids: np.ndarray) -> AcceptedCells:
    """Return auto-accepted cells without implied ones."""
    rows = db.tuples(
        f"""SELECT a.image_id, a.class_id, a.state, a.acceptance_id, a.score FROM {_WANTED_IDS_SQL}
        CROSS JOIN accepted a ON a.image_id = w.value WHERE a.state {VALID_ACCEPTED_STATES_SQL} AND a.decision_id IS
        NULL""",
        [_to_json(ids)],
    )
    whole = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4).T
    return AcceptedCells(whole[0], whole[1], whole[2], whole[3], np.array([row[4] for row in rows], np.float64))


def load_implied_cells(db: Database, ids: np.ndarray) -> AnsweredCells:
    found = db.integer_rows(
        f"""SELECT a.image_id, a.class_id, a.state, a.decision_id FROM {_WANTED_IDS_SQL}
        CROSS JOIN accepted a ON a.image_id = w.value WHERE a.state {VALID_ACCEPTED_STATES_SQL} AND a.decision_id NOT
        NULL""",
        [_to_json(ids)],
    )
    return AnsweredCells(*found.T)


def load_decisions(db: Database, ids: np.ndarray) -> list[tuple[int, str, str, float, int | None]]:
    """Return (id, source, annotator, decided_at, milliseconds) per decision."""
    return db.tuples(
        f"""SELECT d.id, d.source, d.annotator, d.decided_at, d.milliseconds FROM {_WANTED_IDS_SQL}
        CROSS JOIN decision d ON d.id = w.value""",
        [_to_json(ids)],
    )


def load_origins(db: Database, ids: np.ndarray) -> dict[int, tuple[str, str, float | None]]:
    """Return origins of imported answers: decision id -> (source, annotator, decided_at)."""
    rows = db.tuples(
        f"""SELECT o.decision_id, o.source, o.annotator, o.decided_at FROM {_WANTED_IDS_SQL}
        CROSS JOIN origin o ON o.decision_id = w.value""",
        [_to_json(ids)],
    )
    return {row[0]: row[1:] for row in rows}


def load_notes(db: Database, ids: np.ndarray) -> list[tuple[int, str, str, str, float]]:
    """Return (image id, "flag" or "comment", text, original annotator, Unix seconds), oldest first."""
    who = """coalesce(nullif(o.annotator, ''), d.annotator), coalesce(o.decided_at, d.decided_at)"""
    origin = "LEFT JOIN origin o ON o.decision_id = d.id"
    flags = db.tuples(
        f"""SELECT d.image_id, 'flag', d.note, {who}, d.id FROM {_WANTED_IDS_SQL}
        CROSS JOIN decision d INDEXED BY decision_flag ON d.image_id = w.value AND d.action = 'flag'
        {origin} WHERE {NOT_UNDONE_SQL} ORDER BY d.id""",
        [_to_json(ids)],
    )
    newest = {row[0]: row for row in flags}  # an empty note removes the flag
    comments = db.tuples(
        f"""SELECT d.image_id, 'comment', d.note, {who}, d.id FROM {_WANTED_IDS_SQL}
        CROSS JOIN decision d INDEXED BY decision_comment ON d.image_id = w.value AND d.action = 'comment'
        {origin} WHERE {NOT_UNDONE_SQL}""",
        [_to_json(ids)],
    )
    rows = [*(row for row in newest.values() if row[2]), *comments]
    return [row[:5] for row in sorted(rows, key=lambda row: (row[4], row[5]))]


def load_attributes(db: Database, ids: np.ndarray | Sequence[int]) -> list[tuple[int, str, str]]:
    """Return (image id, name, value) per metadata field of these images."""
    return db.tuples(
        f"""SELECT a.image_id, a.name, a.value FROM {_WANTED_IDS_SQL} CROSS JOIN attribute a ON a.image_id = w.value
        ORDER BY a.image_id, a.name""",
        [_to_json(ids)],
    )


def find_unknown_sources(db: Database) -> list[str]:
    """Return the decision sources in the project that `SOURCES` does not define."""
    known = {*SOURCES, "skip", "flag", "clear", "comment"}
    rows = db.tuples("SELECT one FROM tally WHERE kind = 'source' ORDER BY one")
    return [row[0] for row in rows if row[0] not in known]


def load_attribute_names(db: Database) -> list[str]:
    """Return the names of the metadata fields in use."""
    return [row[0] for row in db.tuples(_build_skip_scan("attribute", "name"))]


def load_annotators(db: Database) -> list[str]:
    """Return all annotators, even of undone decisions."""
    return [row[0] for row in db.tuples(_build_skip_scan("decision", "annotator"))]


def has_rows(db: Database, table: str) -> bool:
    """Return whether a table, or "note" (flags and comments), has rows."""
    if table == "note":
        counts = [
            db.value(f"SELECT 1 FROM decision INDEXED BY decision_{action} WHERE action = '{action}' LIMIT 1")
            for action in ("flag", "comment")
        ]
        return any(counts)
    return bool(db.value(f"SELECT 1 FROM {table} LIMIT 1"))


def load_folder_names(db: Database, ids: np.ndarray) -> list[str]:
    return [name.rpartition("/")[0] for _, name, *_ in load_image_rows(db, ids)]


def load_attribute_values(db: Database, name: str) -> tuple[np.ndarray, list[str]]:
    """Return the ids of images with this metadata field, (n,) int64 ascending, and their values."""
    rows = db.tuples("SELECT image_id, value FROM attribute WHERE name = ? ORDER BY image_id", [name])
    return np.array([row[0] for row in rows], np.int64), [row[1] for row in rows]


def _build_skip_scan(table: str, column: str) -> str:
    """Return SQL that lists the distinct values of an indexed column without a full scan."""
    return f"""WITH RECURSIVE found (value) AS (SELECT min({column}) FROM {table} UNION ALL
        SELECT (SELECT min({column}) FROM {table} WHERE {column} > found.value) FROM found WHERE found.value NOT NULL)
        SELECT value FROM found WHERE value NOT NULL"""


def _to_json(ids: np.ndarray | Sequence[int]) -> str:
    return json.dumps(np.asarray(ids).tolist())


def _parse_ids(text: Any) -> np.ndarray:
    return np.fromstring(text, np.int64, sep=",") if text else np.zeros(0, np.int64)
