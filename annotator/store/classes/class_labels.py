"""Bulk label changes for archived, restored or merged classes, with the same result as deriving each image."""

import json
import time
from collections.abc import Collection, Sequence

import sqlite_utils

from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.database.decision_sql import NOT_UNDONE_SQL, build_not_undone_sql
from annotator.store.images.stages import COMPLETE, EXCLUDED, LABELED
from annotator.store.labels import auto_accepted
from annotator.store.labels.archived_classes import COUNT_ACTIVE_CLASSES_SQL, ClassArchive
from annotator.store.labels.derivation import (
    build_replayed_sql,
    insert_newest_answers,
    rebuild_images,
    update_disagreements,
)

MAX_IMAGES_REBUILT_SINGLY = 2_000  # images that are rebuilt one by one rather than all of a class at once


_EXPLICIT_ANSWERS_SQL = f"""SELECT d.image_id, max(d.id) AS id, max({build_replayed_sql("d")}) AS is_replayed
    FROM decision d WHERE d.class_id = :class AND d.action IN ('label', 'clear') AND {NOT_UNDONE_SQL}
    GROUP BY d.image_id"""

_COVERED_CELLS_SQL = f"""SELECT d.image_id, :class, {ABSENT}, min(d.id) FROM decision d
    JOIN class c ON c.id = :class LEFT JOIN explicit e ON e.image_id = d.image_id
    WHERE d.action = 'done' AND {NOT_UNDONE_SQL} AND d.id > c.since_decision
    AND (e.id IS NULL OR (d.id > e.id AND (SELECT action FROM decision WHERE id = e.id) = 'clear'))
    AND NOT EXISTS (SELECT 1 FROM class_away a WHERE a.class_id = :class
        AND d.id > a.since_decision AND d.id <= a.until_decision)
    AND (SELECT o.action FROM decision o LEFT JOIN decision u ON u.undoes = o.id
        WHERE o.image_id = d.image_id AND o.class_id = :class AND o.action IN ('label', 'clear') AND o.id < d.id
        AND (u.id IS NULL OR u.id > d.id) ORDER BY o.id DESC LIMIT 1) IS NOT 'label'
    GROUP BY d.image_id"""

# The images on which annotators may disagree about a class: one person said present, and another said absent, either
# of the class or, earlier, of all open classes ("nothing else here").
_DISPUTED_IMAGES_SQL = f"""SELECT DISTINCT d.image_id FROM decision d
    WHERE d.class_id = :class AND d.action = 'label' AND d.state = {PRESENT} AND d.source != 'import' AND
    {NOT_UNDONE_SQL}
    AND EXISTS (SELECT 1 FROM decision o WHERE o.image_id = d.image_id AND o.annotator != d.annotator
        AND o.source != 'import' AND {build_not_undone_sql("o.id")}
        AND ((o.action = 'label' AND o.class_id = :class AND o.state = {ABSENT})
            OR (o.action = 'done' AND (o.id < d.id OR EXISTS (SELECT 1 FROM decision c WHERE c.image_id = d.image_id
                AND c.class_id = :class AND (c.action = 'clear' OR c.id < o.id
                    AND NOT {build_not_undone_sql("c.id")}))))))"""

_MERGED_CELLS_SQL = f"""WITH b AS (
        SELECT image_id, max(state = {PRESENT}) AS present, max(state = {ABSENT}) AS absent,
            max(state = {UNSURE}) AS unsure
        FROM label WHERE class_id IN (SELECT value FROM json_each(:from)) GROUP BY image_id),
    given AS (
        SELECT b.image_id, a.state AS before, CASE WHEN present THEN {PRESENT} WHEN absent AND :same THEN {ABSENT}
            WHEN unsure THEN {UNSURE} END AS state
        FROM b LEFT JOIN label a ON a.image_id = b.image_id AND a.class_id = :into)
    {{}} FROM given
    WHERE (state = {PRESENT} AND before IS NOT {PRESENT}) OR (state != {PRESENT} AND before IS NULL)"""
COUNT_MERGED_SQL = _MERGED_CELLS_SQL.format(
    f"""SELECT coalesce(sum(state = {PRESENT}), 0), coalesce(sum(state = {ABSENT}), 0),
    coalesce(sum(state = {UNSURE}), 0), coalesce(sum(state = {PRESENT} AND before = {ABSENT}), 0)"""
)
"""With :from (JSON list of class ids), :into, :same: how many cells merging answers present, absent, unsure; and how
many of those now present were absent."""
_INSERT_MERGED_SQL = _MERGED_CELLS_SQL.format(
    """INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, batch, decided_at)
    SELECT :batch || ':' || (row_number() OVER (ORDER BY image_id) - 1), 'label', image_id, :into, state, 'merge', :by,
        :batch, :at"""
)


def remove_labels(sql: sqlite_utils.Database, class_id: int) -> None:
    """Remove the labels, disagreements, auto-accepted cells and leases of a class when it is archived."""
    moment = time.time()
    for state in (PRESENT, ABSENT):
        auto_accepted.withdraw(sql, class_id, state, "the class was archived", moment)
    for table in ("label", "contradiction", "lease"):
        sql.execute(f"DELETE FROM {table} WHERE class_id = ?", [class_id])


