"""Relations of classes: what answers imply is derived, taken back, and never a decision."""

import csv
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.files.hierarchy import read_hierarchy
from annotator.exchange.project_setup import set_up_project
from annotator.records import Batch, Decision
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.project_progress import load_progress
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, decisions, implied_cells
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declaration
from annotator.store.upkeep import consistency

NAMES = ("animal", "dog", "spaniel", "cat", "day", "night")
PETS = (  # dog and spaniel and cat are animals; a dog is no cat; it is day or night
    (IS_A, ("dog", "animal"), ""),
    (IS_A, ("spaniel", "dog"), ""),
    (IS_A, ("cat", "animal"), ""),
    (AT_MOST_ONE, ("dog", "cat"), "pet"),
    (EXACTLY_ONE, ("day", "night"), "time"),
)
uuids = (f"uuid-{number}" for number in itertools.count())


@pytest.fixture
def pets(tmp_path: Path, photos: Path) -> Database:
    """A project with the classes of NAMES, and no relations yet."""
    set_up_project(tmp_path / "pets", images_folder=photos, class_text="\n".join(NAMES))
    return Database(tmp_path / "pets")


def ids(db: Database) -> dict[str, int]:
    return {name: class_.id for name, class_ in classes.load_classes_by_name(db).items()}


def declared(db: Database, relations: tuple = PETS) -> list[Declaration]:
    id_of = ids(db)
    return [Declaration(kind, tuple(id_of[name] for name in names), group) for kind, names, group in relations]


def answer(db: Database, name: str, state: int | None, image_id: int = 1, by: str = "Ann") -> str:
    uuid = next(uuids)
    action = "clear" if state is None else "label"
    saved = decisions.save(db, [Decision(uuid, action, by, "click", image_id, ids(db)[name], state)])
    assert saved.saved == [uuid], saved.refused
    return uuid


def done(db: Database, image_id: int = 1) -> None:
    assert decisions.save(db, [Decision(next(uuids), "done", "Ann", "done", image_id)]).saved


def labels(db: Database, image_id: int = 1) -> dict[str, int]:
    names = {class_id: name for name, class_id in ids(db).items()}
    return {names[label.class_id]: label.state for label in decisions.load_labels(db, [image_id])}


def follow(db: Database, image_id: int = 1) -> dict[str, int]:
    names = {class_id: name for name, class_id in ids(db).items()}
    return {names[row[1]]: row[2] for row in implied_cells.load_cells(db).tolist() if row[0] == image_id}


def stage(db: Database, image_id: int = 1) -> int:
    return db.value("SELECT stage FROM image WHERE id = ?", [image_id])


