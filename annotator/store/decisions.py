"""What people decided: appended, never edited; the newest active one is the label of its cell.

A uuid made where the person acted makes a repeat harmless, so a browser may send a batch again until it is
acknowledged. An undo is a decision too.
"""

import time
import uuid
from collections.abc import Iterable, Sequence

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.records import ABSENT, ACTIONS, SOURCES, STATE_NAMES, Decision, Label, Saved
from annotator.store.database import Database

UNTOUCHED, SKIPPED, LABELED, COMPLETE = range(4)  # image.stage


def decide(db: Database, decisions: Sequence[Decision]) -> Saved:
    """Append decisions in their order, in one transaction, and bring the labels up to date.

    A uuid that is already stored counts as saved and changes nothing. What cannot be stored (unknown image or class,
    no valid state) is refused with a reason and does not hold back the rest, so that one bad decision in a browser's
    queue never blocks the good ones behind it.
    """
    saved, refused = [], {}
    with db.writing() as sql:
        for decision in decisions:
            if _known(sql, decision.uuid):
                saved.append(decision.uuid)
            elif problem := _problem(sql, decision):
                refused[decision.uuid] = problem
            else:
                _append(sql, decision)
                saved.append(decision.uuid)
    return Saved(saved, refused)


def undo(db: Database, annotator: str | None = None) -> list[dict]:
    """Take back the newest decision that still holds (a whole batch as one): whose it was, on what.

    annotator    only this person's; None takes the newest of anybody's. Imports are not undone.
    returns      one dict per decision taken back: image, class, state, action, annotator

    Raises AnnotatorError when there is nothing to undo.
    """
    with db.writing() as sql:
        target = _newest_active(sql, annotator)
        if target is None:
            whose = f" by {annotator}" if annotator else ""
            raise AnnotatorError(f"There is no decision{whose} left to undo.")
        who = sql.execute("SELECT annotator FROM decision WHERE id = ?", [target]).fetchone()[0]
        undone = _append_undo(sql, Decision(str(uuid.uuid4()), "undo", annotator or who, "click"), target)
        marks = ",".join("?" * len(undone))
        return list(
            sql.query(
                f"""SELECT i.name AS image, c.name AS class, d.state, d.action, d.annotator FROM decision d
                JOIN image i ON i.id = d.image_id LEFT JOIN class c ON c.id = d.class_id
                WHERE d.id IN ({marks}) ORDER BY d.id""",
                undone,
            )
        )


def newest_decision(db: Database) -> int:
    """The id of the newest decision, 0 when there is none: what a run's `last_decision_id` is compared with."""
    return db.value("SELECT coalesce(max(id), 0) FROM decision")


def labels(db: Database, image_ids: Iterable[int]) -> list[Label]:
    """The labels of these images with where each came from."""
    ids = list(image_ids)
    rows = db.rows(
        f"""SELECT l.image_id, l.class_id, l.state, d.source, d.annotator, d.decided_at
        FROM label l JOIN decision d ON d.id = l.decision_id
        WHERE l.image_id IN ({",".join("?" * len(ids))}) ORDER BY l.image_id, l.decision_id, l.class_id""",
        ids,
    )
    return [Label(**row) for row in rows]


def all_labels(db: Database) -> list[Label]:
    """Every label with where it came from."""
    return [
        Label(**row)
        for row in db.rows(
            """SELECT l.image_id, l.class_id, l.state, d.source, d.annotator, d.decided_at
            FROM label l JOIN decision d ON d.id = l.decision_id"""
        )
    ]


def label_cells(db: Database) -> tuple[list[tuple[int, int, int]], int]:
    """Every label as (image_id, class_id, state), and the newest decision they include, read as of one moment."""
    with db.reading() as sql:
        newest = sql.execute("SELECT coalesce(max(id), 0) FROM decision").fetchone()[0]
        return sql.execute("SELECT image_id, class_id, state FROM label").fetchall(), newest


def recent(db: Database, annotator: str, limit: int) -> list[dict]:
    """This person's newest decisions that still hold, newest last: what a page can still undo after a reload."""
    rows = db.rows(
        """SELECT d.uuid, d.action, d.image_id, d.class_id, d.state, d.batch FROM decision d
        WHERE d.annotator = ? AND d.action != 'undo' AND d.source != 'import'
          AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)
        ORDER BY d.id DESC LIMIT ?""",
        [annotator, limit],
    )
    return rows[::-1]


def _known(sql: sqlite_utils.Database, decision_uuid: str) -> bool:
    return sql.execute("SELECT 1 FROM decision WHERE uuid = ?", [decision_uuid]).fetchone() is not None


def _problem(sql: sqlite_utils.Database, decision: Decision) -> str | None:
    if decision.action not in ACTIONS:
        return f"{decision.action!r} is not an action; there is: {', '.join(ACTIONS)}"
    if decision.source not in SOURCES:
        return f"{decision.source!r} is not a source; there is: {', '.join(SOURCES)}"
    if decision.action == "undo":
        return None
    if not sql.execute("SELECT 1 FROM image WHERE id = ?", [decision.image_id]).fetchone():
        return f"there is no image {decision.image_id} in this project"
    if decision.action != "label":
        return None
    if decision.state not in STATE_NAMES:
        return f"{decision.state!r} is not a state; there is: 1 (present), -1 (absent), 0 (unsure)"
    if not sql.execute("SELECT 1 FROM class WHERE id = ?", [decision.class_id]).fetchone():
        return f"there is no class {decision.class_id} in this project"
    return None


