"""Cells (image, class) whose state follows from answers through class relations.

Implied cells are rows of `accepted` with the decision that they follow from, so no queue asks for them. Triggers
(schema/triggers.py) remove them with the answer, and a person's own answer replaces them. This module handles whole
images and the whole project.

"Nothing else here" is weaker than other implications. It spares classes that present classes imply, and the
classes of an exactly-one group while none of them is present.
"""

from collections.abc import Collection, Iterable

import numpy as np
import sqlite_utils

from annotator.records import ABSENT, PRESENT
from annotator.store.database.database import Database
from annotator.store.images.stages import COMPLETE, LABELED
from annotator.store.labels.archived_classes import COUNT_ACTIVE_CLASSES_SQL

# All cells that follow from labels: as the triggers derive them, for all images.
_IMPLIED_CELLS_SQL = """SELECT image_id, other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT l.image_id, m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l ON l.class_id = m.class_id AND l.state = m.state
        WHERE NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = l.image_id AND o.class_id = m.other_id)
        GROUP BY l.image_id, m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY image_id, other_id HAVING count(DISTINCT other_state) = 1"""
# Answers to cells whose other state follows from later answers of the same image. Each contradiction is found from both
# sides, so only the older answer is named.
_CONTRADICTED_ANSWERS_SQL = """SELECT o.image_id, o.class_id, o.state, o.decision_id, m.relation_id,
    min(l.class_id) AS from_id
    FROM implication m CROSS JOIN label l ON l.class_id = m.class_id AND l.state = m.state
    CROSS JOIN label o ON o.image_id = l.image_id AND o.class_id = m.other_id AND o.state = -m.other_state
    GROUP BY o.image_id, o.class_id, m.relation_id
    HAVING count(*) >= m.needed AND o.decision_id < min(l.decision_id)"""
# The same of the answers of one batch, by pairs. That all of a group are absent is no pair, and names no older answer.
_CONTRADICTED_BY_BATCH_SQL = """SELECT DISTINCT o.image_id, o.class_id, o.state, l.class_id, l.state
    FROM decision d JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id AND l.decision_id = d.id
    JOIN implication m ON m.class_id = l.class_id AND m.state = l.state AND m.needed = 1
    JOIN label o ON o.image_id = l.image_id AND o.class_id = m.other_id AND o.state = -m.other_state
    WHERE d.batch = ? AND o.decision_id < d.id"""


def has_implications(sql: sqlite_utils.Database) -> bool:
    """Return whether class relations imply any label."""
    return sql.execute("SELECT EXISTS (SELECT 1 FROM implication)").fetchone()[0] == 1


def find_spared_classes(sql: sqlite_utils.Database, present: Collection[int]) -> set[int]:
    """Return the classes that "nothing else here" leaves unanswered, given the present classes."""
    if not has_implications(sql):
        return set()
    marks = ",".join("?" * len(present))
    means = f"SELECT other_id FROM implication WHERE state = {PRESENT} AND other_state = {PRESENT}"
    implied = {row[0] for row in sql.execute(f"{means} AND class_id IN ({marks})", list(present)).fetchall()}
    is_shown = implied | set(present)
    groups: dict[int, set[int]] = {}
    rows = sql.execute("SELECT relation_id, class_id, other_id FROM implication WHERE state = -1 AND other_state = 1")
    for relation_id, class_id, other_id in rows.fetchall():
        groups.setdefault(relation_id, set()).update((class_id, other_id))
    return implied | {one for group in groups.values() if group.isdisjoint(is_shown) for one in group}


def count_in_image(sql: sqlite_utils.Database, image_id: int) -> int:
    statement = "SELECT count(*) FROM accepted WHERE image_id = ? AND decision_id NOT NULL"
    return sql.execute(statement, [image_id]).fetchone()[0]


def derive(sql: sqlite_utils.Database) -> None:
    """Rebuild implied cells and image stages after bulk changes, inside a transaction.

    Removes the labels that "nothing else here" gave to classes it must leave unanswered.
    """
    held = sql.execute("SELECT EXISTS (SELECT 1 FROM accepted WHERE decision_id NOT NULL)").fetchone()[0]
    if not held and not has_implications(sql):
        return
    sql.execute("DROP TABLE IF EXISTS temp.implied_before")
    sql.execute("CREATE TEMP TABLE implied_before AS SELECT DISTINCT image_id FROM accepted WHERE decision_id NOT NULL")
    sql.execute("DELETE FROM accepted WHERE decision_id NOT NULL")
    _remove_spared_labels(sql)
    sql.execute("DELETE FROM accepted WHERE decision_id NOT NULL")  # what triggers derived meanwhile
    sql.execute("DROP TABLE IF EXISTS temp.implied_now")
    sql.execute(f"CREATE TEMP TABLE implied_now AS {_IMPLIED_CELLS_SQL}")
    sql.execute(
        """DELETE FROM accepted WHERE EXISTS (SELECT 1 FROM temp.implied_now n
        WHERE n.image_id = accepted.image_id AND n.other_id = accepted.class_id)"""
    )
    sql.execute(
        """INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
        SELECT n.image_id, n.other_id, a.id, n.other_state, n.other_state > 0, n.decision_id
        FROM temp.implied_now n JOIN acceptance a ON a.relation_id = n.relation_id"""
    )
    sql.execute("INSERT INTO temp.implied_before SELECT DISTINCT image_id FROM temp.implied_now")
    _update_stages(sql)
    sql.execute("DROP TABLE temp.implied_now")
    sql.execute("DROP TABLE temp.implied_before")


