"""Nobody is asked about an archived class, and no page, export, training or certificate knows of it; restored, it is as
before. Two processes may change classes and answer at once."""

import csv
import json
import subprocess
import sys
import uuid

import numpy as np
import pytest
from harness.asked import asked
from harness.class_edits import DEER, FOX, HERON, answer, done, everything, labels
from harness.feature_shards import add_features
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.quality import audit_sampling, auto_accept_sample
from annotator.quality.certification import compute_certificate
from annotator.quality.guarantee import Guarantee
from annotator.queues import audit_queue, grid_queue, image_queue
from annotator.queues.autopilot import planner
from annotator.records import (
    ABSENT,
    PRESENT,
    Batch,
    Decision,
    SuggestionFilter,
    WantedActions,
    WantedGrids,
    WantedImages,
)
from annotator.snapshot import rankings, suggestions
from annotator.snapshot.run_predictions import load_rankings, read_predictions, read_stored_predictions
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.classes import class_changes, class_history, classes
from annotator.store.features.feature_cache import open_features
from annotator.store.gallery import image_columns
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.labels import audits, auto_accepted, decisions, project_counts
from annotator.store.labels.auto_accepted import NewAcceptance
from annotator.store.people import leases
from annotator.store.upkeep import consistency
from annotator.worker.training.schedule import RunInputs
from annotator.worker.training.training_set import load_training_set


@pytest.fixture
def published(db) -> np.ndarray:
    """A run that is surest of herons; (24, 3) float16. Some cells of every class are answered, two before the run."""
    answer(db, 24, HERON, PRESENT)
    answer(db, 23, FOX, PRESENT)
    probabilities = np.linspace(0.05, 0.6, 72).reshape(24, 3)
    probabilities[:, 1] = np.linspace(0.7, 0.95, 24)
    publish(db, probabilities)
    run_folder = db.paths.run(1)
    ids = np.arange(1, 25)
    newest = decisions.get_newest_decision_id(db)
    rankings.save(run_folder, rankings.build(db, newest, ids, np.arange(1, 4), probabilities.astype(np.float16)))
    with db.writing() as sql:
        sql.execute("UPDATE run SET last_decision_id = ?", [newest])
    return probabilities.astype(np.float16)


def asked_about(db) -> set[int]:
    """The classes that any queue asks about."""
    seen: set[int] = set()
    for number in range(4):
        work = grid_queue.lease_next_grids(db, WantedGrids(f"grid {number}", "Ann", None, 12, (), 8)).items
        seen |= {item.class_id for item in work}
    for kind in ("missing", "likely_mistakes", "annotator_disagreements"):
        review = WantedImages("review", f"review {kind}", "Ann", (), 24, SuggestionFilter(kind=kind, low=0.0))
        seen |= {chip.class_id for item in image_queue.lease_next_work(db, review).items for chip in item.suggestions}
    audited = WantedGrids("audit", "Ann", None, 48, (), 8, hide_predictions=True)
    seen |= {item.class_id for item in audit_queue.lease_next_grids(db, audited).items}
    for number in range(6):
        for action in planner.lease_next_actions(db, WantedActions(f"autopilot {number}", "Ann", (), 3)).items:
            seen |= {action.class_id} - {0}
    with db.writing() as sql:
        sql.execute("DELETE FROM lease")
    seen |= {chip.class_id for chip in suggestions.find_missing_positives(db, limit=60)}
    return seen | {chip.class_id for chip in suggestions.find_missing_positives(db, limit=None)}


def test_queues_skip_an_archived_class_until_it_is_restored(db, published):
    audit_sampling.draw_audit(db, 40, seed=1)
    before = everything(db)
    assert asked_about(db) == {FOX, HERON, DEER}
    class_changes.archive(db, "Ann", [HERON])
    assert asked_about(db) == {FOX, DEER}
    assert {cell.class_id for cell in audit_sampling.load_open_cells(db)} == {FOX, DEER} and audits.describe_damage(
        db
    ) == []
    with pytest.raises(AnnotatorError, match="no class 2"):
        grid_queue.lease_next_grids(db, WantedGrids("tab", "Ann", HERON, 12, (), 1))
    class_changes.restore(db, "Ann", [HERON])
    assert asked_about(db) == {FOX, HERON, DEER} and everything(db) == before


