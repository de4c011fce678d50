"""The changes of an import, one row per decision, computed before the project is locked.

Under the lock, only images decided since are recomputed.
"""

from collections import Counter
from dataclasses import dataclass, field

import sqlite_utils

from annotator.records import ABSENT
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.versions import get_class_version
from annotator.store.imports.staged_cells import CELLS_SQL, IMPLIED_LABELS_SQL, covers_all_classes
from annotator.store.labels.archived_classes import COUNT_ACTIVE_CLASSES_SQL

ALL_IMAGES_SQL = "1"
TOUCHED_IMAGES_SQL = "image_id IN (SELECT image_id FROM staged.touched)"
# The number of active classes, with those that the import adds or restores.
_COUNT_ACTIVE_CLASSES_SQL = f"""({COUNT_ACTIVE_CLASSES_SQL}) + (SELECT count(*) FROM staged.target
    WHERE class_id IS NULL OR class_id IN (SELECT id FROM class WHERE archived = 1))"""


@dataclass
class ImportChanges:
    """Totals of the rows in staged.change, which are the decisions that an import will add."""

    # SQL condition on existing decisions `d` that may be replaced
    over: str
    version: int
    newest: int
    # the source names every class
    is_whole: bool
    # answers, replaced, completed: rows that decide a cell, replace an answer, or mean "nothing else here"
    answers: int = 0
    replaced: int = 0
    completed: int = 0
    # (target, state) -> added labels, except of "nothing else here"
    labels: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])


def prepare(sql: sqlite_utils.Database, db: Database, over: str, version: int | None = None) -> ImportChanges:
    """Compute all rows of `ImportChanges`, after names are resolved and cells built.

    Args:
        sql: Has the staged source attached.
    """
    version = get_class_version(db) if version is None else version
    changes = ImportChanges(over, version, get_newest_decision_id(sql), covers_all_classes(sql))
    sql.execute("DELETE FROM staged.change")
    if not changes.is_whole:  # the source lacks a class, so only its own classes become absent
        sql.execute(
            f"""INSERT INTO staged.cell SELECT z.image_id, t.id, {ABSENT}, NULL, 0, 0, 0, 1
            FROM staged.closed z CROSS JOIN staged.target t WHERE true ON CONFLICT DO NOTHING"""
        )
    _insert_changes(sql, changes, ALL_IMAGES_SQL)
    _count_changes(sql, changes, ALL_IMAGES_SQL, 1)
    return changes


def recompute_touched(sql: sqlite_utils.Database, changes: ImportChanges) -> None:
    """Recompute the rows of images decided since `changes.newest`, under the lock."""
    sql.execute("DELETE FROM staged.touched")
    touched = sql.execute(
        "INSERT INTO staged.touched SELECT DISTINCT image_id FROM decision WHERE id > ? AND image_id NOT NULL",
        [changes.newest],
    ).rowcount
    changes.newest = get_newest_decision_id(sql)
    if touched:
        _count_changes(sql, changes, TOUCHED_IMAGES_SQL, -1)
        sql.execute(f"DELETE FROM staged.change WHERE {TOUCHED_IMAGES_SQL}")
        _insert_changes(sql, changes, TOUCHED_IMAGES_SQL)
        _count_changes(sql, changes, TOUCHED_IMAGES_SQL, 1)


def _insert_changes(sql: sqlite_utils.Database, changes: ImportChanges, only: str) -> None:
    """Append rows for images matching `only`: explicit answers, implied absences, "nothing else here"."""
    over = changes.over
    add = "INSERT INTO staged.change (image_id, target, state, held, given)"
    sql.execute(
        f"""{add} SELECT x.image_id, x.target, x.state, l.state, x.given
        {CELLS_SQL} LEFT JOIN label l ON l.image_id = x.image_id AND l.class_id = t.class_id
            LEFT JOIN decision d ON d.id = l.decision_id
        WHERE NOT x.is_filled AND x.image_id > 0 AND (l.state IS NULL OR (l.state != x.state AND ({over})))
            AND {only.replace("image_id", "x.image_id", 1)} ORDER BY x.image_id, x.target"""
    )
    if not changes.is_whole:
        return
    of_closed = only.replace("image_id", "z.image_id", 1)
    sql.execute(
        f"""{add} SELECT z.image_id, t.id, {ABSENT}, l.state, NULL
        {IMPLIED_LABELS_SQL} AND l.state != {ABSENT} AND ({over}) AND {of_closed} ORDER BY z.image_id, t.id"""
    )
    # Filled cells are nobody's answer, so an image with such cells gets an answer for each class, no "done".
    sql.execute(
        f"""{add} SELECT z.image_id, t.id, {ABSENT}, NULL, NULL
        FROM (SELECT DISTINCT z.image_id FROM staged.closed z JOIN staged.cell f ON f.image_id = z.image_id
            WHERE f.is_filled AND {of_closed}) z CROSS JOIN staged.target t
        WHERE NOT EXISTS (SELECT 1 FROM staged.cell x WHERE x.image_id = z.image_id AND x.target = t.id)
            AND NOT EXISTS (SELECT 1 FROM label l WHERE l.image_id = z.image_id AND l.class_id = t.class_id)
        ORDER BY z.image_id, t.id"""
    )
    sql.execute(
        f"""{add} SELECT z.image_id, NULL, NULL, NULL, NULL FROM staged.closed z WHERE z.image_id > 0 AND {of_closed}
        AND NOT EXISTS (SELECT 1 FROM staged.cell f WHERE f.image_id = z.image_id AND f.is_filled)
        AND (SELECT count(*) FROM label l WHERE l.image_id = z.image_id)
            + (SELECT count(*) FROM staged.cell x JOIN staged.target t ON t.id = x.target WHERE x.image_id = z.image_id
                AND NOT EXISTS (SELECT 1 FROM label l WHERE l.image_id = z.image_id AND l.class_id = t.class_id))
            < {_COUNT_ACTIVE_CLASSES_SQL} ORDER BY z.image_id"""
    )


def _count_changes(sql: sqlite_utils.Database, changes: ImportChanges, only: str, sign: int) -> None:
    rows = sql.execute(
        f"SELECT target, state, held, count(*) FROM staged.change WHERE {only} GROUP BY target, state, held"
    ).fetchall()
    for target, state, held, many in rows:
        if target is None:
            changes.completed += sign * many
            continue
        changes.answers += sign * many
        changes.labels[target, state] += sign * many
        if held is not None:
            changes.replaced += sign * many
            changes.labels[target, held] -= sign * many
