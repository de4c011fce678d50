"""Excluded images, which have a flag with source "aside" and a reason.

Another flag or an undo includes the image again.
"""

from annotator.store.database import versions
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.images.stages import EXCLUDED

EXCLUSION_SOURCE = "aside"  # the source of a flag that takes its image out of the work
MAX_REASONS = 20  # of an export; further images are counted together


def count(db: Database) -> int:
    return db.value("SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'stage' AND one = ?", [EXCLUDED])


def load_image_ids(db: Database) -> set[int]:
    return set(db.integer_rows("SELECT id FROM image WHERE stage = ?", [EXCLUDED])[:, 0].tolist())


def count_settled_cells(db: Database) -> tuple[int, int, int, int]:
    """Return excluded images' numbers of cells answered, auto-accepted, absent everywhere and implied."""
    if not count(db):
        return 0, 0, 0, 0
    with db.reading() as sql:
        key = (
            get_newest_decision_id(sql),
            db.value("SELECT coalesce(max(id), 0) FROM acceptance"),
            versions.get_class_version(db),
        )
    return db.caches.get("pairs set aside", key, lambda: _count_settled_cells(db), 2)


def _count_settled_cells(db: Database) -> tuple[int, int, int, int]:
    answered = db.value(
        "SELECT count(*) FROM image i CROSS JOIN label l ON l.image_id = i.id WHERE i.stage = ?", [EXCLUDED]
    )
    accepted, ruled_out, implied = db.tuples(
        """SELECT coalesce(sum(c.annotator = '' AND a.decision_id IS NULL), 0), coalesce(sum(c.annotator != ''), 0),
            coalesce(sum(a.decision_id NOT NULL), 0) FROM image i
        CROSS JOIN accepted a ON a.image_id = i.id JOIN acceptance c ON c.id = a.acceptance_id WHERE i.stage = ?""",
        [EXCLUDED],
    )[0]
    return answered, accepted, ruled_out, implied


def count_by_reason(db: Database) -> list[tuple[str, int]]:
    """Return (reason, number of excluded images), most frequent first."""
    rows = db.tuples(
        f"""SELECT CASE WHEN note LIKE 'twin of %' THEN 'twin of another image' ELSE note END, count(*) FROM (
            SELECT (SELECT note FROM decision d INDEXED BY decision_flag WHERE action = 'flag' AND source = ?
                AND image_id = i.id AND {NOT_UNDONE_SQL}
                ORDER BY id DESC LIMIT 1) AS note FROM image i WHERE stage = ?)
        GROUP BY 1 ORDER BY 2 DESC, 1""",
        [EXCLUSION_SOURCE, EXCLUDED],
    )
    rest = sum(images for _, images in rows[MAX_REASONS:])
    return [*rows[:MAX_REASONS], *([("other reasons", rest)] if rest else [])]
