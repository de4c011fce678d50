"""Known answers: complete images that everybody is asked once more, to see how well they answer.

What a person says of them never changes a label, and is no disagreement. It is compared with the labels as they are
now: when those are corrected, the comparison follows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.images import lists as image_lists
from annotator.store.labels import revealed
from annotator.store.labels.derivation import COMPLETE

SOURCE = "known"  # of such decisions
_SHARE = "known_answer_share"  # setting: which part of a person's actions they are
MOST_SHARE = 0.5


@dataclass(frozen=True)
class Known:
    """How one person answered them.

    Attributes:
        images: How many.
        found, present: Of the cells labeled present, how many the person called present, and how many there are.
        rejected, absent: The same for absent.
    """

    annotator: str
    images: int
    found: int
    present: int
    rejected: int
    absent: int


def share(db: Database) -> float:
    """Which part of a person's actions asks for known answers, while there are some they have not seen."""
    return float(db.setting(_SHARE, 0.0)) if count(db) else 0.0


def count(db: Database) -> int:
    """How many images are chosen."""
    return db.value("SELECT count(*) FROM known_answer")


def choose(db: Database, names: Sequence[str], part: float) -> int:
    """Mix in these images, in place of those chosen before. Returns how many they are.

    Args:
        names: As in image_lists.named; each must be complete: every class answered.
        part: Of each person's actions, 0 to MOST_SHARE.

    Raises:
        AnnotatorError: Naming all images that are unknown, or not complete.
    """
    _check(part)
    ids = image_lists.named(db, names)
    marks = ",".join("?" * len(ids))
    found = db.tuples(f"SELECT name, stage FROM image WHERE id IN ({marks}) ORDER BY name", ids)
    if incomplete := [name for name, stage in found if stage != COMPLETE]:
        shown = ", ".join(incomplete[:10]) + (f" and {len(incomplete) - 10:,} more" if len(incomplete) > 10 else "")
        raise AnnotatorError(
            f"{len(incomplete):,} of {len(ids):,} images are not complete, so their answers are not known: {shown}.\n"
            "    Answer every class of them first."
        )
    with db.writing() as sql:
        sql.execute("DELETE FROM known_answer")
        sql.conn.executemany("INSERT INTO known_answer (image_id) VALUES (?)", [(image_id,) for image_id in ids])
        revealed.by_earlier_answers(sql, "SELECT image_id FROM known_answer")
    set_share(db, part)
    return len(ids)


def set_share(db: Database, part: float) -> None:
    """Change how often they are asked; 0: no more. Raises AnnotatorError for a number out of bounds."""
    _check(part)
    db.set_setting(_SHARE, part)


def next_for(db: Database, annotator: str, but: Collection[int], limit: int) -> list[int]:
    """Images whose answers are known, complete still, of which this person has answered nothing; in no order."""
    rows = db.tuples(
        """SELECT k.image_id FROM known_answer k JOIN image i ON i.id = k.image_id
        WHERE i.problem = '' AND i.stage = ?
        AND NOT EXISTS (SELECT 1 FROM revealed v WHERE v.image_id = k.image_id AND v.annotator = ?)
        ORDER BY random() LIMIT ?""",
        [COMPLETE, annotator, limit + len(but)],
    )
    return [image_id for (image_id,) in rows if image_id not in but][:limit]


def hidden(db: Database, annotator: str) -> set[int]:
    """Those of which this person has not been shown what is known, while they may be asked."""
    if not share(db):
        return set()
    statement = """SELECT image_id FROM known_answer k
        WHERE NOT EXISTS (SELECT 1 FROM revealed v WHERE v.image_id = k.image_id AND v.annotator = ?)"""
    return {image_id for (image_id,) in db.tuples(statement, [annotator])}


def chosen_among(db: Database, image_ids: Collection[int]) -> set[int]:
    """Those of these images that are chosen."""
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(f"SELECT image_id FROM known_answer WHERE image_id IN ({marks})", list(image_ids))
    return {image_id for (image_id,) in rows}


def results(db: Database) -> list[Known]:
    """How each person first answered those chosen now, by name, also where they took that back; "unsure", said or
    labeled, counts nowhere."""
    rows = db.tuples(
        f"""SELECT d.annotator, count(DISTINCT d.image_id), sum(l.state = 1 AND d.state = 1),
            sum(l.state = 1 AND d.state != 0), sum(l.state = -1 AND d.state = -1), sum(l.state = -1 AND d.state != 0)
        FROM known_answer k CROSS JOIN decision d ON d.image_id = k.image_id
        JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id
        WHERE d.source = ? AND d.action = 'label' AND {revealed.SAID_BLIND}
        GROUP BY d.annotator ORDER BY d.annotator""",
        [SOURCE],
    )
    return [Known(*row) for row in rows]


def _check(part: float) -> None:
    if not 0 <= part <= MOST_SHARE:
        raise AnnotatorError(
            f"Known answers can be 0 to {MOST_SHARE:.0%} of what a person is asked, not {part * 100:g} %."
        )
