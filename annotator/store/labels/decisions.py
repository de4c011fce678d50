"""Append-only decisions. The newest active decision about a cell is its label."""

import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.records import CELL_ACTIONS, SOURCES, Batch, Decision, Label, SaveResult
from annotator.roles import Right
from annotator.store.database import authorization, database
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL, NOT_UNDONE_SQL
from annotator.store.events import event_answers
from annotator.store.events.event_answers import EventAnswer, EventBatch
from annotator.store.labels import answer_exposure, image_overlap, implied_cells, refusals
from annotator.store.labels.archived_classes import ClassArchive
from annotator.store.labels.derivation import (
    clear_label,
    close_image,
    is_vote,
    rebuild_image,
    set_label,
    update_after_flag,
    update_disagreements,
    update_stage,
)
from annotator.store.runs import prediction_sources

ANSWERING_ACTIONS = ("label", "clear", "done")  # actions after which a person sees what others have said

_SELECT_ACTIVE_SQL = f"""SELECT d.uuid, d.action, d.image_id, d.class_id, d.state, d.note, d.source, d.annotator,
    d.batch,
    d.run_id, d.score, d.milliseconds, (SELECT f.image_id FROM event_answer e JOIN decision f ON f.id = e.from_id
    WHERE e.decision_id = d.id) AS front_id FROM decision d
    WHERE d.action != 'undo' AND d.source NOT IN ('import', 'merge')
      AND {NOT_UNDONE_SQL}"""
_SELECT_OWN_ACTIVE_SQL = f"{_SELECT_ACTIVE_SQL} AND d.annotator = ? ORDER BY d.id DESC"
# Decisions stored by a merge of classes are only undone together with the merge (classes/class_history.py).
_IS_UNDOABLE_SQL = "AND action != 'undo' AND source != 'merge'"


def save(db: Database, decisions: Sequence[Decision | Batch]) -> SaveResult:
    """Append decisions in order, in one transaction, and update the labels.

    Resending a stored uuid with the same content succeeds. Invalid decisions are refused with a reason, without
    blocking others. One bad cell refuses its batch. A time out of bounds becomes unknown.
    """
    saved: list[str] = []
    refused: dict[str, str] = {}
    with db.writing(right=Right.ANSWER) as sql:
        answered: list[tuple[int, int, int]] = []
        read: list[Decision] = []
        before = database.get_newest_decision_id(sql)
        for decision in decisions:
            parts = _split_batch(decision) if isinstance(decision, Batch) else [decision]
            known, problem = refusals.find_stored(sql, decision.uuid, parts)
            if problem := problem or (None if known else _find_problem(sql, parts)):
                refused[decision.uuid] = problem
                continue
            if not known:
                parts = _append_parts(sql, parts, decision.away if isinstance(decision, EventBatch) else (), answered)
                if parts and parts[0].action in ANSWERING_ACTIONS:
                    answer_exposure.record_answering(
                        sql, parts[0].annotator, {part.image_id for part in parts if part.image_id}
                    )
                read += [part for part in parts if part.source == image_overlap.OVERLAP_SOURCE]
            saved.append(decision.uuid)
        for image_id in {part.image_id for part in read if part.image_id is not None}:
            image_overlap.update_answer_count(sql, image_id)
        prediction_sources.log_scores(sql, db, answered)
        opinions = sql.execute(
            """SELECT uuid FROM opinion o JOIN decision d ON d.id = o.decision_id
            JOIN contradiction c ON c.image_id = d.image_id AND c.class_id = d.class_id WHERE o.decision_id > ?""",
            [before],
        ).fetchall()
    return SaveResult([uuid for uuid in saved if uuid not in refused], refused, _to_sent_uuids(opinions))


def _append_parts(
    sql: sqlite_utils.Database, parts: Sequence[Decision], away: Collection[int], answered: list[tuple[int, int, int]]
) -> list[Decision]:
    appended: list[Decision] = []
    for part in parts:
        from_id = None
        if isinstance(part, EventAnswer):
            from_id = None if part.image_id in away else event_answers.find_original(sql, part)
            if from_id is None:
                continue
        cell = _append_decision(sql, part)
        if cell:
            answered.append(cell)
            if from_id is not None:
                event_answers.record_original(sql, cell[0], from_id)
        appended.append(part)
    return appended


def _to_sent_uuids(rows: Sequence[tuple[str]]) -> list[str]:
    """Return the uuids that the client sent, each batch once (only uuids of batch parts contain a colon)."""
    return list(dict.fromkeys(uuid_.partition(":")[0] for (uuid_,) in rows))


