"""Cells (image, class) accepted without an answer, stored apart from the labels.

A model accepts them under a precision guarantee, or an annotator marks a class absent everywhere, which models never
replace. Triggers move a cell to `displaced_acceptance` once it is answered or implied, and back when that is undone.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.records import ABSENT, PRESENT
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.database.invalid_rows import VALID_ACCEPTED_STATES_SQL

OPEN_DISPLACED_CELLS_SQL = """SELECT d.image_id, d.class_id FROM displaced_acceptance d
    WHERE NOT EXISTS (SELECT 1 FROM label l WHERE l.image_id = d.image_id AND l.class_id = d.class_id)
    AND NOT EXISTS (SELECT 1 FROM accepted a WHERE a.image_id = d.image_id AND a.class_id = d.class_id)"""
"""Displaced cells that nothing displaces. There are none, unless the file was changed by another program."""


@dataclass(frozen=True)
class Acceptance:
    """The stored record of cells of one class accepted with one state, based on an audit sample."""

    id: int
    batch: str
    class_id: int
    state: int
    run_id: int
    # minimum probability (maximum for absent)
    threshold: float
    # precision, confidence: the guarantee
    precision: float
    confidence: float
    # audited, wrong: numbers of audit answers used, and of wrong cells among them
    audited: int
    wrong: int
    made_at: float
    cells: int = 0
    # reason, or ""
    withdrawn: str = ""
    withdrawn_at: float | None = None
    # "" for a model
    annotator: str = ""


ACCEPTANCE_COLUMNS = (
    "class_id",
    "state",
    "run_id",
    "threshold",
    "precision",
    "confidence",
    "audited",
    "wrong",
    "annotator",
)


@dataclass(frozen=True, eq=False)
class NewAcceptance:
    """An acceptance to store, with image ids (n,) and their probabilities (n,)."""

    class_id: int
    state: int
    run_id: int
    threshold: float
    precision: float
    confidence: float
    audited: int
    wrong: int
    image_ids: np.ndarray
    scores: np.ndarray
    annotator: str = ""


def accept(db: Database, batch: str, new: NewAcceptance) -> bool:
    """Replace the acceptance of a class and state in one transaction, leaving out answered cells.

    Returns False without changes if it is identical or not allowed.
    """
    moment = time.time()
    with db.writing(right=Right.REVIEW) as sql:
        if sql.execute("SELECT archived FROM class WHERE id = ?", [new.class_id]).fetchone() == (1,):
            return False
        if not new.annotator and new.class_id in _find_ruled_out_classes(sql):
            return False
        held = _find_current_acceptances(sql, new.class_id, new.state)
        wanted = dict(zip(new.image_ids.tolist(), new.scores.tolist(), strict=True))
        implied = "SELECT image_id FROM accepted WHERE class_id = ? AND decision_id NOT NULL"
        for (image_id,) in sql.execute(implied, [new.class_id]).fetchall():
            wanted.pop(image_id, None)  # what people's answers imply goes before what a model thinks
        same_precision = "SELECT 1 FROM acceptance WHERE id = ? AND precision = ?"
        if held and sql.execute(same_precision, [held[0], new.precision]).fetchone():
            rows = sql.execute("SELECT image_id FROM accepted WHERE acceptance_id = ?", [held[0]]).fetchall()
            if {row[0] for row in rows} == set(wanted):
                return False
        _withdraw_acceptances(sql, held, f"replaced by batch {batch}", moment)
        acceptance = sql.execute(
            """INSERT INTO acceptance (class_id, state, run_id, threshold, precision, confidence, audited, wrong,
            annotator, batch, made_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [*(getattr(new, name) for name in ACCEPTANCE_COLUMNS), batch, moment],
        ).lastrowid
        sql.conn.executemany(
            """INSERT INTO accepted (image_id, class_id, acceptance_id, state, score)
            SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM label WHERE image_id = ?1 AND class_id = ?2)
            ON CONFLICT (image_id, class_id) DO NOTHING""",
            [(image_id, new.class_id, acceptance, new.state, score) for image_id, score in wanted.items()],
        )
    return True


def withdraw_class(db: Database, class_id: int, state: int, reason: str) -> bool:
    """Withdraw a model's acceptance of a class and state. Return False if there is none."""
    with db.writing(right=Right.REVIEW) as sql:
        return class_id not in _find_ruled_out_classes(sql) and withdraw(sql, class_id, state, reason, time.time())


def withdraw(sql: sqlite_utils.Database, class_id: int, state: int, reason: str, moment: float) -> bool:
    """Withdraw any acceptance of a class and state in a transaction, or return False."""
    held = _find_current_acceptances(sql, class_id, state)
    _withdraw_acceptances(sql, held, reason, moment)
    return bool(held)


def withdraw_batch(db: Database, batch: str, reason: str) -> int:
    """Withdraw all acceptances of a batch, and return their number."""
    with db.writing(right=Right.REVIEW) as sql:
        rows = sql.execute("SELECT id FROM acceptance WHERE batch = ? AND withdrawn = ''", [batch]).fetchall()
        _withdraw_acceptances(sql, [row[0] for row in rows], reason, time.time())
    return len(rows)


