"""Images that people set aside with a reason: a flag of the source "aside", which takes the image out of the work.

An image is set aside while its flag, a person's newest one that was not taken back, is of this source and has a note:
its stage is then ASIDE, which no queue asks for. Another flag, an empty one, or an undo brings it back with its
answers.
"""

from annotator.store.database import versions
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.images.stages import EXCLUDED

EXCLUSION_SOURCE = "aside"  # the source of a flag that takes its image out of the work
MAX_REASONS = 20  # of an export; further images are counted together


def count(db: Database) -> int:
    """Return the number of images that are set aside."""
    return db.value("SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'stage' AND one = ?", [EXCLUDED])


def load_image_ids(db: Database) -> set[int]:
    """Return the ids of the images that are set aside."""
    return set(db.integer_rows("SELECT id FROM image WHERE stage = ?", [EXCLUDED])[:, 0].tolist())


def count_settled_cells(db: Database) -> tuple[int, int, int, int]:
    """Return how many pairs of these images people answered, a model accepted, people ruled out, and answers imply."""
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
    """Return why images are set aside and how many for each reason, the most frequent first.

    Reasons that name the image that was kept ("twin of a.jpg") count as one.
    """
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