def _append(sql: sqlite_utils.Database, decision: Decision) -> None:
    if decision.action == "undo":
        _append_undo(sql, decision, _undo_target(sql, decision))
        return
    decision_id = _insert(sql, decision, image_id=decision.image_id)
    if decision.action == "label":
        _set_label(sql, decision.image_id, decision.class_id, decision.state, decision_id)
    elif decision.action == "done":
        sql.execute(
            """INSERT INTO label (image_id, class_id, state, decision_id) SELECT ?, id, ?, ? FROM class WHERE true
            ON CONFLICT (image_id, class_id) DO NOTHING""",
            [decision.image_id, ABSENT, decision_id],
        )
    _set_stage(sql, decision.image_id, decision_id)


def _insert(sql: sqlite_utils.Database, decision: Decision, **values: object) -> int:
    row = {
        "uuid": decision.uuid,
        "action": decision.action,
        "image_id": decision.image_id,
        "class_id": decision.class_id if decision.action == "label" else None,
        "state": decision.state if decision.action == "label" else None,
        "source": "done" if decision.action == "done" else decision.source,
        "annotator": decision.annotator,
        "batch": decision.batch,
        "run_id": decision.run_id,
        "score": decision.score,
        "milliseconds": decision.milliseconds,
        "decided_at": time.time(),
    } | values
    names = ", ".join(row)
    return sql.execute(
        f"INSERT INTO decision ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values())
    ).lastrowid


def _set_label(sql: sqlite_utils.Database, image_id: int, class_id: int, state: int, decision_id: int) -> None:
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [image_id, class_id, state, decision_id],
    )


def _set_stage(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """How far people are with the image, from its labels; without any, whether it was skipped."""
    answered = sql.execute("SELECT count(*) FROM label WHERE image_id = ?", [image_id]).fetchone()[0]
    if answered:
        classes = sql.execute("SELECT count(*) FROM class").fetchone()[0]
        stage = COMPLETE if answered >= classes else LABELED
    else:
        stage = SKIPPED if any(row["action"] == "skip" for row in _active(sql, image_id)) else UNTOUCHED
    # An untouched image goes back to its place in the order, a skipped one behind those skipped earlier.
    since = 0 if stage == UNTOUCHED else decision_id
    sql.execute("UPDATE image SET stage = ?, stage_decision = ? WHERE id = ?", [stage, since, image_id])


def _undo_target(sql: sqlite_utils.Database, decision: Decision) -> int | None:
    if decision.undoes is None:
        return _newest_active(sql, decision.annotator)
    row = sql.execute("SELECT id FROM decision WHERE uuid = ? AND action != 'undo'", [decision.undoes]).fetchone()
    return row[0] if row else None


def _newest_active(sql: sqlite_utils.Database, annotator: str | None) -> int | None:
    row = sql.execute(
        f"""SELECT id FROM decision d WHERE {"annotator = ? AND" if annotator else ""} action != 'undo'
          AND source != 'import' AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)
        ORDER BY id DESC LIMIT 1""",
        [annotator] if annotator else [],
    ).fetchone()
    return row[0] if row else None


def _append_undo(sql: sqlite_utils.Database, decision: Decision, target: int | None) -> list[int]:
    """Store the undo (with all of a batch) and rebuild what it touched. Without a target it is stored as a no-op,
    so that the browser's repeat of it is still recognised."""
    if target is None:
        _insert(sql, decision, image_id=None)
        return []
    rows = sql.execute(
        """SELECT d.id, d.image_id FROM decision d, decision t WHERE t.id = ?
          AND (d.id = t.id OR (t.batch IS NOT NULL AND d.batch = t.batch AND d.action != 'undo'))
          AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id) ORDER BY d.id""",
        [target],
    ).fetchall()
    if not rows:  # taken back already, by another tab perhaps
        _insert(sql, decision, image_id=None)
        return []
    for number, (decision_id, image_id) in enumerate(rows):
        name = decision.uuid if number == 0 else f"{decision.uuid}:{number}"
        newest = _insert(sql, decision, uuid=name, image_id=image_id, undoes=decision_id, batch=None)
        _rebuild(sql, image_id, newest)
    return [decision_id for decision_id, _ in rows]


def _active(sql: sqlite_utils.Database, image_id: int) -> list[dict]:
    return [row for row in _history(sql, image_id) if row["undone_by"] is None]


def _history(sql: sqlite_utils.Database, image_id: int) -> list[dict]:
    return list(
        sql.query(
            """SELECT d.id, d.action, d.class_id, d.state, u.id AS undone_by FROM decision d
            LEFT JOIN decision u ON u.undoes = d.id WHERE d.image_id = ? AND d.action != 'undo' ORDER BY d.id""",
            [image_id],
        )
    )


def _rebuild(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """The image's labels anew from its decisions, as if the ones taken back had never been."""
    history = _history(sql, image_id)
    classes = sql.execute("SELECT id, since_decision FROM class").fetchall()
    cells: dict[int, tuple[int, int]] = {}
    for row in history:
        if row["undone_by"] is not None:
            continue
        if row["action"] == "label":
            cells[row["class_id"]] = (row["state"], row["id"])
        elif row["action"] == "done":
            # It covers what was open when it was said, even if an answer of that time was taken back since.
            answered = {
                other["class_id"]
                for other in history
                if other["action"] == "label"
                and other["id"] < row["id"]
                and (other["undone_by"] is None or other["undone_by"] > row["id"])
            }
            for class_id, since in classes:
                if since < row["id"] and class_id not in answered:
                    cells.setdefault(class_id, (ABSENT, row["id"]))
    sql.execute("DELETE FROM label WHERE image_id = ?", [image_id])
    for class_id, (state, source) in cells.items():
        _set_label(sql, image_id, class_id, state, source)
    _set_stage(sql, image_id, decision_id)