def restore_labels(sql: sqlite_utils.Database, class_id: int) -> None:
    """Derive a class's missing labels and disagreements from its decisions."""
    sql.execute("DROP TABLE IF EXISTS temp.explicit")
    sql.execute(f"CREATE TEMP TABLE explicit AS {_EXPLICIT_ANSWERS_SQL}", {"class": class_id})
    sql.execute("CREATE UNIQUE INDEX temp.explicit_image ON explicit (image_id)")
    insert_newest_answers(sql, "FROM temp.explicit e CROSS JOIN decision d ON d.id = e.id WHERE true", {})
    sql.execute(
        f"INSERT INTO label (image_id, class_id, state, decision_id) {_COVERED_CELLS_SQL} ON CONFLICT DO NOTHING",
        {"class": class_id},
    )
    replayed = sql.execute("SELECT image_id FROM temp.explicit WHERE is_replayed").fetchall()
    sql.execute("DROP TABLE temp.explicit")
    rebuild_images(sql, (image_id for (image_id,) in replayed))
    for (image_id,) in sql.execute(_DISPUTED_IMAGES_SQL, {"class": class_id}).fetchall():
        update_disagreements(sql, image_id)


def insert_merged_answers(
    sql: sqlite_utils.Database, from_ids: Sequence[int], into_id: int, same: bool, batch: str, by: str
) -> None:
    """Store answers for the class `into_id` that repeat the labels of the classes merged into it."""
    values = {"from": json.dumps(list(from_ids)), "into": into_id, "same": same, "batch": batch, "by": by}
    sql.execute(_INSERT_MERGED_SQL, values | {"at": time.time()})
    answered = sql.execute(
        """SELECT l.image_id FROM decision d JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id
        WHERE d.batch = ?""",
        [batch],
    ).fetchall()
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id)
        SELECT image_id, class_id, state, id FROM decision WHERE batch = ?
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [batch],
    )
    for (image_id,) in answered:
        update_disagreements(sql, image_id)


def undo_merged_answers(sql: sqlite_utils.Database, into_id: int, batch: str, name: str, by: str) -> None:
    """Undo the decisions of `insert_merged_answers` by decisions "<name>:0", "<name>:1", ..."""
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, undoes, source, annotator, decided_at)
        SELECT :name || ':' || (row_number() OVER (ORDER BY id) - 1), 'undo', image_id, id, 'merge', :by, :at
        FROM decision d WHERE batch = :batch AND action = 'label' AND {NOT_UNDONE_SQL}""",
        {"name": name, "by": by, "at": time.time(), "batch": batch},
    )
    image_ids = sql.execute(
        "SELECT image_id FROM decision WHERE batch = ? LIMIT ?", [batch, MAX_IMAGES_REBUILT_SINGLY + 1]
    ).fetchall()
    if len(image_ids) > MAX_IMAGES_REBUILT_SINGLY:
        for table in ("label", "contradiction"):
            sql.execute(f"DELETE FROM {table} WHERE class_id = ?", [into_id])
        restore_labels(sql, into_id)
        image_ids = [(image_id,) for image_id in find_merged_images(sql, ClassArchive(sql), [into_id])]
    rebuild_images(sql, (image_id for (image_id,) in image_ids))


def update_stages(sql: sqlite_utils.Database) -> None:
    """Update image stages after classes were archived or restored."""
    classes = sql.execute(COUNT_ACTIVE_CLASSES_SQL).fetchone()[0]
    reached = f"CASE WHEN n >= :classes THEN {COMPLETE} ELSE {LABELED} END"
    sql.execute(
        f"""WITH answers AS (SELECT image_id, count(*) AS n, max(decision_id) AS newest FROM label GROUP BY image_id)
        UPDATE image SET stage = {reached},
            stage_decision = CASE WHEN stage >= {LABELED} THEN stage_decision ELSE newest END
        FROM answers WHERE image_id = image.id AND stage NOT IN ({reached}, {EXCLUDED})""",
        {"classes": classes},
    )
    # An untouched image returns to its place in the order, a skipped one to where it was skipped.
    sql.execute(
        f"""UPDATE image SET stage = newest > 0, stage_decision = newest FROM (
            SELECT id AS image_id, coalesce((SELECT max(id) FROM decision d
                WHERE d.image_id = image.id AND d.action = 'skip' AND {NOT_UNDONE_SQL}), 0) AS newest
            FROM image WHERE stage IN ({LABELED}, {COMPLETE})
                AND NOT EXISTS (SELECT 1 FROM label WHERE image_id = image.id))
        WHERE image_id = image.id"""
    )


def find_merged_images(sql: sqlite_utils.Database, archive: ClassArchive, class_ids: Collection[int]) -> set[int]:
    """Return images with decisions about a merged class that now count for one of `class_ids`."""
    image_ids = set[int]()
    for source, after in archive.find_merged_sources(class_ids):
        rows = sql.execute(
            "SELECT image_id FROM decision WHERE id > ? AND class_id = ? AND action IN ('label', 'clear')",
            [after, source],
        )
        image_ids |= {row[0] for row in rows.fetchall()}
    return image_ids
