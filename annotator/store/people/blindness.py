"""Images that an annotator must still answer blind, with their data hidden.

They wait for overlap answers or are reference images, and the annotator has not seen their labels.
"""

from collections.abc import Sequence

from annotator.errors import Forbidden
from annotator.store.database.database import Database
from annotator.store.labels import answer_exposure
from annotator.store.people import reference_answers

IDS_PER_QUERY = 10_000  # ids in one SELECT


def find_hidden_images(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Return the `image_ids` that this annotator must still answer blind."""
    if not _has_blind_images(db):
        return set()
    hidden: set[int] = set()
    for start in range(0, len(image_ids), IDS_PER_QUERY):
        some = [int(image_id) for image_id in image_ids[start : start + IDS_PER_QUERY]]
        hidden |= _load_hidden_images(db, annotator, ",".join("?" * len(some)), some)
    return hidden


def reveal_visible_images(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Return the `image_ids` whose labels this annotator must not see yet, and record the others as seen.

    Seen images are never given for blind answers.
    """
    hidden = find_hidden_images(db, annotator, image_ids)
    answer_exposure.record_looking(db, annotator, [image_id for image_id in image_ids if image_id not in hidden])
    return hidden


def has_hidden_images(db: Database, annotator: str) -> bool:
    statement = """SELECT EXISTS (SELECT 1 FROM reading r WHERE r.due > 0
        AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = r.image_id AND annotator IN (?, ?)))"""
    return bool(db.value(statement, [annotator, answer_exposure.EVERYBODY])) or bool(
        reference_answers.find_hidden_images(db, annotator)
    )


def find_all_hidden_images(db: Database, annotator: str) -> set[int]:
    if not _has_blind_images(db):
        return set()
    chosen = "SELECT image_id FROM reading WHERE due > 0 UNION SELECT image_id FROM known_answer"
    return _load_hidden_images(db, annotator, chosen, [])


def check_not_hidden(db: Database, annotator: str, image_id: int) -> None:
    if find_hidden_images(db, annotator, [image_id]):
        raise Forbidden(
            f"What the model thinks of image {image_id} is hidden from {annotator} until they have answered it blind. "
            "Autopilot asks for it."
        )


def get_change_key(db: Database) -> tuple[int, int, float]:
    """Return a cache key that changes with the hidden images, except through decisions."""
    ((version, count),) = db.tuples("SELECT n, (SELECT count(*) FROM known_answer) FROM reading_version")
    return version, count, reference_answers.get_share(db)


def _has_blind_images(db: Database) -> bool:
    statement = "SELECT EXISTS (SELECT 1 FROM reading WHERE due > 0) OR EXISTS (SELECT 1 FROM known_answer)"
    return bool(db.value(statement))


def _load_hidden_images(db: Database, annotator: str, which: str, ids: list[int]) -> set[int]:
    """Return the hidden images among those selected by the SQL `which`."""
    rows = db.tuples(
        f"""SELECT id FROM image WHERE id IN ({which}) AND (
            (EXISTS (SELECT 1 FROM reading WHERE image_id = image.id AND due > 0)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator IN (?, ?)))
            OR (? AND EXISTS (SELECT 1 FROM known_answer WHERE image_id = image.id)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator = ?)))""",
        [*ids, annotator, answer_exposure.EVERYBODY, reference_answers.get_share(db) > 0, annotator],
    )
    return {image_id for (image_id,) in rows}
