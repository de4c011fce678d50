"""The table `twin`: groups of near-duplicate images, found by the worker."""

import numpy as np

from annotator.store.database.database import Database

ROWS_PER_TRANSACTION = 5000  # rows written in one transaction: people's answers wait for it
GROUPED_SETTING = "twins_grouped"  # setting: the newest row of `appearance` that groups were made of


def save_groups(db: Database, image_ids: np.ndarray, firsts: np.ndarray) -> int:
    """Store the groups of all images, and return the number of changed rows.

    Args:
        image_ids: (N,) int64, ascending.
        firsts: (N,) int64, first image of each group, or its own id.
    """
    before = np.zeros(len(image_ids), np.int64)
    known = db.integer_rows("SELECT image_id, first_id FROM twin ORDER BY image_id")
    places = np.searchsorted(image_ids, known[:, 0])
    known, places = known[places < len(image_ids)], places[places < len(image_ids)]
    same = image_ids[places] == known[:, 0]
    before[places[same]] = known[same, 1]
    _, group, sizes = np.unique(firsts, return_inverse=True, return_counts=True)
    # Most images have no twin, and no row.
    changed = np.flatnonzero((before != firsts) & ((sizes[group] > 1) | (before > 0)))
    for start in range(0, len(changed), ROWS_PER_TRANSACTION):
        part = changed[start : start + ROWS_PER_TRANSACTION]
        rows = np.stack([image_ids[part], firsts[part]], 1).tolist()
        with db.writing(durable=False) as sql:
            sql.conn.executemany("INSERT OR REPLACE INTO twin (image_id, first_id) VALUES (?, ?)", rows)
    return len(changed)


def find_invalid_groups(db: Database) -> list[int]:
    """Return the images whose stored first image is not the first of its own group."""
    if db.get_setting(GROUPED_SETTING, 0) != db.value("SELECT coalesce(max(id), 0) FROM appearance"):
        return []
    rows = db.tuples(
        """SELECT t.image_id FROM twin t LEFT JOIN twin f ON f.image_id = t.first_id
        WHERE f.first_id IS NOT t.first_id ORDER BY t.image_id"""
    )
    return [image_id for (image_id,) in rows]


def delete_groups(db: Database) -> None:
    with db.writing() as sql:
        sql.execute("DELETE FROM twin")
        db.set_setting(GROUPED_SETTING, 0)


def find_near_duplicates(db: Database, image_id: int) -> list[int]:
    """Return the near-duplicates of an image, ascending."""
    rows = db.tuples(
        """SELECT o.image_id FROM twin t JOIN twin o ON o.first_id = t.first_id
        WHERE t.image_id = ? AND o.image_id != t.image_id ORDER BY o.image_id""",
        [image_id],
    )
    return [row[0] for row in rows]