def _find_problem(sql: sqlite_utils.Database, parts: Sequence[Decision]) -> str | None:
    problem = refusals.find_problem(sql, parts) or authorization.explain_denial(sql, SOURCES[parts[0].source].right)
    return problem or (_explain_foreign_undo(sql, parts[0]) if parts[0].action == "undo" else None)


def _explain_foreign_undo(sql: sqlite_utils.Database, undo_: Decision) -> str | None:
    target = _find_undo_target(sql, undo_)
    if target is None or (whose := _get_annotator(sql, target)) == undo_.annotator:
        return None
    refusal = authorization.explain_denial(sql, Right.REVIEW)
    return refusal and f"the decision that it takes back is {whose}'s, and {refusal}"


def undo(db: Database, annotator: str | None = None, by: str | None = None) -> list[dict[str, Any]]:
    """Undo the newest active decision, or its whole batch, except imports.

    Args:
        annotator: Whose decision to undo. None selects anyone's.
        by: Author of the undo. None selects the decision's annotator.

    Returns:
        One dict per undone decision: image, class, state, action, annotator.

    Raises:
        AnnotatorError: No decision is left to undo.
    """
    with db.writing(right=Right.ANSWER) as sql:
        target = _find_newest_active(sql, annotator)
        if target is None:
            whose, other = f" by {annotator}" if annotator else "", _find_newest_active(sql, None)
            message = f"There is no decision{whose} left to undo."
            if other is not None:
                message += f"\n    The newest is by {_get_annotator(sql, other)}; take it back with --anyone."
            raise AnnotatorError(message)
        by = by or _get_annotator(sql, target)
        undone = _append_undo(sql, Decision(str(uuid.uuid4()), "undo", by, "click"), target)
        marks = ",".join("?" * len(undone))
        return list(
            sql.query(
                f"""SELECT i.name AS image, c.name AS class, d.state, d.action, d.annotator FROM decision d
                JOIN image i ON i.id = d.image_id LEFT JOIN class c ON c.id = d.class_id
                WHERE d.id IN ({marks}) ORDER BY d.id""",
                undone,
            )
        )


def get_newest_decision_id(db: Database) -> int:
    return db.value(f"SELECT {NEWEST_DECISION_ID_SQL}")


def load_labels(db: Database, image_ids: Iterable[int]) -> list[Label]:
    ids = list(image_ids)
    rows = db.tuples(
        f"""SELECT l.image_id, l.class_id, l.state, d.source, d.annotator, d.decided_at
        FROM label l JOIN decision d ON d.id = l.decision_id
        WHERE l.image_id IN ({",".join("?" * len(ids))}) ORDER BY l.image_id, l.decision_id, l.class_id""",
        ids,
    )
    return list(map(Label._make, rows))


def load_all_labels(db: Database) -> list[Label]:
    return [
        Label(**row)
        for row in db.rows(
            """SELECT l.image_id, l.class_id, l.state, d.source, d.annotator, d.decided_at
            FROM label l JOIN decision d ON d.id = l.decision_id"""
        )
    ]


def load_label_cells(db: Database) -> tuple[list[tuple[int, int, int]], int]:
    """Return all labels as (image_id, class_id, state) and the newest decision id, in one snapshot."""
    with db.reading() as sql:
        newest = database.get_newest_decision_id(sql)
        return sql.execute("SELECT image_id, class_id, state FROM label").fetchall(), newest


def load_recent(db: Database, annotator: str, limit: int) -> list[dict[str, Any]]:
    """Return this annotator's newest active decisions, newest last."""
    return db.rows(f"{_SELECT_OWN_ACTIVE_SQL} LIMIT ?", [annotator, limit])[::-1]


def load_undoable(db: Database, annotator: str, limit: int, cells: int) -> list[Decision | Batch]:
    """Return the decisions that this annotator can undo, newest last.

    At most `limit` steps (decisions or batches) and `cells` cells, but always the complete newest step.
    """
    newest = [_to_decision(row) for row in db.rows(f"{_SELECT_OWN_ACTIVE_SQL} LIMIT ?", [annotator, cells + 1])]
    steps: dict[str, list[Decision]] = {}
    for decision in newest[:cells]:
        key = decision.batch if decision.action in (*CELL_ACTIONS, "flag") and decision.batch else decision.uuid
        steps.setdefault(key, []).append(decision)
    if len(newest) > cells and (cut_off := newest[cells].batch):
        steps.pop(cut_off, None)  # not all of its cells were read
        if not steps:
            whole = db.rows(
                f"{_SELECT_ACTIVE_SQL} AND d.batch = ? AND +d.annotator = ? ORDER BY d.id DESC", [cut_off, annotator]
            )
            steps = {cut_off: [_to_decision(row) for row in whole]}
    return [_to_undo_step(key, step[::-1]) for key, step in list(steps.items())[:limit]][::-1]


