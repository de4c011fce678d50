"""Record of which annotators have seen the labels of blind images.

Blind images are for reference or overlap. An image stays blind for an annotator until they answer it or, once it no
longer waits for them, view its labels. Records are permanent.
"""

from collections.abc import Collection

import sqlite_utils

from annotator.roles import Right
from annotator.store.database.database import Database, get_newest_decision_id

EVERYBODY = ""
IDS_PER_QUERY = 10_000  # ids in one SELECT
IS_BLIND_DECISION_SQL = """d.id <= coalesce(
    (SELECT decision_id FROM revealed WHERE image_id = d.image_id AND annotator = d.annotator), d.id)"""
"""Of a decision d, in SQL: nothing was shown to its giver before."""
_BLIND_IMAGES_SQL = "SELECT image_id FROM reading UNION ALL SELECT image_id FROM known_answer"


def record_answering(sql: sqlite_utils.Database, annotator: str, image_ids: Collection[int]) -> None:
    """Record the blind ones of these images as no longer blind for the annotator who answered them."""
    sql.execute(
        f"""INSERT OR IGNORE INTO revealed (image_id, annotator, decision_id)
        SELECT id, ?, ? FROM image WHERE id IN ({",".join("?" * len(image_ids))})
        AND (EXISTS (SELECT 1 FROM reading WHERE image_id = image.id)
        OR EXISTS (SELECT 1 FROM known_answer WHERE image_id = image.id))""",
        [annotator, get_newest_decision_id(sql), *image_ids],
    )


def record_looking(db: Database, annotator: str, image_ids: Collection[int]) -> None:
    """Record the blind ones of these images as no longer blind for the annotator who sees their labels."""
    ids = [int(image_id) for image_id in image_ids]
    if db.read_only or not db.value(f"SELECT EXISTS ({_BLIND_IMAGES_SQL})"):
        return
    new: list[int] = []
    for start in range(0, len(ids), IDS_PER_QUERY):
        some = ids[start : start + IDS_PER_QUERY]
        rows = db.tuples(
            f"""SELECT id FROM image WHERE id IN ({",".join("?" * len(some))})
            AND (EXISTS (SELECT 1 FROM reading WHERE image_id = image.id)
            OR EXISTS (SELECT 1 FROM known_answer WHERE image_id = image.id))
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator = ?)""",
            [*some, annotator],
        )
        new += [image_id for (image_id,) in rows]
    if new:
        with db.writing(durable=False, right=Right.LOOK) as sql:
            _insert_rows(sql, [(image_id, annotator) for image_id in new])


def record_earlier_answers(sql: sqlite_utils.Database, chosen: str) -> None:
    """Record annotators who answered the chosen images earlier as not blind (`chosen`: SQL that selects image ids)."""
    sql.execute(
        f"""INSERT OR IGNORE INTO revealed (image_id, annotator, decision_id)
        SELECT DISTINCT image_id, annotator, ? FROM decision WHERE image_id IN ({chosen})
        AND action IN ('label', 'clear', 'done') AND source != 'import'""",
        [get_newest_decision_id(sql)],
    )


def record_for_everybody(sql: sqlite_utils.Database, image_ids: Collection[int]) -> None:
    """Record that all annotators see the labels of these images."""
    _insert_rows(sql, [(image_id, EVERYBODY) for image_id in image_ids])


def _insert_rows(sql: sqlite_utils.Database, rows: list[tuple[int, str]]) -> None:
    newest = get_newest_decision_id(sql)
    sql.conn.executemany(
        "INSERT OR IGNORE INTO revealed (image_id, annotator, decision_id) VALUES (?, ?, ?)",
        [(*row, newest) for row in rows],
    )
