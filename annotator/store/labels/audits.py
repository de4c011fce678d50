"""Audits: random samples of cells for the quality report, and arrays of the population sampled from.

Arrays are written before the rows, so an audit is stored completely or not at all.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from annotator.indexing import CellIndex, find_positions
from annotator.roles import Right
from annotator.store.database.arrays import open_array, save_array, save_rows
from annotator.store.database.database import Database, get_inserted_id, get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.database.invalid_rows import VALID_ACCEPTED_STATES_SQL, VALID_LABEL_STATES_SQL
from annotator.store.images.stages import EXCLUDED
from spmll.rows import Rows

MAX_KEPT_AUDITS = 5  # audits whose arrays are kept; answers of older ones count as labels only
ABANDONED_SECONDS = 3600.0  # after which an audit that was never published is removed
OPEN = 2  # in a matrix of labels: no answer


@dataclass(frozen=True)
class Audit:
    """A random sample of cells that annotators answer blind."""

    id: int
    # run whose probabilities guided the sampling, or None
    run_id: int | None
    # newest decision in the population
    last_decision_id: int
    # unix seconds
    drawn_at: float
    cells: int
    # blind annotators per cell
    people: int = 1
    # whole events were sampled
    by_event: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return all fields, `by_event` only if True."""
        return {name: value for name, value in asdict(self).items() if name != "by_event" or value}


@dataclass(frozen=True, eq=False)
class AuditCells:
    """The sampled cells of an audit, (n,) each, by class in random order."""

    class_id: np.ndarray
    image_id: np.ndarray
    stratum: np.ndarray
    place: np.ndarray
    # 1, -1, 0 for unsure, or OPEN without an answer since the audit
    state: np.ndarray
    # bool, answered in the audit grid or resolved after it
    in_audit: np.ndarray
    # bool, the image is readable
    shown: np.ndarray


@dataclass(frozen=True, eq=False)
class Population(CellIndex):
    """The cells from which an audit was sampled."""

    # (N, C) uint8
    strata: np.ndarray
    # (N, C) float16 probabilities, nan without a model
    scores: np.ndarray


def publish(
    db: Database,
    drawn_from: CellIndex,
    strata: np.ndarray,
    scores: Rows,
    cells: Sequence[tuple[int, int, int, int]],
    run_id: int | None,
    newest: int,
    people: int = 1,
    by_event: bool = False,
) -> int:
    """Store an audit and return its id.

    Args:
        drawn_from: Cells from which it was sampled.
        cells: (class id, image id, stratum, random place) of sampled cells.
    """
    with db.writing(right=Right.REVIEW) as sql:
        statement = "INSERT INTO audit (run_id, last_decision_id, drawn_at, people, by_event) VALUES (?, ?, ?, ?, ?)"
        audit_id = get_inserted_id(sql.execute(statement, [run_id, newest, time.time(), people, by_event]))
    folder = _get_folder(db, audit_id)
    save_array(folder / "image_ids.npy", drawn_from.image_ids)
    save_array(folder / "class_ids.npy", drawn_from.class_ids)
    save_array(folder / "strata.npy", strata)
    save_rows(folder / "scores.npy", scores, np.float16)
    with db.writing(right=Right.REVIEW) as sql:
        sql.conn.executemany(
            "INSERT INTO audit_cell (audit_id, class_id, image_id, stratum, place) VALUES (?, ?, ?, ?, ?)",
            [(audit_id, *cell) for cell in cells],
        )
        sql.execute("UPDATE audit SET published = 1 WHERE id = ?", [audit_id])
    _remove_old_audits(db)
    return audit_id


def load_audits(db: Database, limit: int = MAX_KEPT_AUDITS) -> list[Audit]:
    """Return the newest readable audits, newest first."""
    return [audit for audit in _load_newest_audits(db, limit) if _is_readable(db, audit.id)]


def describe_damage(db: Database) -> list[str]:
    """Return a sentence per recent audit with unusable arrays or cells."""
    sentences: list[str] = []
    for audit in _load_newest_audits(db, MAX_KEPT_AUDITS):
        if not _is_readable(db, audit.id):
            sentences.append(f"audit {audit.id}: its arrays are gone or damaged, so its answers count as labels only")
        elif odd := audit.cells - len(load_cells(db, audit).class_id):
            sentences.append(f"audit {audit.id}: {odd:,} of its {audit.cells:,} cells are none that it can have drawn")
    return sentences


def load_population(db: Database, audit_id: int) -> Population:
    """Return the memory-mapped population of an audit. Raises FileNotFoundError or ValueError if it is damaged."""
    return db.caches.get("populations", audit_id, lambda: _read_population(_get_folder(db, audit_id)), MAX_KEPT_AUDITS)