def _to_decision(row: dict[str, Any]) -> Decision:
    front_id = row.pop("front_id")
    return Decision(**row) if front_id is None else EventAnswer(**row, front_id=front_id)


def _to_undo_step(key: str, parts: list[Decision]) -> Decision | Batch:
    first = parts[0]
    if first.uuid == key or first.action == "flag":  # the flags of a batch are undone together, by any of them
        return first
    shared: dict[str, Any] = {
        "uuid": key,
        "annotator": first.annotator,
        "source": first.source,
        "run_id": first.run_id,
        "milliseconds": sum(part.milliseconds or 0 for part in parts),
    }
    cells = [_to_cell(part) for part in parts if not isinstance(part, EventAnswer)]
    copies = event_answers.extract_copies(parts)
    return EventBatch(**shared, cells=cells, copies=copies) if copies else Batch(**shared, cells=cells)


def _to_cell(decision: Decision) -> tuple[int, int, int | None, float | None]:
    assert decision.image_id is not None and decision.class_id is not None
    return decision.image_id, decision.class_id, decision.state, decision.score


def _split_batch(batch: Batch) -> list[Decision]:
    """Return one decision per cell and divide the milliseconds among them."""
    count, taken = len(batch.cells), refusals.normalize_time(batch.milliseconds)
    cells = [
        Decision(
            uuid=f"{batch.uuid}:{number}",
            action="clear" if state is None else "label",
            annotator=batch.annotator,
            source=batch.source,
            image_id=image_id,
            class_id=class_id,
            state=state,
            batch=batch.uuid,
            run_id=batch.run_id,
            score=score,
            milliseconds=None if taken is None else taken * (number + 1) // count - taken * number // count,
        )
        for number, (image_id, class_id, state, score) in enumerate(batch.cells)
    ]
    return [*cells, *event_answers.build_copy_decisions(batch)]


def _append_decision(sql: sqlite_utils.Database, decision: Decision) -> tuple[int, int, int] | None:
    """Store a decision and return (decision, image, class) of its answered cell, or None."""
    if decision.action == "undo":
        _append_undo(sql, decision, _find_undo_target(sql, decision))
        return None
    decision_id = _insert_decision(sql, decision, image_id=decision.image_id)
    if decision.action == "flag" and decision.image_id is not None:
        update_after_flag(sql, decision.image_id, decision_id)
    if decision.action in ("flag", "comment") or decision.image_id is None:
        return None
    answered = None
    if decision.action in CELL_ACTIONS:
        image_id, class_id, state, _ = _to_cell(decision)
        archive = ClassArchive(sql)
        answered = None if state is None else (decision_id, image_id, class_id)
        target = archive.find_target(class_id, decision_id)
        is_opinion = target is not None and _store_if_opinion(sql, decision, decision_id, target.class_id)
        if class_id in archive:  # a page still shows a class that was archived or merged meanwhile
            if target:
                rebuild_image(sql, image_id, decision_id)
            return answered
        if (is_opinion or is_vote(decision.source)) and _has_label_of_another(sql, decision, imported=is_opinion):
            before = True
        elif state is None:
            before = clear_label(sql, image_id, class_id)
        else:
            before = set_label(sql, image_id, class_id, state, decision_id)
        if implied_cells.has_implications(sql) and _is_closed(sql, image_id):
            rebuild_image(sql, image_id, decision_id)  # what "nothing else here" spares may be something else now
            return answered
        if before and decision.source != "import":
            update_disagreements(sql, image_id)
    elif decision.action == "done":
        close_image(sql, decision.image_id, decision_id)
    update_stage(sql, decision.image_id, decision_id)
    return answered


def _is_closed(sql: sqlite_utils.Database, image_id: int) -> bool:
    statement = "SELECT EXISTS (SELECT 1 FROM decision WHERE image_id = ? AND action = 'done')"
    return sql.execute(statement, [image_id]).fetchone()[0] == 1