def test_predictions_and_rankings_after_archiving_equal_those_without_the_class(db, published):
    answer(db, 5, FOX, PRESENT)
    newest = decisions.get_newest_decision_id(db)
    class_changes.archive(db, "Ann", [HERON])
    snapshot = read_snapshot(db)
    assert snapshot is not None and snapshot.run.class_ids == [FOX, DEER]
    left = published[:, [0, 2]]
    assert np.array_equal(snapshot.predictions.probabilities, left)
    of_run, now = (
        vars(rankings.build(db, seen, np.arange(1, 25), np.array([FOX, DEER]), left)) for seen in (newest - 1, newest)
    )
    for name, ranked in vars(snapshot.rankings).items():
        assert np.array_equal(ranked, (now if name in ("by_image", "likeliest") else of_run)[name]), name
    assert snapshot.delta.select_open_rows(np.array([3, 4]), 0).tolist() == [3], "as of now"
    stored = read_stored_predictions(db)
    assert stored is not None and stored.run.class_ids == [FOX, HERON, DEER]
    before = RunInputs.from_run(db, stored.run)
    assert RunInputs.from_project(db, 24).urgent_inputs != before.urgent_inputs, "a training is due"
    class_history.undo_change(db, "Ann")
    again = read_predictions(db)
    assert again is not None and np.array_equal(again.probabilities, published)
    whole = load_rankings(db, again)
    assert whole is not None and len(whole.by_class) == 3


def test_status_export_certificate_and_training_exclude_an_archived_class(db, published, annotator, tmp_path):
    done(db, 1)
    audit_sampling.draw_audit(db, 60, seed=1)
    cells = [(cell.image_id, cell.class_id, ABSENT, None) for cell in audit_sampling.load_open_cells(db)]
    assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", "audit", cells)]).refused
    before = compute_certificate(db)
    class_changes.archive(db, "Ann", [HERON])
    now = compute_certificate(db)
    assert [row.name for row in now.classes] == ["fox", "deer"] and audits.describe_damage(db) == []
    assert [(row.people, row.audited) for row in now.classes] == [
        (row.people, row.audited) for row in before.classes if row.class_id != HERON
    ]
    status = json.loads(annotator("status", db.paths.project, "--json").stdout)
    assert status["classes"] == 2 and sum(status["labels"].values()) == db.value("SELECT count(*) FROM label")
    annotator("status", db.paths.project)
    annotator("certificate", db.paths.project)
    annotator("export", db.paths.project, tmp_path / "out.csv", "--unknown", "model")
    assert "heron" not in next(csv.reader((tmp_path / "out.csv").open()))
    add_features(db, "x", np.arange(1, 25), np.eye(24), np.zeros((24, 9, 24)))
    cache = open_features(db, "x")
    known = load_training_set(db, cache)
    assert known.class_ids == [FOX, DEER] and known.labels.shape[1] == 2
    class_changes.restore(db, "Ann", [HERON])
    after = compute_certificate(db)
    assert (after.classes, after.overall) == (before.classes, before.overall)


def test_archiving_a_class_withdraws_its_auto_accepted_labels_and_blocks_new_ones(db, published):
    new = NewAcceptance(HERON, PRESENT, 1, 0.9, 0.99, 0.95, 50, 0, np.array([2, 3]), np.array([0.9, 0.9]))
    assert auto_accepted.accept(db, "b1", new) and auto_accepted.count_accepted(db)["present"] == 2
    leases.renew_cells(db, "tab", "Ann", [(7, HERON)])
    class_changes.archive(db, "Ann", [HERON])
    assert (
        auto_accepted.count_accepted(db) == {"present": 0, "absent": 0} and leases.load_leases_of_others(db, "") == []
    )
    assert [made.withdrawn for made in auto_accepted.load_acceptances(db)] == ["the class was archived"]
    assert not auto_accepted.accept(db, "b2", new), "a training that began before it was archived"
    with pytest.raises(AnnotatorError):
        auto_accept_sample.draw_audit(db, Guarantee(0.99, True, False, True))
    assert consistency.find_problems(db) == []


def test_gallery_label_columns_are_updated_after_class_changes_without_new_decisions(db):
    answer(db, 1, DEER, PRESENT)
    answer(db, 2, FOX, PRESENT)

    def facts(columns: ImageColumns) -> list:
        with db.reading() as sql:
            columns.refresh(db)
            states = [
                columns.get_state_mask(sql, class_id, state).tolist()
                for class_id in (FOX, HERON)
                for state in (PRESENT, ABSENT)
            ]
            return [columns.positives.tolist(), columns.complete.tolist(), *states]

    kept = ImageColumns()
    for change in (
        lambda: class_changes.archive(db, "Ann", [DEER]),
        lambda: class_changes.restore(db, "Ann", [DEER]),
        lambda: (class_changes.archive(db, "Ann", [DEER]), class_changes.restore(db, "Ann", [DEER])),
        lambda: class_changes.merge(db, "Ann", [DEER], FOX, same=True),
        lambda: (answer(db, 3, DEER, PRESENT), class_changes.restore(db, "Ann", [DEER])),
        lambda: class_history.undo_change(db, "Ann"),
    ):
        facts(kept)
        change()
        assert facts(kept) == facts(ImageColumns())
    assert image_columns.load_stamp(db) == kept.stamp


