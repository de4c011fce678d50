"""What is undone leaves no trace: labels, disagreements, accepted cells and class keys are as before."""

import itertools

import numpy as np

from annotator.records import ABSENT, PRESENT, Batch, Decision
from annotator.store.classes import class_changes, class_history
from annotator.store.database.database import Database
from annotator.store.imports import past_imports
from annotator.store.labels import auto_accepted, decisions
from annotator.store.labels.auto_accepted import NewAcceptance
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import EXACTLY_ONE, IS_A, Declaration
from annotator.store.upkeep import consistency

FOX, HERON, DEER = 1, 2, 3
uuids = (f"uuid-{number}" for number in itertools.count())


def answer(db: Database, by: str, class_id: int, state: int, source: str = "click", image_id: int = 1) -> str:
    uuid = next(uuids)
    sent = Batch(uuid, by, source, [(image_id, class_id, state, None)])
    assert decisions.save(db, [sent]).saved == [uuid]
    return uuid


def send(db: Database, action: str, by: str, **values: object) -> None:
    assert not decisions.save(db, [Decision(next(uuids), action, by, "click", **values)]).refused  # type: ignore


def read_labels(db: Database, image_id: int = 1) -> dict[int, int]:
    return {label.class_id: label.state for label in decisions.load_labels(db, [image_id])}


def read_disagreements(db: Database) -> list[tuple[int, int]]:
    return db.tuples("SELECT image_id, class_id FROM contradiction")


def accept(db: Database, class_id: int, image_ids: list[int], annotator: str) -> None:
    scores = np.full(len(image_ids), 0.1)
    ids = np.array(image_ids)
    assert auto_accepted.accept(db, "b", NewAcceptance(class_id, ABSENT, 0, 1, 0.9, 0.9, 99, 0, ids, scores, annotator))


def test_archived_class_keeps_its_label_when_another_person_answered_blind_later(db):
    answer(db, "Ann", FOX, PRESENT)
    answer(db, "Ben", FOX, ABSENT, source="reading")
    class_changes.archive(db, "Ann", [FOX])
    class_history.undo_change(db, "Ann")
    assert read_labels(db) == {FOX: PRESENT}
    assert consistency.find_problems(db) == []


def test_undo_of_an_import_keeps_the_label_that_a_blind_answer_contradicts(db, annotator, project, tmp_path):
    answer(db, "Ann", FOX, PRESENT)
    answer(db, "Ben", FOX, ABSENT, source="reading")
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,fox,absent\n")
    annotator("import", project, tmp_path / "labels.csv", "--conflicts", "replace", "--yes")
    assert read_labels(db) == {FOX: ABSENT}
    past_imports.undo(db, past_imports.load_imports(db)[0].id, "Ann")
    assert read_labels(db) == {FOX: PRESENT}
    assert consistency.find_problems(db) == []


def test_relation_ends_the_disagreement_of_a_complete_image_and_its_undo_restores_it(db):
    answer(db, "Ann", FOX, PRESENT)
    answer(db, "Ann", HERON, ABSENT)
    send(db, "done", "Ann", image_id=1)
    answer(db, "Ben", DEER, PRESENT)
    assert read_disagreements(db) == [(1, DEER)], "Ann's 'nothing else here' means that there is no deer"
    declared_relations.declare(db, [Declaration(IS_A, (FOX, DEER))], "Ann")  # now it says nothing about the deer
    assert read_disagreements(db) == [] == consistency.find_problems(db)
    declared_relations.undo(db, "Ann")
    assert read_disagreements(db) == [(1, DEER)]
    assert consistency.find_problems(db) == []


def test_import_closes_the_group_that_nothing_else_here_left_open(db, annotator, project, tmp_path):
    declared_relations.declare(db, [Declaration(EXACTLY_ONE, (FOX, HERON), "animal")], "Ann")
    answer(db, "Ann", DEER, PRESENT)
    send(db, "done", "Ann", image_id=1)
    assert read_labels(db) == {DEER: PRESENT}, "exactly one of the group is present, and nobody said which"
    (tmp_path / "labels.csv").write_text("image,label\n00.jpg,fox\n")
    annotator("import", project, tmp_path / "labels.csv", "--yes")
    assert read_labels(db) == {DEER: PRESENT, FOX: PRESENT, HERON: ABSENT}
    assert consistency.find_problems(db) == []


def test_undo_of_an_answer_returns_its_cell_to_the_model_or_the_ruling(db):
    accept(db, FOX, [1, 2], annotator="Ann")  # ruled out
    accept(db, HERON, [1, 2], annotator="")  # by a model
    cells = set(db.tuples("SELECT image_id, class_id, state FROM accepted"))
    answer(db, "Ben", FOX, PRESENT)
    answer(db, "Ben", HERON, PRESENT)
    assert len(db.tuples("SELECT 1 FROM accepted")) == 2
    send(db, "undo", "Ben")
    send(db, "undo", "Ben")
    assert set(db.tuples("SELECT image_id, class_id, state FROM accepted")) == cells
    assert consistency.find_problems(db) == []


def test_cell_of_a_withdrawn_acceptance_stays_open_after_the_undo_of_its_answer(db):
    accept(db, FOX, [1, 2], annotator="Ann")
    answer(db, "Ben", FOX, PRESENT)
    auto_accepted.withdraw_batch(db, "b", "undone")
    send(db, "undo", "Ben")
    assert db.tuples("SELECT * FROM accepted") == []


def test_class_keys_return_when_changes_are_undone_in_another_order(db):
    keys = db.tuples("SELECT id, key FROM class ORDER BY id")
    merge = class_changes.merge(db, "Ann", [FOX], HERON, same=True)  # frees the key of fox
    key = class_changes.edit(db, "Ann", {HERON: {"key": keys[0][1]}})
    assert key is not None
    class_history.undo_change(db, "Ann", merge.id)
    class_history.undo_change(db, "Ann", key.id)
    assert db.tuples("SELECT id, key FROM class ORDER BY id") == keys