def _remove_spared_labels(sql: sqlite_utils.Database) -> None:
    rest = """FROM label r JOIN decision d ON d.id = r.decision_id AND d.action = 'done'
        WHERE r.state = -1"""
    present = f"SELECT l.image_id, l.class_id FROM label l WHERE l.state = {PRESENT}"
    above = f"""SELECT r.image_id, r.class_id {rest} AND EXISTS (SELECT 1 FROM implication m JOIN label l
        ON l.image_id = r.image_id AND l.class_id = m.class_id AND l.state = {PRESENT}
        WHERE m.other_id = r.class_id AND m.state = {PRESENT} AND m.other_state = {PRESENT})"""
    # A group of which exactly one is present, and none is: neither answered nor implied to be.
    shown = f"""SELECT image_id, class_id FROM ({present}) UNION SELECT p.image_id, m.other_id FROM ({present}) p
        JOIN implication m ON m.class_id = p.class_id AND m.state = {PRESENT} AND m.other_state = {PRESENT}"""
    hollow = f"""SELECT r.image_id, r.class_id {rest} AND EXISTS (SELECT 1 FROM implication g
        WHERE g.state = {ABSENT} AND g.other_state = {PRESENT} AND g.class_id = r.class_id
        AND NOT EXISTS (SELECT 1 FROM temp.implied_shown s JOIN implication h ON h.relation_id = g.relation_id
            AND h.state = {ABSENT} AND h.other_state = {PRESENT} AND h.class_id = s.class_id
            WHERE s.image_id = r.image_id))"""
    sql.execute("DROP TABLE IF EXISTS temp.implied_shown")
    sql.execute(f"CREATE TEMP TABLE implied_shown AS {shown}")
    sql.execute("CREATE INDEX temp.implied_shown_image ON implied_shown (image_id, class_id)")
    cells = sql.execute(f"{above} UNION {hollow}").fetchall()
    sql.conn.executemany("DELETE FROM label WHERE image_id = ? AND class_id = ?", cells)
    images = {(image_id,) for image_id, _ in cells}
    sql.conn.executemany("INSERT INTO temp.implied_before VALUES (?)", sorted(images))
    sql.execute("DROP TABLE temp.implied_shown")


def _update_stages(sql: sqlite_utils.Database) -> None:
    (classes,) = sql.execute(COUNT_ACTIVE_CLASSES_SQL).fetchone()
    sql.execute(
        f"""UPDATE image SET stage = CASE WHEN
            (SELECT count(*) FROM label l WHERE l.image_id = image.id)
            + (SELECT count(*) FROM accepted a WHERE a.image_id = image.id AND a.decision_id NOT NULL) >= ?
            THEN {COMPLETE} ELSE {LABELED} END
        WHERE id IN (SELECT image_id FROM temp.implied_before) AND stage IN ({LABELED}, {COMPLETE})
            AND EXISTS (SELECT 1 FROM label l WHERE l.image_id = image.id)""",
        [classes],
    )


def count_by_state(db: Database) -> dict[str, int]:
    """Count the implied present and absent cells."""
    rows: dict[int, int] = dict(
        db.tuples("SELECT state, count(*) FROM accepted WHERE decision_id NOT NULL GROUP BY state")
    )
    return {"present": rows.get(PRESENT, 0), "absent": rows.get(ABSENT, 0)}


def load_cells(db: Database) -> np.ndarray:
    """Return implied cells: (n, 4) int64, image id, class id, state, causing decision."""
    return db.integer_rows("SELECT image_id, class_id, state, decision_id FROM accepted WHERE decision_id NOT NULL")


def find_contradicted_answers(sql: sqlite_utils.Database, limit: int = -1) -> list[tuple[int, int, int, int, int, int]]:
    """Return answers that conflict with implications of later answers (limit -1 for all).

    Returns:
        Tuples (image, class, state, decision, relation, implying class).
    """
    return sql.execute(f"{_CONTRADICTED_ANSWERS_SQL} LIMIT ?", [limit]).fetchall()


def find_answers_contradicted_by(db: Database, batches: Iterable[str]) -> list[tuple[int, int, int, int, int]]:
    """Return older answers that conflict with implications of these batches (uuids as sent).

    Returns:
        Tuples (image, class, state, batch class, batch state).
    """
    with db.reading() as sql:
        if not has_implications(sql):
            return []
        return [row for batch in batches for row in sql.execute(_CONTRADICTED_BY_BATCH_SQL, [batch]).fetchall()]


def add_implied_classes(sql: sqlite_utils.Database, class_ids: Iterable[int]) -> set[int]:
    """Return these classes and those they can imply."""
    ids = list(class_ids)
    marks = ",".join("?" * len(ids))
    rows = sql.execute(f"SELECT DISTINCT other_id FROM implication WHERE class_id IN ({marks})", ids)
    return {*ids, *(row[0] for row in rows.fetchall())}
