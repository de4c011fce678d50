"""Images that a person is still to answer blind: nothing that is known of them is shown to that person before.

They wait for answers of several people (readings.py), or their answers are known (known_answers.py), and the person has
not been shown what is known of them (revealed.py). That somebody has answered is hidden, too. Whom this concerns is up
to whoever shows them: people with the right to review see all.
"""

from collections.abc import Sequence

from annotator.errors import Forbidden
from annotator.store.database.database import Database
from annotator.store.labels import revealed
from annotator.store.people import known_answers

AT_ONCE = 10_000  # ids in one SELECT


def hidden_from(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Those of these images that this person is still to answer blind. Looks each of them up, and none where there are
    no such images."""
    if not _are_some(db):
        return set()
    hidden: set[int] = set()
    for start in range(0, len(image_ids), AT_ONCE):
        some = [int(image_id) for image_id in image_ids[start : start + AT_ONCE]]
        hidden |= _hidden(db, annotator, ",".join("?" * len(some)), some)
    return hidden


def show(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Those of these images that are hidden, as `hidden_from` has them; that the person sees the others is noted, so
    that they are never asked about one of them blind."""
    hidden = hidden_from(db, annotator, image_ids)
    revealed.by_looking(db, annotator, [image_id for image_id in image_ids if image_id not in hidden])
    return hidden


def waits_for(db: Database, annotator: str) -> bool:
    """Whether some image is hidden from this person. Looks at no more of those that wait than they have been shown."""
    statement = """SELECT EXISTS (SELECT 1 FROM reading r WHERE r.due > 0
        AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = r.image_id AND annotator IN (?, ?)))"""
    return bool(db.value(statement, [annotator, revealed.EVERYBODY])) or bool(known_answers.hidden(db, annotator))


def all_hidden_from(db: Database, annotator: str) -> set[int]:
    """All images that this person is still to answer blind. Looks at every image that is chosen."""
    if not _are_some(db):
        return set()
    chosen = "SELECT image_id FROM reading WHERE due > 0 UNION SELECT image_id FROM known_answer"
    return _hidden(db, annotator, chosen, [])


def refuse_hidden(db: Database, annotator: str, image_id: int) -> None:
    """Raises Forbidden where this person is still to answer the image blind: for what shows predictions of one."""
    if hidden_from(db, annotator, [image_id]):
        raise Forbidden(
            f"What the model thinks of image {image_id} is hidden from {annotator} until they have answered it blind. "
            "Autopilot asks for it."
        )


def stamp(db: Database) -> tuple[int, int, float]:
    """What says, besides decisions, whether other images are hidden now."""
    ((version, count),) = db.tuples("SELECT n, (SELECT count(*) FROM known_answer) FROM reading_version")
    return version, count, known_answers.share(db)


def _are_some(db: Database) -> bool:
    statement = "SELECT EXISTS (SELECT 1 FROM reading WHERE due > 0) OR EXISTS (SELECT 1 FROM known_answer)"
    return bool(db.value(statement))


def _hidden(db: Database, annotator: str, which: str, ids: list[int]) -> set[int]:
    """which: ids of images, in SQL"""
    rows = db.tuples(
        f"""SELECT id FROM image WHERE id IN ({which}) AND (
            (EXISTS (SELECT 1 FROM reading WHERE image_id = image.id AND due > 0)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator IN (?, ?)))
            OR (? AND EXISTS (SELECT 1 FROM known_answer WHERE image_id = image.id)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator = ?)))""",
        [*ids, annotator, revealed.EVERYBODY, known_answers.share(db) > 0, annotator],
    )
    return {image_id for (image_id,) in rows}
