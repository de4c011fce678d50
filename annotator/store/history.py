"""What an image's decisions add up to: its labels, and how far people are with it.

`label` and `image.stage` hold nothing of their own: both follow from the decisions that are not taken back.
"""

import sqlite_utils

from annotator.records import ABSENT

UNTOUCHED, SKIPPED, LABELED, COMPLETE = range(4)  # image.stage


def set_label(sql: sqlite_utils.Database, image_id: int, class_id: int, state: int, decision_id: int) -> None:
    """This decision's answer is the cell's from now on."""
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [image_id, class_id, state, decision_id],
    )


def close(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Nothing else here: every class without an answer is absent."""
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) SELECT ?, id, ?, ? FROM class WHERE true
        ON CONFLICT (image_id, class_id) DO NOTHING""",
        [image_id, ABSENT, decision_id],
    )


def set_stage(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """How far people are with the image, from its labels; without any, whether it was skipped."""
    answered = sql.execute("SELECT count(*) FROM label WHERE image_id = ?", [image_id]).fetchone()[0]
    if answered:
        classes = sql.execute("SELECT count(*) FROM class").fetchone()[0]
        stage = COMPLETE if answered >= classes else LABELED
    else:
        active = (row for row in _history(sql, image_id) if row["undone_by"] is None)
        stage = SKIPPED if any(row["action"] == "skip" for row in active) else UNTOUCHED
    # An untouched image goes back to its place in the order, a skipped one behind those skipped earlier.
    since = 0 if stage == UNTOUCHED else decision_id
    sql.execute("UPDATE image SET stage = ?, stage_decision = ? WHERE id = ?", [stage, since, image_id])


def rebuild(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """The image's labels anew from its decisions, as if the ones taken back had never been."""
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


def _cells(sql: sqlite_utils.Database, image_id: int) -> dict[int, tuple[int, int]]:
    """What the image's decisions say now: class id -> state and the decision that gave it."""
    history = _history(sql, image_id)
    done = any(row["action"] == "done" and row["undone_by"] is None for row in history)
    classes = sql.execute("SELECT id, since_decision FROM class").fetchall() if done else []
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
    return cells


def _history(sql: sqlite_utils.Database, image_id: int) -> list[dict]:
    return list(
        sql.query(
            """SELECT d.id, d.action, d.class_id, d.state, u.id AS undone_by FROM decision d
            LEFT JOIN decision u ON u.undoes = d.id
            WHERE d.image_id = ? AND d.action IN ('label', 'done', 'skip') ORDER BY d.id""",
            [image_id],
        )
    )
