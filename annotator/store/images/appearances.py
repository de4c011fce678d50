"""The table `appearance`, with one row of measures per image.

Rows are replaced under new ids, which in-memory readers follow.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import sqlite_utils

from annotator.store.database.database import Database
from annotator.store.pictures.appearance import APPEARANCE_COLUMNS, Appearance

_COLUMN_LIST_SQL = ", ".join(APPEARANCE_COLUMNS)


def save(db: Database, measured: Iterable[tuple[int, Appearance]]) -> None:
    """Store appearance measures (brightness, sharpness, ...) of images that have none."""
    rows = [(image_id, *appearance.to_row()) for image_id, appearance in measured]
    if not rows:
        return
    marks = ", ".join("?" * (1 + len(APPEARANCE_COLUMNS)))
    # What a power cut undoes, the worker measures again.
    with db.writing(durable=False) as sql:
        sql.conn.executemany(f"INSERT OR IGNORE INTO appearance (image_id, {_COLUMN_LIST_SQL}) VALUES ({marks})", rows)


def delete(sql: sqlite_utils.Database, image_ids: Iterable[int]) -> None:
    """Delete the appearance measures of images whose displayed pixels have changed."""
    sql.conn.executemany("DELETE FROM appearance WHERE image_id = ?", [(image_id,) for image_id in image_ids])


def find_unmeasured(db: Database, after: int, limit: int) -> list[int]:
    """Return up to `limit` ids of unmeasured readable images above `after`, ascending."""
    rows = db.tuples(
        """SELECT i.id FROM image i WHERE i.id > ? AND i.problem = ''
        AND NOT EXISTS (SELECT 1 FROM appearance a WHERE a.image_id = i.id) ORDER BY i.id LIMIT ?""",
        [after, limit],
    )
    return [image_id for (image_id,) in rows]


def load_hashes(db: Database, image_ids: Sequence[int] | np.ndarray) -> dict[int, int]:
    """Return image id -> difference hash of measured images."""
    wanted = set(np.asarray(image_ids).tolist())
    return {row[0]: row[1] for row in db.tuples("SELECT image_id, hash FROM appearance") if row[0] in wanted}
