"""Tallies for people from whom something is hidden: without the images that are answered blind.

Two counts, one before and one after somebody else's blind answer, would tell it. So members below the right to review
are counted nothing of the images that wait for blind answers, which look untouched, and no label of those with known
answers, whether or not they have answered them: what they see follows from what is hidden from nobody. Triggers keep
what is to be taken out.
"""

from collections.abc import Collection

import sqlite_utils

from annotator.roles import Right
from annotator.store.database import authorization as acting
from annotator.store.database.database import Database

IMAGES = "SELECT image_id FROM kept_apart"  # those that are left out, in SQL
BESIDE = """NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = d.image_id AND r.due > 0)
    AND NOT EXISTS (SELECT 1 FROM known_answer k WHERE k.image_id = d.image_id)"""
"""Of a row d with an image_id, in SQL: it is about none of them."""
COUNTED = f"""SELECT 'apart' AS kind, class_id AS one, state AS two, count(*) AS n FROM label
    WHERE image_id IN ({IMAGES}) GROUP BY class_id, state
    UNION ALL SELECT 'apart stage', stage, '', count(*) FROM image
    WHERE id IN (SELECT image_id FROM reading WHERE due > 0) GROUP BY stage"""
"""What the triggers count, in SQL."""
TRIGGERS = ("apart_label_added", "apart_label_changed", "apart_label_removed", "apart_image_moved")


def sees_all(db: Database) -> bool:
    """Whether whoever this thread acts for (acting.py) may see what others have answered blind."""
    return acting.problem(db.sql, Right.REVIEW) is None


def beside(db: Database) -> str:
    """A condition in SQL on rows d with an image_id: those of which something may be shown to whoever this thread acts
    for, in lists and counts that tell what is known of images."""
    return "1" if sees_all(db) else BESIDE


def among(db: Database, image_ids: Collection[int]) -> set[int]:
    """Those of these images that are left out for whoever this thread acts for."""
    if sees_all(db):
        return set()
    marks = ",".join("?" * len(image_ids))
    statement = f"SELECT image_id FROM (SELECT id AS image_id FROM image WHERE id IN ({marks})) d WHERE NOT ({BESIDE})"
    rows = db.tuples(statement, list(image_ids))
    return {image_id for (image_id,) in rows}


def labels(db: Database) -> dict[tuple[int, int], int]:
    """Class id and state -> how many labels are to be taken out of a count."""
    rows = db.tuples("SELECT one, two, n FROM tally WHERE kind = 'apart'")
    return {(class_id, state): n for class_id, state, n in rows}


def stages(db: Database) -> dict[int, int]:
    """Stage -> how many images that wait are in it."""
    return dict(db.tuples("SELECT one, n FROM tally WHERE kind = 'apart stage'"))


def recount(sql: sqlite_utils.Database) -> None:
    """Count anew, after labels and stages were written without triggers."""
    sql.execute("DELETE FROM tally WHERE kind IN ('apart', 'apart stage')")
    sql.execute(f"INSERT INTO tally (kind, one, two, n) {COUNTED}")