def load_cells(db: Database, audit: Audit) -> AuditCells:
    """Return an audit's valid cells of active classes."""
    rows = db.tuples(
        f"""SELECT a.class_id, a.image_id, a.stratum, a.place, coalesce(l.state, ?),
        coalesce(d.source = 'audit' OR (d.source = 'settlement' AND EXISTS (SELECT 1 FROM decision b
            WHERE b.image_id = a.image_id AND b.class_id = a.class_id AND b.source = 'audit' AND b.id > ?)), 0),
        i.problem = '' AND i.stage != {EXCLUDED}
        FROM audit_cell a JOIN image i ON i.id = a.image_id
        LEFT JOIN label l ON l.image_id = a.image_id AND l.class_id = a.class_id AND l.decision_id > ?
        LEFT JOIN decision d ON d.id = l.decision_id
        WHERE a.audit_id = ? AND typeof(a.stratum) = 'integer' AND typeof(a.place) = 'integer'
          AND coalesce(l.state, 0) IN (1, -1, 0) AND a.class_id NOT IN (SELECT id FROM class WHERE archived = 1)
        ORDER BY a.class_id, a.place""",
        [OPEN, audit.last_decision_id, audit.last_decision_id, audit.id],
    )
    where = load_population(db, audit.id)
    columns = np.array(rows, np.int64).reshape(-1, 7).T
    columns = columns[:, where.find_cells(columns[1], columns[0])[2]]
    return AuditCells(*columns[:5], *(column.astype(bool) for column in columns[5:]))


def load_annotators_by_cell(db: Database, audit: Audit) -> dict[tuple[int, int], list[str]]:
    """Return (class id, image id) -> annotators of each answer to the cell in the audit grid."""
    rows = db.tuples(
        f"""SELECT a.class_id, a.image_id, d.annotator FROM audit_cell a
        JOIN decision d ON d.image_id = a.image_id AND d.class_id = a.class_id
        WHERE a.audit_id = ? AND d.source = 'audit' AND d.action = 'label' AND d.id > ?
          AND {NOT_UNDONE_SQL}""",
        [audit.id, audit.last_decision_id],
    )
    people: dict[tuple[int, int], list[str]] = {}
    for class_id, image_id, annotator in rows:
        people.setdefault((class_id, image_id), []).append(annotator)
    return people


def load_confirmed_cells(db: Database) -> np.ndarray:
    """Return the sampled cells labeled present that have two such answers, one of them blind, (n, 2) int64.

    Each row is (class id, image id). Imported answers do not count.
    """
    return db.integer_rows(
        f"""SELECT a.class_id, a.image_id FROM audit_cell a
        JOIN label l ON l.image_id = a.image_id AND l.class_id = a.class_id AND l.state = 1
        JOIN decision d ON d.image_id = a.image_id AND d.class_id = a.class_id
        WHERE d.action = 'label' AND d.state = 1 AND d.source != 'import' AND {NOT_UNDONE_SQL}
        GROUP BY a.class_id, a.image_id HAVING count(DISTINCT d.id) > 1 AND max(d.source = 'audit')"""
    ).reshape(-1, 2)


def count_forgotten_audits(db: Database) -> int:
    """Count the published audits of images that are not among the newest, or are damaged."""
    published = db.value("SELECT count(*) FROM audit WHERE published = 1 AND NOT by_event") or 0
    return published - sum(not audit.by_event for audit in load_audits(db))