def test_classes_route_lists_active_classes_in_order_without_examples(db):
    class_changes.edit(db, "Ann", {DEER: {"position": 0, "synonyms": ["roe"], "colour": "#112233", "examples": [3]}})
    class_changes.archive(db, "Ann", [HERON])
    with asked(db.paths.project) as app:
        listed = app.post("/api/classes", {})[1]["classes"]
    assert [one["name"] for one in listed] == ["deer", "fox"]
    assert {key: listed[0][key] for key in ("key", "synonyms", "colour", "unknown")} == {
        "key": "3", "synonyms": ["roe"], "colour": "#112233", "unknown": 24,
    }  # fmt: skip
    assert "examples" not in listed[0], "whoever is still to answer one of them blind would have its answer"


def test_classes_command_lists_and_changes_classes(db, annotator, tmp_path):
    project = db.paths.project
    answer(db, 1, FOX, ABSENT)
    answer(db, 1, HERON, PRESENT)
    said = annotator("classes", "merge", project, "heron", "--into", "fox", "--yes").stdout
    assert "New answers for fox: 1 present, 0 absent, 0 unsure." in said
    assert "1 image labeled absent for fox will be present." in said and labels(db, FOX) == {1: PRESENT}
    annotator("classes", "rename", project, "heron", "red fox", "--keep")
    annotator("classes", "synonym", project, "red fox", "vixen")
    annotator("classes", "synonym", project, "vixen", "heron", "--remove", code=0)
    annotator("classes", "note", project, "deer", "with antlers")
    annotator("classes", "order", project, "deer", "--heading", "beasts")
    assert "/grid?class=4&selection=" in annotator("classes", "split", project, "fox", "cub").stdout
    annotator("classes", "archive", project, "cub")
    listed = json.loads(annotator("classes", project, "--json").stdout)
    assert [(one["name"], one["synonyms"], one["heading"]) for one in listed["classes"]] == [
        ("red fox", ["fox", "vixen"], ""),
        ("deer", [], "beasts"),
    ]
    assert [one["name"] for one in listed["archived"]] == ["heron", "cub"]
    text = annotator("classes", project).stdout
    assert "vixen" in text and "beasts" in text and "Archived: heron, cub" in text
    assert "archived 'cub'" in annotator("classes", "undo", project).stdout
    annotator("classes", "restore", project, "heron")
    assert labels(db, HERON) == {1: PRESENT}
    history = annotator("classes", "history", project).stdout.splitlines()
    assert "restored 'heron'" in history[0] and "undone by change" in history[2] and "added" in history[-1]
    assert "already" in annotator("classes", "undo", project, "9", code=1).stderr
    (tmp_path / "again.txt").write_text("fox\nheron\ndeer\ncub\n")
    annotator("classes", "synonym", project, "deer", "roe")
    class_changes.archive(db, "Ann", [DEER])
    told = annotator("init", project, "--classes", tmp_path / "again.txt").stdout
    assert "'deer' is archived and stays so." in told and "classes added" not in told, "a synonym is its class"
    class_changes.restore(db, "Ann", [DEER])
    assert classes.find_class(db, "roe").id == DEER, "an archived class keeps its synonyms"


@pytest.mark.process
def test_concurrent_answers_and_class_changes_keep_the_store_consistent(db):
    script = f"""
import random, sys
sys.path[:0] = {sys.path!r}
from harness.class_edits import change_at_random
from annotator.store.database.database import Database
db, rng = Database({str(db.paths.project)!r}), random.Random(int(sys.argv[1]))
for _ in range(150):
    change_at_random(db, rng, alone=False)
"""
    started = [subprocess.Popen([sys.executable, "-c", script, str(seed)]) for seed in (1, 2)]
    assert [process.wait(120) for process in started] == [0, 0]
    assert consistency.find_problems(db) == []
    assert project_counts.list_annotators(db) == ["Ann", "Bob", "Cy"]
    assert len([change for change in class_history.load_changes(db) if change.kind != "add"]) > 10


def test_answer_for_an_archived_class_is_stored_and_counts_after_restore(db):
    class_changes.archive(db, "Ann", [HERON])
    with asked(db.paths.project) as app:
        sent = {"uuid": "late-answer", "action": "label", "image": 3, "class": HERON, "state": 1, "source": "click"}
        for _ in range(2):
            assert app.post("/api/decisions", {"decisions": [sent]})[1]["saved"] == ["late-answer"]
    assert labels(db, HERON) == {} and classes.load_class_names(db)[HERON] == "heron"
    class_changes.restore(db, "Ann", [HERON])
    assert labels(db, HERON) == {3: PRESENT}
    decisions.save(db, [Decision("u", "undo", "Ann", "click", undoes="late-answer")])
    assert labels(db, HERON) == {}
