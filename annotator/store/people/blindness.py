"""Images that a person is still to answer blind: nothing that is known of them is shown to that person before.

Such images wait for answers of several people (overlap.py) or have known answers (known_answers.py), and the person has
not been shown what is known of them (revealed.py). That others have answered is hidden, too. Callers decide for whom to
hide images: people with the right to review see everything.
"""

from collections.abc import Sequence

from annotator.errors import Forbidden
from annotator.store.database.database import Database
from annotator.store.labels import revealed
from annotator.store.people import known_answers

AT_ONCE = 10_000  # ids in one SELECT


def hidden_from(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Return those `image_ids` that this person is still to answer blind.

    Looks up each image, unless no image of the project is answered blind.
    """
    if not _are_some(db):
        return set()
    hidden: set[int] = set()
    for start in range(0, len(image_ids), AT_ONCE):
        some = [int(image_id) for image_id in image_ids[start : start + AT_ONCE]]
        hidden |= _hidden(db, annotator, ",".join("?" * len(some)), some)
    return hidden


def show(db: Database, annotator: str, image_ids: Sequence[int]) -> set[int]:
    """Return those `image_ids` that are hidden from this person, and record that the person sees the others.

    Images that a person has seen are never given to them to answer blind.
    """
    hidden = hidden_from(db, annotator, image_ids)
    revealed.by_looking(db, annotator, [image_id for image_id in image_ids if image_id not in hidden])
    return hidden


def waits_for(db: Database, annotator: str) -> bool:
    """Return whether any image is hidden from this person.

    Of the waiting images, reads at most one more than the person has been shown.
    """
    statement = """SELECT EXISTS (SELECT 1 FROM reading r WHERE r.due > 0
        AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = r.image_id AND annotator IN (?, ?)))"""
    return bool(db.value(statement, [annotator, revealed.EVERYBODY])) or bool(known_answers.hidden(db, annotator))


def all_hidden_from(db: Database, annotator: str) -> set[int]:
    """Return all images that this person is still to answer blind. Reads every chosen image."""
    if not _are_some(db):
        return set()
    chosen = "SELECT image_id FROM reading WHERE due > 0 UNION SELECT image_id FROM known_answer"
    return _hidden(db, annotator, chosen, [])


def refuse_hidden(db: Database, annotator: str, image_id: int) -> None:
    """Refuse to show predictions of an image that this person is still to answer blind.

    Raises:
        Forbidden: The image is hidden from the person.
    """
    if hidden_from(db, annotator, [image_id]):
        raise Forbidden(
            f"What the model thinks of image {image_id} is hidden from {annotator} until they have answered it blind. "
            "Autopilot asks for it."
        )


def stamp(db: Database) -> tuple[int, int, float]:
    """Return a value that changes when, other than by decisions, the set of hidden images may have changed."""
    ((version, count),) = db.tuples("SELECT n, (SELECT count(*) FROM known_answer) FROM reading_version")
    return version, count, known_answers.share(db)


def _are_some(db: Database) -> bool:
    statement = "SELECT EXISTS (SELECT 1 FROM reading WHERE due > 0) OR EXISTS (SELECT 1 FROM known_answer)"
    return bool(db.value(statement))


def _hidden(db: Database, annotator: str, which: str, ids: list[int]) -> set[int]:
    """Return the hidden images among those that `which` selects (image ids in SQL, with `ids` as its parameters)."""
    rows = db.tuples(
        f"""SELECT id FROM image WHERE id IN ({which}) AND (
            (EXISTS (SELECT 1 FROM reading WHERE image_id = image.id AND due > 0)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator IN (?, ?)))
            OR (? AND EXISTS (SELECT 1 FROM known_answer WHERE image_id = image.id)
            AND NOT EXISTS (SELECT 1 FROM revealed WHERE image_id = image.id AND annotator = ?)))""",
        [*ids, annotator, revealed.EVERYBODY, known_answers.share(db) > 0, annotator],
    )
    return {image_id for (image_id,) in rows}
