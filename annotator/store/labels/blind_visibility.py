"""Counts for members without the right to review, which must not reveal blind answers.

They omit labels of reference images and of images that wait for overlap answers.
"""

from collections.abc import Collection

import sqlite_utils

from annotator.roles import Right
from annotator.store.database import authorization
from annotator.store.database.database import Database

HIDDEN_IMAGES_SQL = "SELECT image_id FROM kept_apart"  # SQL: the images that are left out
IS_VISIBLE_IMAGE_SQL = """NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = d.image_id AND r.due > 0)
    AND NOT EXISTS (SELECT 1 FROM known_answer k WHERE k.image_id = d.image_id)"""
"""Of a row d with an image_id, in SQL: it is about none of them."""
HIDDEN_TALLIES_SQL = f"""SELECT 'apart' AS kind, class_id AS one, state AS two, count(*) AS n FROM label
    WHERE image_id IN ({HIDDEN_IMAGES_SQL}) GROUP BY class_id, state
    UNION ALL SELECT 'apart stage', stage, '', count(*) FROM image
    WHERE id IN (SELECT image_id FROM reading WHERE due > 0) GROUP BY stage"""
"""What the triggers count, in SQL."""
TALLY_TRIGGERS = ("apart_label_added", "apart_label_changed", "apart_label_removed", "apart_image_moved")


def can_see_all(db: Database) -> bool:
    """Return whether the current member may see blind answers."""
    return authorization.explain_denial(db.sql, Right.REVIEW) is None


def build_visible_condition(db: Database) -> str:
    """Return an SQL condition on rows `d` with image ids visible to the current member."""
    return "1" if can_see_all(db) else IS_VISIBLE_IMAGE_SQL


def find_hidden_images(db: Database, image_ids: Collection[int]) -> set[int]:
    """Return those of `image_ids` that the current member's counts omit."""
    if can_see_all(db):
        return set()
    marks = ",".join("?" * len(image_ids))
    statement = (
        f"SELECT image_id FROM (SELECT id AS image_id FROM image WHERE id IN ({marks})) d WHERE NOT "
        f"({IS_VISIBLE_IMAGE_SQL})"
    )
    rows = db.tuples(statement, list(image_ids))
    return {image_id for (image_id,) in rows}


def load_hidden_label_counts(db: Database) -> dict[tuple[int, int], int]:
    """Return (class id, state) -> number of labels to subtract from an annotator's counts."""
    rows = db.tuples("SELECT one, two, n FROM tally WHERE kind = 'apart'")
    return {(class_id, state): n for class_id, state, n in rows}


def load_hidden_stage_counts(db: Database) -> dict[int, int]:
    """Return image stage -> number of its images that wait for blind answers of several annotators."""
    return dict(db.tuples("SELECT one, n FROM tally WHERE kind = 'apart stage'"))


def recount_hidden(sql: sqlite_utils.Database) -> None:
    """Recount the stored numbers of hidden labels and images, after writes without triggers."""
    sql.execute("DELETE FROM tally WHERE kind IN ('apart', 'apart stage')")
    sql.execute(f"INSERT INTO tally (kind, one, two, n) {HIDDEN_TALLIES_SQL}")
