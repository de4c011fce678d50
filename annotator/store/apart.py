"""Tallies for people from whom something is hidden: without the images that are answered blind.

Two counts, one before and one after somebody else's blind answer, would tell it. So members below the right to review
are counted nothing of the images that wait for blind answers, which look untouched, and no label of those with known
answers, whether or not they have answered them: what they see follows from what is hidden from nobody. Triggers keep
what is to be taken out.
"""

import sqlite_utils

from annotator.roles import Right
from annotator.store.database import authorization as acting
from annotator.store.database.database import Database

IMAGES = "SELECT image_id FROM kept_apart"  # those that are left out, in SQL
COUNTED = f"""SELECT 'apart' AS kind, class_id AS one, state AS two, count(*) AS n FROM label
    WHERE image_id IN ({IMAGES}) GROUP BY class_id, state
    UNION ALL SELECT 'apart stage', stage, '', count(*) FROM image
    WHERE id IN (SELECT image_id FROM reading WHERE due > 0) GROUP BY stage"""
"""What the triggers count, in SQL."""
TRIGGERS = ("apart_label_added", "apart_label_changed", "apart_label_removed", "apart_image_moved")


def sees_all(db: Database) -> bool:
    """Whether whoever this thread acts for (acting.py) may see what others have answered blind."""
    return acting.problem(db.sql, Right.REVIEW) is None


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
