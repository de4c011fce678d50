"""Answers of people, stored as pages store them."""

import uuid

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions

WORDS = {"+": 1, "-": -1, "?": 0}


def answer_cell(
    db: Database, image_id: int, class_id: int, state: int = 1, annotator: str = "Ann", source: str = "click"
) -> str:
    """Store one answer, and return its uuid."""
    one = Decision(str(uuid.uuid4()), "label", annotator, source, image_id=image_id, class_id=class_id, state=state)
    assert not decisions.save(db, [one]).refused
    return one.uuid


def say(db, *words: str, image_id: int = 1, class_id: int = 1) -> None:
    """ "A+" is Ann with present, "B-" Bob with absent, "C?" Cid with unsure, "A." Ann with nothing else here; a small
    letter is an answer in an audit, where nobody sees another's."""
    for word in words:
        who = {"A": "Ann", "B": "Bob", "C": "Cid", "I": "import"}[word[0].upper()]
        if word[1] == ".":
            one = Decision(str(uuid.uuid4()), "done", who, "done", image_id)
        else:
            source = "import" if who == "import" else "audit" if word[0].islower() else "click"
            one = Decision(str(uuid.uuid4()), "label", who, source, image_id, class_id, WORDS[word[1]])
        assert not decisions.save(db, [one]).refused


def put_aside(db, *image_ids: int, reason: str = "blurred", batch: str = "aside") -> None:
    flags = [
        Decision(f"{batch}-{image_id}", "flag", "Ann", "aside", image_id, note=reason, batch=batch)
        for image_id in image_ids
    ]
    assert not decisions.save(db, flags).refused
