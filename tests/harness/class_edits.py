"""Answers before and after changes of classes, and all that a change and its undo may alter."""

import random
import uuid

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.store.classes import class_changes, class_history, classes
from annotator.store.labels import decisions

FOX, HERON, DEER = 1, 2, 3


def answer(db, image_id: int, class_id: int, state: int | None, by: str = "Ann") -> str:
    name = str(uuid.uuid4())
    action = "clear" if state is None else "label"
    saved = decisions.save(db, [Decision(name, action, by, "click", image_id, class_id, state)])
    assert saved.saved == [name], saved
    return name


def done(db, image_id: int, by: str = "Ann") -> None:
    assert not decisions.save(db, [Decision(str(uuid.uuid4()), "done", by, "done", image_id)]).refused


def labels(db, class_id: int) -> dict[int, int]:
    return {label.image_id: label.state for label in decisions.load_all_labels(db) if label.class_id == class_id}


def everything(db) -> dict[str, list]:
    """What a change of classes changes, and its undo sets back."""
    columns = "id, name, description, key, position, heading, colour, archived, merged_into"
    return {
        "classes": db.tuples(f"SELECT {columns} FROM class ORDER BY id"),
        "synonyms": db.tuples("SELECT * FROM synonym ORDER BY name"),
        "examples": db.tuples("SELECT * FROM example ORDER BY class_id, place"),
        "labels": db.tuples("SELECT image_id, class_id, state, decision_id FROM label ORDER BY 1, 2"),
        "stages": db.tuples("SELECT id, stage FROM image ORDER BY id"),
        "disagreements": db.tuples("SELECT image_id, class_id FROM contradiction ORDER BY 1, 2"),
    }


def change_at_random(db, rng: random.Random, alone: bool = True) -> None:
    """One thing that somebody does: mostly decisions, sometimes a change of classes.

    alone    nobody else changes classes meanwhile
    """
    by, image_id = rng.choice(["Ann", "Bob", "Cy"]), rng.randint(1, 6)
    ids = list(classes.load_class_names(db))
    kind = rng.choices(["label", "clear", "done", "skip", "import", "undo", "class"], [40, 8, 8, 3, 4, 14, 12])[0]
    if kind == "undo":
        decisions.save(db, [Decision(str(rng.random()), "undo", by, "click")])
    elif kind in ("label", "import"):
        source, state = "import" if kind == "import" else "click", rng.choice([1, 1, -1, 0])
        saved = decisions.save(db, [Decision(str(rng.random()), "label", by, source, image_id, rng.choice(ids), state)])
        assert not saved.refused
    elif kind == "clear":
        answer(db, image_id, rng.choice(ids), None, by)
    elif kind == "done":
        done(db, image_id, by)
    elif kind == "skip":
        decisions.save(db, [Decision(str(rng.random()), "skip", by, "click", image_id)])
    else:
        active, gone = (
            [one.id for one in of(db)] for of in (classes.load_active_classes, classes.load_archived_classes)
        )
        what = rng.choice(["merge", "merge", "archive", "restore", "restore", "undo", "undo", "split", "add"])
        try:
            if what == "merge" and len(active) > 2:
                *merged, into = rng.sample(active, rng.choice([2, 3]))
                class_changes.merge(db, by, merged, into, same=rng.random() < 0.5)
            elif what == "archive" and len(active) > 1:
                class_changes.archive(db, by, [rng.choice(active)])
            elif what == "restore" and gone:
                class_changes.restore(db, by, [rng.choice(gone)])
            elif what == "split" and active and len(ids) < 7:
                class_changes.split_class(db, by, rng.choice(active), f"new {len(ids)}")
            elif what == "add" and len(ids) < 7:
                classes.add_classes(db, [(f"new {len(ids)}", "")], by)
            elif what == "undo":
                held = [one.id for one in class_history.load_changes(db, 6) if one.kind != "undo" and not one.undone_by]
                class_history.undo_change(db, by, rng.choice([None, *held]))
        except AnnotatorError as error:
            expected = ("later changes", "No change", "first classes")
            assert not alone or any(words in str(error) for words in expected), error