def _store_if_opinion(sql: sqlite_utils.Database, decision: Decision, decision_id: int, class_id: int) -> bool:
    """Mark an answer to a disputed cell as a non-binding opinion, unless its annotator may review."""
    differ = "SELECT 1 FROM contradiction WHERE image_id = ? AND class_id = ?"
    if SOURCES[decision.source].blind or not sql.execute(differ, [decision.image_id, class_id]).fetchone():
        return False
    if authorization.explain_denial(sql, Right.REVIEW) is None:
        return False
    sql.execute("INSERT INTO opinion (decision_id) VALUES (?)", [decision_id])
    return True


def _has_label_of_another(sql: sqlite_utils.Database, decision: Decision, *, imported: bool) -> bool:
    statement = f"""SELECT CASE WHEN source = 'import' THEN {imported:d} ELSE annotator != ? END
        FROM label l JOIN decision d ON d.id = l.decision_id WHERE l.image_id = ? AND l.class_id = ?"""
    row = sql.execute(statement, [decision.annotator, decision.image_id, decision.class_id]).fetchone()
    return bool(row and row[0])


def _insert_decision(sql: sqlite_utils.Database, decision: Decision, **values: object) -> int:
    row = {
        "uuid": decision.uuid,
        **refusals.get_content(decision),
        "run_id": decision.run_id,
        "score": decision.score,
        "milliseconds": refusals.normalize_time(decision.milliseconds),
        "decided_at": time.time(),
    } | values
    names = ", ".join(row)
    return get_inserted_id(
        sql.execute(f"INSERT INTO decision ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    )


def _find_undo_target(sql: sqlite_utils.Database, decision: Decision) -> int | None:
    if decision.undoes is None:
        return _find_newest_active(sql, decision.annotator)
    row = sql.execute(f"SELECT id FROM decision WHERE uuid = ? {_IS_UNDOABLE_SQL}", [decision.undoes]).fetchone()
    if row is None:
        # Decisions that only share a batch have uuids of their own: "<batch>:0" means any of them.
        named = decision.undoes.removesuffix(":0")
        # Pages choose batch names, so another person's may be equal.
        statement = f"SELECT id FROM decision WHERE batch = ? {_IS_UNDOABLE_SQL} ORDER BY annotator != ?, id LIMIT 1"
        row = sql.execute(statement, [named, decision.annotator]).fetchone()
    return row[0] if row else None


def _get_annotator(sql: sqlite_utils.Database, decision_id: int) -> str:
    return sql.execute("SELECT annotator FROM decision WHERE id = ?", [decision_id]).fetchone()[0]


def _find_newest_active(sql: sqlite_utils.Database, annotator: str | None) -> int | None:
    row = sql.execute(
        f"""SELECT id FROM decision d WHERE {"annotator = ? AND" if annotator else ""} action != 'undo'
          AND source NOT IN ('import', 'merge') AND {NOT_UNDONE_SQL}
        ORDER BY id DESC LIMIT 1""",
        [annotator] if annotator else [],
    ).fetchone()
    return row[0] if row else None


def _append_undo(sql: sqlite_utils.Database, decision: Decision, target: int | None) -> list[int]:
    """Store an undo and return the undone decision ids.

    An undo without a target is stored too, so that a resend is recognized.
    """
    if target is None:
        _insert_decision(sql, decision, image_id=None)
        return []
    rows = sql.execute(
        f"""SELECT d.id, d.image_id, d.action FROM decision d, decision t WHERE t.id = ?
          AND (d.id = t.id OR (d.batch = t.batch AND d.annotator = t.annotator AND d.action != 'undo'))
          AND {NOT_UNDONE_SQL} ORDER BY d.id""",
        [target],
    ).fetchall()
    if not rows:  # taken back already, by another tab perhaps
        _insert_decision(sql, decision, image_id=None)
        return []
    newest_of_image: dict[int, int] = {}
    flagged: dict[int, int] = {}
    for number, (decision_id, image_id, action) in enumerate(rows):
        name = decision.uuid if number == 0 else f"{decision.uuid}:{number}"
        newest = _insert_decision(sql, decision, uuid=name, image_id=image_id, undoes=decision_id, batch=None)
        if action == "flag":
            flagged[image_id] = newest
        elif action != "comment":
            newest_of_image[image_id] = newest
    for image_id, newest in newest_of_image.items():
        rebuild_image(sql, image_id, newest)
    for image_id, newest in flagged.items():
        update_after_flag(sql, image_id, newest)
    return [row[0] for row in rows]
