"""What a model filled in under a promise: rows of their own, beside people's labels and never among them.

A cell that a person answers is the person's at once: a trigger takes it away from the model in the same transaction.
Taken back, it is open, until the next look at the promise fills it in again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.records import ABSENT, PRESENT
from annotator.store.database import Database
from annotator.store.odd_rows import SURE


@dataclass(frozen=True)
class Acceptance:
    """Cells of one class that were filled in with one state because of one sample.

    batch        shared by those that were made at one time
    run_id       the run whose probabilities the threshold is about
    threshold    cells with a probability of at least this (of at most this, for absent ones)
    precision, confidence    what was promised
    audited, wrong           the audit answers it rests on
    cells        filled in now: without those people have answered since; 0 once withdrawn
    withdrawn    why they were given back, "" while it holds
    """

    id: int
    batch: str
    class_id: int
    state: int
    run_id: int
    threshold: float
    precision: float
    confidence: float
    audited: int
    wrong: int
    made_at: float
    cells: int = 0
    withdrawn: str = ""
    withdrawn_at: float | None = None


FACTS = ("class_id", "state", "run_id", "threshold", "precision", "confidence", "audited", "wrong")


@dataclass(frozen=True, eq=False)
class NewAcceptance:
    """An acceptance to be made: the facts of Acceptance, and image ids (n,) with their probabilities (n,)."""

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


def accept(db: Database, batch: str, one: NewAcceptance) -> bool:
    """Let this filling hold from now on, instead of the one of its class and state that held before.

    batch      the name of those that are made together
    returns    False when what held before is the same cells under the same promise: then it stays as it is

    In one transaction. Cells that a person has answered meanwhile are left out.
    """
    now = time.time()
    with db.writing() as sql:
        held = _held(sql, one.class_id, one.state)
        wanted = dict(zip(one.image_ids.tolist(), one.scores.tolist(), strict=True))
        if held and sql.execute("SELECT precision FROM acceptance WHERE id = ?", [held[0]]).fetchone()[0] == (
            one.precision
        ):
            rows = sql.execute("SELECT image_id FROM accepted WHERE acceptance_id = ?", [held[0]]).fetchall()
            if {row[0] for row in rows} == set(wanted):
                return False
        _withdraw(sql, held, f"replaced by batch {batch}", now)
        acceptance = sql.execute(
            """INSERT INTO acceptance (class_id, state, run_id, threshold, precision, confidence, audited, wrong,
            batch, made_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [*(getattr(one, name) for name in FACTS), batch, now],
        ).lastrowid
        sql.conn.executemany(
            """INSERT INTO accepted (image_id, class_id, acceptance_id, state, score)
            SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM label WHERE image_id = ?1 AND class_id = ?2)
            ON CONFLICT (image_id, class_id) DO NOTHING""",
            [(image_id, one.class_id, acceptance, one.state, score) for image_id, score in wanted.items()],
        )
    return True


def withdraw_class(db: Database, class_id: int, state: int, reason: str) -> bool:
    """Withdraw what holds of a class and state; False when nothing does."""
    with db.writing() as sql:
        held = _held(sql, class_id, state)
        _withdraw(sql, held, reason, time.time())
    return bool(held)


def withdraw_batch(db: Database, batch: str, reason: str) -> int:
    """Give back all cells of a batch; returns how many acceptances that were. 0: it holds no more, or never did."""
    with db.writing() as sql:
        found = sql.execute("SELECT id FROM acceptance WHERE batch = ? AND withdrawn = ''", [batch]).fetchall()
        _withdraw(sql, [row[0] for row in found], reason, time.time())
    return len(found)


def acceptances(db: Database) -> list[Acceptance]:
    """Every acceptance there was, newest first."""
    rows = db.rows(
        """SELECT c.*, (SELECT count(*) FROM accepted WHERE acceptance_id = c.id) AS cells FROM acceptance c
        ORDER BY c.id DESC"""
    )
    return [Acceptance(**row) for row in rows]


def accepted_cells(db: Database) -> dict[tuple[int, int], tuple[int, int, float]]:
    """(image id, class id) -> (state, acceptance id, probability) of every filled in cell."""
    rows = db.tuples("SELECT image_id, class_id, state, acceptance_id, score FROM accepted")
    return {(image_id, class_id): (state, made, score) for image_id, class_id, state, made, score in rows}


def accepted_of(db: Database, class_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Of one class the cells that are filled in: image ids (n,) int64, states (n,) int8."""
    rows = db.tuples(f"SELECT image_id, state FROM accepted WHERE class_id = ? AND state {SURE}", [class_id])
    found = np.array(rows, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1].astype(np.int8)


def accepted_class_ids(db: Database, image_ids: Sequence[int]) -> dict[int, set[int]]:
    """Of these images the cells that are filled in: image id -> class ids."""
    result: dict[int, set[int]] = {}
    marks = ",".join("?" * len(image_ids))
    for image_id, class_id in db.tuples(
        f"SELECT image_id, class_id FROM accepted WHERE image_id IN ({marks})", [int(one) for one in image_ids]
    ):
        result.setdefault(image_id, set()).add(class_id)
    return result


def counts(db: Database) -> dict[str, int]:
    """Cells that are filled in: present, absent."""
    rows = dict(db.tuples("SELECT two, sum(n) FROM tally WHERE kind = 'accepted' GROUP BY two"))
    return {"present": rows.get(PRESENT, 0), "absent": rows.get(ABSENT, 0)}


def _held(sql: sqlite_utils.Database, class_id: int, state: int) -> list[int]:
    rows = sql.execute(
        "SELECT id FROM acceptance WHERE class_id = ? AND state = ? AND withdrawn = ''", [class_id, state]
    ).fetchall()
    return [row[0] for row in rows]


def _withdraw(sql: sqlite_utils.Database, ids: list[int], reason: str, now: float) -> None:
    for one in ids:
        sql.execute("DELETE FROM accepted WHERE acceptance_id = ?", [one])
        sql.execute("UPDATE acceptance SET withdrawn = ?, withdrawn_at = ? WHERE id = ?", [reason, now, one])