def test_implied_labels_follow_an_answer_and_disappear_with_its_undo(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    uuid = answer(pets, "spaniel", 1)
    assert follow(pets) == {"dog": 1, "animal": 1, "cat": -1}
    assert labels(pets) == {"spaniel": 1}, "nobody has said these"
    assert auto_accepted.count_accepted(pets) == {"present": 0, "absent": 0} and implied_cells.count_by_state(pets) == {
        "present": 2,
        "absent": 1,
    }
    progress = load_progress(pets)
    assert (progress.pairs_answered, progress.pairs_implied, progress.pairs_open) == (1, 3, progress.pairs - 4)
    decisions.save(pets, [Decision(next(uuids), "undo", "Ann", "click", undoes=uuid)])
    assert follow(pets) == {} and stage(pets) == 0


def test_answer_overrides_a_label_implied_by_an_earlier_answer_and_reports_the_conflict(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    answer(pets, "animal", -1)
    assert follow(pets) == {"dog": -1, "spaniel": -1, "cat": -1}
    answer(pets, "spaniel", 1)
    assert labels(pets) == {"animal": -1, "spaniel": 1}
    assert follow(pets) == {"cat": -1}, "of the dog one answer says yes and the other no, so it stays open"
    with pets.reading() as sql:
        [(image_id, class_id, state, *_)] = implied_cells.find_contradicted_answers(sql)
    assert (image_id, class_id, state) == (1, ids(pets)["animal"], -1)
    answer(pets, "animal", 1)
    assert follow(pets) == {"dog": 1, "cat": -1} and declared_relations.find_contradictions(pets, 10) == []


def test_done_action_skips_implied_classes_and_leaves_exactly_one_groups_unanswered(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    answer(pets, "spaniel", 1)
    done(pets)
    assert labels(pets) == {"spaniel": 1, "cat": -1}
    assert follow(pets) == {"dog": 1, "animal": 1} and stage(pets) == 2, "day or night is still to be said"
    answer(pets, "day", -1)
    assert follow(pets)["night"] == 1 and stage(pets) == 3
    answer(pets, "spaniel", None)
    assert labels(pets) == {"cat": -1, "day": -1, "animal": -1, "dog": -1}, "nothing spares these any more"
    assert follow(pets) == {"spaniel": -1, "night": 1}
    assert consistency.find_problems(pets) == []


def test_gallery_empty_filter_requires_absent_labels_and_no_unanswered_exactly_one_group(pets: Database):
    def empty() -> list[int]:
        return gallery_listing.get_listing(pets, GalleryFilter.build(empty=True), Sorting()).get_ids(0, 3)

    for image_id in (1, 2, 3):
        done(pets, image_id)
    answer(pets, "cat", 0, 2)
    assert empty() == [1, 3], "unsure is not absent"
    declared_relations.declare(pets, declared(pets)[-1:], "Ann")
    assert empty() == [], "it is day or night"
    answer(pets, "day", -1, 1)
    assert follow(pets) == {"night": 1} and stage(pets) == 3 and empty() == []
    answer(pets, "night", -1, 1)
    assert empty() == [1], "what a person says goes before what a relation has it"


def test_batch_of_answers_lists_the_older_answers_that_conflict_by_class_relations(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    answer(pets, "cat", 1, 1)
    answer(pets, "animal", -1, 2)
    cells = [(image_id, ids(pets)["spaniel"], 1, None) for image_id in (1, 2, 3)]
    assert decisions.save(pets, [Batch("spaniels", "Bea", "grid", cells)]).saved
    spaniel, cat, animal = (ids(pets)[name] for name in ("spaniel", "cat", "animal"))
    assert sorted(implied_cells.find_answers_contradicted_by(pets, ["spaniels", "unknown"])) == [
        (1, cat, 1, spaniel, 1),
        (2, animal, -1, spaniel, 1),
    ]
    answer(pets, "dog", -1, 3)
    assert len(implied_cells.find_answers_contradicted_by(pets, ["spaniels"])) == 2, "that answer is newer"


def test_relation_preview_equals_its_effect_and_removing_it_drops_implied_labels(pets: Database):
    answer(pets, "spaniel", 1)
    done(pets)
    answer(pets, "cat", 1, image_id=2)
    answer(pets, "animal", -1, image_id=2)
    assert stage(pets) == 3 and labels(pets)["dog"] == -1
    effect = declared_relations.preview_declaration(pets, declared(pets))
    assert (effect.present, effect.absent, effect.contradicted) == (2, 2, 1), effect
    assert declared_relations.load_relations(pets).made == () and labels(pets)["dog"] == -1 and follow(pets) == {}
    assert declared_relations.declare(pets, declared(pets), "Ann") == effect
    assert follow(pets) == {"dog": 1, "animal": 1} and "dog" not in labels(pets) and stage(pets) == 2
    for relation in declared_relations.load_relations(pets).made:
        declared_relations.remove(pets, relation.id, "Ann")
    assert follow(pets) == {} and labels(pets)["dog"] == -1 and stage(pets) == 3
    assert declared_relations.undo(pets, "Ann") == "the removal of time: exactly one of day, night"
    assert "day" not in labels(pets) and stage(pets) == 2
    assert consistency.find_problems(pets) == []


def test_circular_and_impossible_relations_are_refused(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    wrong = (IS_A, ("animal", "spaniel"), ""), (IS_A, ("cat", "cat"), ""), (AT_MOST_ONE, ("day",), "alone")
    with pytest.raises(AnnotatorError) as refused:
        declared_relations.declare(pets, declared(pets, wrong), "Ann")
    assert "'animal' is a kind of 'spaniel' is a kind of 'dog' is a kind of 'animal': that is a circle." in str(
        refused.value
    )
    assert "'cat' cannot be a kind of 'cat'" in str(refused.value) and "two different classes" in str(refused.value)
    with pytest.raises(AnnotatorError, match="'spaniel' could never be present"):
        declared_relations.declare(pets, declared(pets, ((AT_MOST_ONE, ("spaniel", "animal"), "no"),)), "Ann")
    assert len(declared_relations.load_relations(pets).made) == len(PETS)


def test_archived_class_neither_implies_nor_is_implied_until_restored(pets: Database):
    declared_relations.declare(pets, declared(pets), "Ann")
    answer(pets, "spaniel", 1)
    class_changes.archive(pets, "Ann", [ids(pets)["dog"]])
    assert follow(pets) == {}
    class_changes.restore(pets, "Ann", [class_.id for class_ in classes.load_archived_classes(pets)])
    assert follow(pets) == {"dog": 1, "animal": 1, "cat": -1} and consistency.find_problems(pets) == []


STEPS = st.one_of(
    st.tuples(st.just("answer"), st.sampled_from(NAMES), st.sampled_from([1, -1, 0, None]), st.integers(1, 2)),
    st.tuples(st.just("batch"), st.sampled_from(NAMES), st.sampled_from([1, -1])),
    st.tuples(st.just("done"), st.integers(1, 2)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("declare"), st.lists(st.sampled_from(PETS), min_size=1, max_size=3)),
    st.tuples(st.just("remove"), st.integers(0, 4)),
    st.tuples(st.just("undo_relation")),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=3, max_size=14))
def test_incrementally_implied_labels_equal_a_full_derivation_after_random_changes(pets: Database, steps: list):
    _empty(pets)
    for step in steps:
        _play(pets, *step)
    now = declared_relations.load_relations(pets)
    for image_id in (1, 2):
        answers = {ids(pets)[name]: state for name, state in labels(pets, image_id).items()}
        names = {class_id: name for name, class_id in ids(pets).items()}
        wanted = {names[class_id]: state for class_id, state in now.compute_implied(answers).items()}
        assert follow(pets, image_id) == wanted, steps
    assert consistency.find_problems(pets) == [], steps


def _play(db: Database, what: str, *how: object) -> None:
    try:
        if what == "answer":
            name, state, image_id = how
            answer(db, name, state, image_id)
        elif what == "batch":
            name, state = how
            cells = [(image_id, ids(db)[name], state, None) for image_id in (1, 2)]
            decisions.save(db, [Batch(next(uuids), "Ann", "gallery", cells)])
        elif what == "done":
            done(db, *how)
        elif what == "undo":
            decisions.undo(db)
        elif what == "declare":
            declared_relations.declare(db, declared(db, tuple(how[0])), "Ann")
        elif what == "remove":
            declared_relations.remove(db, declared_relations.load_relations(db).made[how[0]].id, "Ann")
        else:
            declared_relations.undo(db, "Ann")
    except (AnnotatorError, IndexError):
        pass  # nothing to undo or to remove


def _empty(db: Database) -> None:
    """Take everything back that the example before has done."""
    for relation in declared_relations.load_relations(db).made:
        declared_relations.remove(db, relation.id, "Ann")
    while True:
        try:
            decisions.undo(db)
        except AnnotatorError:
            return


def test_hierarchy_reader_supports_indented_coco_open_images_and_taxonomy_files(tmp_path: Path):
    texts = {
        "indented.txt": "animal\n  dog\n    spaniel\n  cat\nday\n",
        "coco.json": json.dumps(
            {"categories": [{"name": "dog", "supercategory": "animal"}, {"name": "day", "supercategory": "day"}]}
        ),
        "images.json": json.dumps(
            {"LabelName": "animal", "Subcategory": [{"LabelName": "dog", "Subcategory": [{"LabelName": "spaniel"}]}]}
        ),
        "taxonomy.txt": "0f1c2d3e-0000-4000-8000-000000000001;animal;;dog;spaniel\nanimal;cat\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    read = {name: read_hierarchy(tmp_path / name) for name in texts}
    assert read["indented.txt"] == [("dog", "animal"), ("spaniel", "dog"), ("cat", "animal")]
    assert read["coco.json"] == [("dog", "animal")]
    assert read["images.json"] == [("dog", "animal"), ("spaniel", "dog")]
    assert read["taxonomy.txt"] == [("dog", "animal"), ("spaniel", "dog"), ("cat", "animal")]
    (tmp_path / "flat.txt").write_text("dog\ncat\n")
    with pytest.raises(AnnotatorError, match="says of no class what it is a kind of"):
        read_hierarchy(tmp_path / "flat.txt")


def test_indented_class_list_creates_classes_and_init_prints_the_relations_command(annotator, photos, tmp_path: Path):
    (tmp_path / "classes.txt").write_text("animal\n\tdog\ta good dog\n\t\tspaniel\n  cat\n")
    project = str(tmp_path / "pets")
    made = annotator("init", project, "--images", str(photos), "--classes", str(tmp_path / "classes.txt"))
    assert f"annotator relations {project} --from {tmp_path / 'classes.txt'}" in made.stdout
    assert [class_.name for class_ in classes.load_active_classes(Database(Path(project)))] == [
        "animal",
        "dog",
        "spaniel",
        "cat",
    ]
    assert not declared_relations.load_relations(Database(Path(project))).made
    annotator("relations", project, "--from", str(tmp_path / "classes.txt"))
    names = classes.load_class_names(Database(Path(project)))
    made = declared_relations.load_relations(Database(Path(project))).made
    kinds = [tuple(names[id_] for id_ in one.declared.class_ids) for one in made]
    assert kinds == [("dog", "animal"), ("spaniel", "dog"), ("cat", "animal")]


def test_export_marks_implied_labels_and_names_their_annotator(pets: Database, annotator, tmp_path: Path):
    declared_relations.declare(pets, declared(pets), "Ann")
    answer(pets, "spaniel", 1)
    annotator("export", tmp_path / "pets", tmp_path / "pets.csv")
    name = pets.value("SELECT name FROM image WHERE id = 1")
    rows = [row for row in csv.DictReader((tmp_path / "pets.provenance.csv").open()) if row["image"] == name]
    told = {row["class"]: (row["state"], row["source"], row["annotator"]) for row in rows}
    assert told["spaniel"] == ("present", "click", "Ann")
    assert told["dog"] == ("present", "implied", "Ann") and told["cat"] == ("absent", "implied", "Ann")