def displace_answered_cells(sql: sqlite_utils.Database, images: str) -> None:
    """Displace accepted cells that have a label, after labels were stored without triggers.

    Args:
        images: SQL condition on `image_id` that selects the images to check.
    """
    sql.execute(
        f"""DELETE FROM accepted WHERE {images} AND EXISTS (SELECT 1 FROM label l
        WHERE l.image_id = accepted.image_id AND l.class_id = accepted.class_id)"""
    )


def return_displaced_cells(sql: sqlite_utils.Database) -> None:
    """Return displaced cells that nothing displaces, in a repair."""
    for cell in sql.execute(OPEN_DISPLACED_CELLS_SQL).fetchall():
        sql.execute(
            """INSERT INTO accepted (image_id, class_id, acceptance_id, state, score)
            SELECT image_id, class_id, acceptance_id, state, score FROM displaced_acceptance
            WHERE image_id = ? AND class_id = ?""",
            cell,
        )
        sql.execute("DELETE FROM displaced_acceptance WHERE image_id = ? AND class_id = ?", cell)


def load_acceptances(db: Database) -> list[Acceptance]:
    """Return all acceptances, newest first, including withdrawn ones."""
    rows = db.rows(
        f"""SELECT id, batch, {", ".join(ACCEPTANCE_COLUMNS)}, made_at, withdrawn, withdrawn_at,
        (SELECT count(*) FROM accepted WHERE acceptance_id = c.id) AS cells FROM acceptance c
        WHERE relation_id IS NULL ORDER BY c.id DESC"""
    )
    return [Acceptance(**row) for row in rows]


def find_ruled_out_classes(db: Database) -> set[int]:
    """Return the classes that are marked absent everywhere."""
    with db.reading() as sql:
        return _find_ruled_out_classes(sql)


def load_accepted_cells(db: Database) -> dict[tuple[int, int], tuple[int, int, float]]:
    """Return accepted and implied cells: (image id, class id) -> (state, acceptance id, probability)."""
    rows = db.tuples("SELECT image_id, class_id, state, acceptance_id, score FROM accepted")
    return {(image_id, class_id): (state, made, score) for image_id, class_id, state, made, score in rows}


def load_class_cells(db: Database, class_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the accepted and implied cells of a class: image ids (n,) int64 and states (n,) int8."""
    rows = db.tuples(
        f"SELECT image_id, state FROM accepted WHERE class_id = ? AND state {VALID_ACCEPTED_STATES_SQL}", [class_id]
    )
    cells = np.array(rows, np.int64).reshape(-1, 2)
    return cells[:, 0], cells[:, 1].astype(np.int8)


def load_accepted_class_ids(db: Database, image_ids: Sequence[int]) -> dict[int, set[int]]:
    """Return image id -> ids of its accepted or implied classes, for these images."""
    result: dict[int, set[int]] = {}
    marks = ",".join("?" * len(image_ids))
    for image_id, class_id in db.tuples(
        f"SELECT image_id, class_id FROM accepted WHERE image_id IN ({marks})",
        [int(image_id) for image_id in image_ids],
    ):
        result.setdefault(image_id, set()).add(class_id)
    return result


def count_accepted(db: Database) -> dict[str, int]:
    """Return the numbers of cells a model accepted as present and absent."""
    counted = _count_by_state(db)
    return {"present": counted.get((PRESENT, False), 0), "absent": counted.get((ABSENT, False), 0)}


def count_ruled_out(db: Database) -> int:
    """Count the cells marked absent everywhere."""
    return _count_by_state(db).get((ABSENT, True), 0)


def _count_by_state(db: Database) -> dict[tuple[int, bool], int]:
    """Return (state, whether the class is marked absent everywhere) -> number of accepted cells."""
    with db.reading() as sql:
        ruled = _find_ruled_out_classes(sql)
        rows = sql.execute("SELECT one, two, n FROM tally WHERE kind = 'accepted'").fetchall()
        implied = "SELECT class_id, state, -count(*) FROM accepted WHERE decision_id NOT NULL GROUP BY 1, 2"
        rows += sql.execute(implied).fetchall()
    result: dict[tuple[int, bool], int] = {}
    for class_id, state, cells in rows:
        # Of a class that is ruled out a model answers no cell (`accept`), so the tallies of classes suffice.
        kind = state, class_id in ruled
        result[kind] = result.get(kind, 0) + cells
    return result


def _find_ruled_out_classes(sql: sqlite_utils.Database) -> set[int]:
    rows = sql.execute("SELECT class_id FROM acceptance WHERE annotator != '' AND withdrawn = ''").fetchall()
    return {row[0] for row in rows}


def _find_current_acceptances(sql: sqlite_utils.Database, class_id: int, state: int) -> list[int]:
    rows = sql.execute(
        "SELECT id FROM acceptance WHERE class_id = ? AND state = ? AND withdrawn = '' AND relation_id IS NULL",
        [class_id, state],
    ).fetchall()
    return [row[0] for row in rows]


def _withdraw_acceptances(sql: sqlite_utils.Database, ids: list[int], reason: str, moment: float) -> None:
    for acceptance in ids:
        # First, because the cells of an acceptance that holds are displaced and not deleted.
        sql.execute("UPDATE acceptance SET withdrawn = ?, withdrawn_at = ? WHERE id = ?", [reason, moment, acceptance])
        for table in ("accepted", "displaced_acceptance"):
            sql.execute(f"DELETE FROM {table} WHERE acceptance_id = ?", [acceptance])