def find_sampled_cells(db: Database, cells: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the cells (image id, class id) sampled by any audit."""
    ids = list({image_id for image_id, _ in cells})
    rows = db.tuples(
        f"""SELECT image_id, class_id FROM audit_cell WHERE image_id IN ({",".join("?" * len(ids))})
        AND audit_id IN (SELECT id FROM audit WHERE published = 1)""",
        ids,
    )
    return set(rows) & set(cells)


def load_label_matrix(db: Database, image_ids: np.ndarray, class_ids: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the labels (N, C) int8, OPEN if unanswered, and the newest decision.

    Args:
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64.
    """
    with db.reading() as sql:
        newest = get_newest_decision_id(sql)
        # One text per class and state: fetching a million rows would take many times as long.
        rows = sql.execute(
            f"SELECT class_id, state, group_concat(image_id) FROM label WHERE state {VALID_LABEL_STATES_SQL} GROUP BY "
            "class_id, state"
        ).fetchall()
    return _build_matrix(rows, image_ids, class_ids), newest


def load_class_labels(db: Database, class_id: int, image_ids: np.ndarray) -> np.ndarray:
    """Return one column of `load_label_matrix`, (N,) int8, for less memory."""
    rows = db.tuples(
        f"""SELECT class_id, state, group_concat(image_id) FROM label
            WHERE class_id = ? AND state {VALID_LABEL_STATES_SQL}
        GROUP BY state""",
        [class_id],
    )
    return _build_matrix(rows, image_ids, np.array([class_id]))[:, 0]


def load_class_accepted(db: Database, class_id: int, image_ids: np.ndarray) -> np.ndarray:
    """Return the auto-accepted states of one class, (N,) int8, or OPEN."""
    rows = db.tuples(
        f"""SELECT class_id, state, group_concat(image_id) FROM accepted
            WHERE class_id = ? AND state {VALID_ACCEPTED_STATES_SQL}
        GROUP BY state""",
        [class_id],
    )
    return _build_matrix(rows, image_ids, np.array([class_id]))[:, 0]


def load_readable_image_ids(db: Database) -> np.ndarray:
    """Return the readable images that are not excluded, (n,) int64, ascending."""
    ids = db.value(f"SELECT group_concat(id) FROM image WHERE problem = '' AND stage != {EXCLUDED}")
    return np.sort(np.fromstring(ids or "", np.int64, sep=","))


def count_disagreements(db: Database) -> dict[tuple[int, int], int]:
    """Return (class id, label state) -> number of cells with disagreements."""
    rows = db.tuples(
        """SELECT c.class_id, l.state, count(*) FROM contradiction c
        JOIN label l ON l.image_id = c.image_id AND l.class_id = c.class_id GROUP BY c.class_id, l.state"""
    )
    return {(class_id, state): count for class_id, state, count in rows}


def load_disagreed_cells(db: Database) -> np.ndarray:
    """Return cells with disagreements, (n, 3) int64: class id, image id, label state."""
    return db.integer_rows(
        """SELECT c.class_id, c.image_id, l.state FROM contradiction c
        JOIN label l ON l.image_id = c.image_id AND l.class_id = c.class_id"""
    )


def _build_matrix(rows: list[tuple[int, int, str]], image_ids: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    result = np.full((len(image_ids), len(class_ids)), OPEN, np.int8)
    column_of = {class_id: column for column, class_id in enumerate(class_ids.tolist())}
    for class_id, state, joined_ids in rows:
        if class_id not in column_of:
            continue
        places, known = find_positions(np.fromstring(joined_ids, np.int64, sep=","), image_ids)
        result[places[known], column_of[class_id]] = state
    return result


def _get_folder(db: Database, audit_id: int) -> Path:
    return db.paths.audits / str(audit_id)


def _read_population(folder: Path) -> Population:
    arrays = (np.asarray(open_array(folder / f"{field.name}.npy")) for field in fields(Population))
    population = Population(*arrays)
    shape = (len(population.image_ids), len(population.class_ids))
    strata, scores = population.strata.shape, population.scores.shape
    if strata != shape or scores != shape:
        raise ValueError(f"{folder}: strata {strata} and scores {scores} must be {shape}.")
    return population


def _load_newest_audits(db: Database, limit: int) -> list[Audit]:
    rows = db.rows(
        """SELECT id, run_id, last_decision_id, drawn_at,
        (SELECT count(*) FROM audit_cell WHERE audit_id = audit.id
            AND class_id NOT IN (SELECT id FROM class WHERE archived = 1)) AS cells, people, by_event
        FROM audit WHERE published = 1 ORDER BY id DESC LIMIT ?""",
        [min(limit, MAX_KEPT_AUDITS)],
    )
    return [Audit(**(row | {"by_event": bool(row["by_event"])})) for row in rows]


def _is_readable(db: Database, audit_id: int) -> bool:
    try:
        load_population(db, audit_id)
    except (OSError, ValueError, EOFError):
        return False
    return True


def _remove_old_audits(db: Database) -> None:
    """Remove abandoned audits, and arrays beyond the newest MAX_KEPT_AUDITS."""
    with db.writing(right=Right.REVIEW) as sql:
        sql.execute("DELETE FROM audit WHERE published = 0 AND drawn_at < ?", [time.time() - ABANDONED_SECONDS])
    newest = db.rows("SELECT id FROM audit WHERE published = 1 ORDER BY id DESC LIMIT ?", [MAX_KEPT_AUDITS])
    unfinished = db.rows("SELECT id FROM audit WHERE published = 0")
    keep = {str(row["id"]) for row in [*newest, *unfinished]}
    for place in db.paths.audits.iterdir():
        if place.name.isdigit() and place.name not in keep:
            shutil.rmtree(place, ignore_errors=True)
