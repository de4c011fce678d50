"""Reference images: complete images asked again to measure annotators. Their answers never change labels."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.images import image_lists
from annotator.store.images.stages import COMPLETE
from annotator.store.labels import answer_exposure

REFERENCE_SOURCE = "known"  # source of decisions on images with known answers
_SHARE_SETTING = "known_answer_share"  # setting: fraction of a person's actions that ask for known answers
MAX_SHARE = 0.5


@dataclass(frozen=True)
class ReferenceResult:
    """Counts of one annotator's answers to reference images."""

    annotator: str
    # answered images
    images: int
    # found, present: answered cells labeled present: those that the annotator answered present, and all of them
    found: int
    present: int
    # rejected, absent: answered cells labeled absent: those that the annotator answered absent, and all of them
    rejected: int
    absent: int


def get_share(db: Database) -> float:
    """Return the fraction of actions that show reference images."""
    return float(db.get_setting(_SHARE_SETTING, 0.0)) if count_images(db) else 0.0


def count_images(db: Database) -> int:
    return db.value("SELECT count(*) FROM known_answer")


def choose_images(db: Database, names: Sequence[str], share: float) -> int:
    """Replace the reference images and return their number.

    Args:
        names: Complete images only.
        share: Fraction of actions, 0 to MAX_SHARE.

    Raises:
        AnnotatorError: Images are unknown or incomplete, or `share` is out of bounds.
    """
    _check_share(share)
    ids = image_lists.resolve_image_names(db, names)
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
        answer_exposure.record_earlier_answers(sql, "SELECT image_id FROM known_answer")
    set_share(db, share)
    return len(ids)


def set_share(db: Database, share: float) -> None:
    """Set the fraction of actions showing reference images. Raises AnnotatorError if out of bounds."""
    _check_share(share)
    db.set_setting(_SHARE_SETTING, share)


def find_next_images(db: Database, annotator: str, excluded: Collection[int], limit: int) -> list[int]:
    """Return complete reference images unseen by this annotator, in random order."""
    rows = db.tuples(
        """SELECT k.image_id FROM known_answer k JOIN image i ON i.id = k.image_id
        WHERE i.problem = '' AND i.stage = ?
        AND NOT EXISTS (SELECT 1 FROM revealed v WHERE v.image_id = k.image_id AND v.annotator = ?)
        ORDER BY random() LIMIT ?""",
        [COMPLETE, annotator, limit + len(excluded)],
    )
    return [image_id for (image_id,) in rows if image_id not in excluded][:limit]


def find_hidden_images(db: Database, annotator: str) -> set[int]:
    """Return reference images unseen by this annotator, none if their share is 0."""
    if not get_share(db):
        return set()
    statement = """SELECT image_id FROM known_answer k
        WHERE NOT EXISTS (SELECT 1 FROM revealed v WHERE v.image_id = k.image_id AND v.annotator = ?)"""
    return {image_id for (image_id,) in db.tuples(statement, [annotator])}


def find_chosen_images(db: Database, image_ids: Collection[int]) -> set[int]:
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(f"SELECT image_id FROM known_answer WHERE image_id IN ({marks})", list(image_ids))
    return {image_id for (image_id,) in rows}


def load_results(db: Database) -> list[ReferenceResult]:
    """Return each annotator's first answers to reference images, including undone ones."""
    rows = db.tuples(
        f"""SELECT d.annotator, count(DISTINCT d.image_id), sum(l.state = 1 AND d.state = 1),
            sum(l.state = 1 AND d.state != 0), sum(l.state = -1 AND d.state = -1), sum(l.state = -1 AND d.state != 0)
        FROM known_answer k CROSS JOIN decision d ON d.image_id = k.image_id
        JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id
        WHERE d.source = ? AND d.action = 'label' AND {answer_exposure.IS_BLIND_DECISION_SQL}
        GROUP BY d.annotator ORDER BY d.annotator""",
        [REFERENCE_SOURCE],
    )
    return [ReferenceResult(*row) for row in rows]


def _check_share(share: float) -> None:
    if not 0 <= share <= MAX_SHARE:
        raise AnnotatorError(
            f"Known answers can be 0 to {MAX_SHARE:.0%} of what a person is asked, not {share * 100:g} %."
        )
