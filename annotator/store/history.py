"""Deriving an image's labels, stage and annotator disagreements from its decisions.

The tables `label` and `contradiction` and the column `image.stage` hold no information of their own: they follow from
the decisions that are not taken back.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlite_utils

from annotator.records import ABSENT, OF_A_CELL, UNSURE

UNTOUCHED, SKIPPED, LABELED, COMPLETE = range(4)  # image.stage


def set_label(sql: sqlite_utils.Database, image_id: int, class_id: int, state: int, decision_id: int) -> bool:
    """Make this decision's answer the label of the cell. Returns whether the cell had one before."""
    before = sql.execute("SELECT 1 FROM label WHERE image_id = ? AND class_id = ?", [image_id, class_id]).fetchone()
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [image_id, class_id, state, decision_id],
    )
    return before is not None


def clear_label(sql: sqlite_utils.Database, image_id: int, class_id: int) -> bool:
    """Take the label of a cell away, whoever gave it. Returns whether there was one."""
    deleted = sql.execute("DELETE FROM label WHERE image_id = ? AND class_id = ?", [image_id, class_id])
    return deleted.rowcount > 0


def close(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """ "Nothing else here": every class without an answer becomes absent."""
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) SELECT ?, id, ?, ? FROM class WHERE true
        ON CONFLICT (image_id, class_id) DO NOTHING""",
        [image_id, ABSENT, decision_id],
    )


def set_stage(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Set the image's stage from its labels; without any, by whether it was skipped."""
    answered = sql.execute("SELECT count(*) FROM label WHERE image_id = ?", [image_id]).fetchone()[0]
    if answered:
        classes = sql.execute("SELECT count(*) FROM class").fetchone()[0]
        stage = COMPLETE if answered >= classes else LABELED
    else:
        active = (row for row in _history(sql, image_id) if row["undone_by"] is None)
        stage = SKIPPED if any(row["action"] == "skip" for row in active) else UNTOUCHED
    # An untouched image returns to its place in the order, a skipped one queues behind those skipped earlier.
    since = 0 if stage == UNTOUCHED else decision_id
    sql.execute("UPDATE image SET stage = ?, stage_decision = ? WHERE id = ?", [stage, since, image_id])


def rebuild(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Rebuild the image's labels, stage and disagreements without the decisions that were taken back."""
    wanted = _cells(sql, image_id)
    rows = sql.execute("SELECT class_id, state, decision_id FROM label WHERE image_id = ?", [image_id]).fetchall()
    present = {class_id: (state, source) for class_id, state, source in rows}
    sql.conn.executemany(
        "DELETE FROM label WHERE image_id = ? AND class_id = ?",
        [(image_id, class_id) for class_id in present.keys() - wanted.keys()],
    )
    for class_id, answer in wanted.items():
        if present.get(class_id) != answer:
            set_label(sql, image_id, class_id, *answer)
    set_stage(sql, image_id, decision_id)
    set_disagreements(sql, image_id)


def set_disagreements(sql: sqlite_utils.Database, image_id: int) -> None:
    """Store on which cells of the image annotators disagree."""
    sql.execute("DELETE FROM contradiction WHERE image_id = ?", [image_id])
    sql.conn.executemany(
        "INSERT INTO contradiction (image_id, class_id, decision_id) VALUES (?, ?, ?)",
        [(image_id, class_id, newest) for class_id, (newest, _) in disagreements(sql, image_id).items()],
    )


def disagreements(sql: sqlite_utils.Database, image_id: int) -> dict[int, tuple[int, dict[str, int]]]:
    """The open disagreements of an image: class id -> the decision that caused it, and person -> present or absent.

    A disagreement begins when somebody's answer to a cell, explicit or by "nothing else here", differs from another
    person's. The next answer to that cell, whoever gives it and whatever it is, settles it: only that answer and later
    ones count from then on. Unsure and a cleared cell disagree with nobody, and imported labels are nobody's answers.
    """
    standing: dict[int, dict[str, int]] = {}
    caused_by: dict[int, int] = {}
    for decision_id, class_id, state, annotator in _answers(sql, image_id):
        if caused_by.pop(class_id, None) is not None:
            standing[class_id] = {}
        states = standing.setdefault(class_id, {})
        states.pop(annotator, None)
        if state not in (UNSURE, None):
            states[annotator] = state
        if len(set(states.values())) > 1:
            caused_by[class_id] = decision_id
    return {class_id: (newest, standing[class_id]) for class_id, newest in caused_by.items()}


def _answers(sql: sqlite_utils.Database, image_id: int) -> Iterator[tuple[int, int, int | None, str]]:
    """Answers of people that hold, oldest first: decision, class, state (None: cleared), person; a "done" answers
    several classes."""
    history = _history(sql, image_id)
    if len({row["annotator"] for row in history}) < 2:
        return
    classes = sql.execute("SELECT id, since_decision FROM class").fetchall()
    for row in history:
        if row["undone_by"] is not None or row["source"] == "import":
            continue
        if row["action"] in OF_A_CELL:
            yield row["id"], row["class_id"], row["state"], row["annotator"]
        elif row["action"] == "done":
            yield from ((row["id"], class_id, ABSENT, row["annotator"]) for class_id in _covered(history, row, classes))


def _cells(sql: sqlite_utils.Database, image_id: int) -> dict[int, tuple[int, int]]:
    """The image's labels by its decisions: class id -> state and the decision that gave it."""
    history = _history(sql, image_id)
    done = any(row["action"] == "done" and row["undone_by"] is None for row in history)
    classes = sql.execute("SELECT id, since_decision FROM class").fetchall() if done else []
    cells: dict[int, tuple[int, int]] = {}
    for row in history:
        if row["undone_by"] is not None:
            continue
        if row["action"] == "label":
            cells[row["class_id"]] = (row["state"], row["id"])
        elif row["action"] == "clear":
            cells.pop(row["class_id"], None)
        elif row["action"] == "done":
            for class_id in _covered(history, row, classes):
                cells.setdefault(class_id, (ABSENT, row["id"]))
    return cells


def _covered(history: Sequence[dict[str, Any]], done: dict[str, Any], classes: Iterable[tuple[int, int]]) -> list[int]:
    """The classes that a "nothing else here" answers; classes are (id, the newest decision when it was added)."""
    # Those that were open at the time, even if an answer of that time was taken back since.
    answered: set[int] = set()
    for other in history:
        if other["id"] < done["id"] and (other["undone_by"] is None or other["undone_by"] > done["id"]):
            if other["action"] == "label":
                answered.add(other["class_id"])
            elif other["action"] == "clear":
                answered.discard(other["class_id"])
    return [class_id for class_id, since in classes if since < done["id"] and class_id not in answered]


def _history(sql: sqlite_utils.Database, image_id: int) -> list[dict[str, Any]]:
    return list(
        sql.query(
            """SELECT d.id, d.action, d.class_id, d.state, d.source, d.annotator, u.id AS undone_by FROM decision d
            LEFT JOIN decision u ON u.undoes = d.id
            WHERE d.image_id = ? AND d.action IN ('label', 'clear', 'done', 'skip') ORDER BY d.id""",
            [image_id],
        )
    )
