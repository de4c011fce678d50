"""One measure of progress: what counts, what it costs, and that all places show the same."""

import json
import uuid
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import say
from harness.published_runs import publish
from streamlit.testing.v1 import AppTest

from annotator.project import Project
from annotator.queues import grid_queue, image_queue
from annotator.queues.autopilot import action_texts, planner
from annotator.records import Batch, WantedActions, WantedGrids, WantedImages
from annotator.snapshot.project_progress import Progress, load_progress
from annotator.store.classes import class_changes, classes
from annotator.store.labels import decisions, image_overlap
from annotator.store.runs import runs
from annotator.ui.access import served_project
from annotator.ui.shared import responses

PAGE = """
from annotator.ui.pages.progress import progress_page
progress_page.page()
"""
NOTHING = Progress(0, 72, 0, 0, 0, 24, None)


def test_progress_counts_unsure_labels_and_is_full_only_when_all_labels_are_answered(db):
    assert load_progress(db) == NOTHING
    for image_id in range(1, 25):
        say(db, "A+" if image_id % 2 else "A?", image_id=image_id)
    after = load_progress(db)
    assert (after.pairs_answered, after.images_complete, after.images_labeled) == (24, 0, 24)
    assert after.share == pytest.approx(1 / 3) and after.percent() == "33 %", (
        "every image has a label, two pairs are open"
    )
    for image_id in range(1, 24):
        say(db, "A.", image_id=image_id)
    almost = load_progress(db)
    assert (
        (almost.pairs_answered, almost.images_complete) == (70, 23) and almost.share < 1 and almost.percent() != "100 %"
    )
    say(db, "A.", image_id=24)
    assert load_progress(db).share == 1.0
    assert load_progress(db).sentence() == "72 of 72 pairs answered · 24 of 24 images complete"


def test_progress_ignores_archived_classes_and_new_classes_reopen_complete_images(db):
    for image_id in range(1, 25):
        say(db, "A.", image_id=image_id)
    class_changes.archive(db, "Ann", [2])
    assert load_progress(db) == Progress(48, 48, 0, 24, 24, 24, None)
    classes.add_classes(db, [("boar", "")])
    assert load_progress(db) == Progress(48, 72, 0, 0, 24, 24, None)


def test_progress_of_images_with_missing_files_counts_answered_labels_only(db):
    say(db, "A+")
    with db.writing() as sql:
        sql.execute("UPDATE image SET problem = 'missing: gone' WHERE id IN (1, 2)")
    assert load_progress(db) == replace(NOTHING, pairs_answered=1, images_labeled=1)


def test_second_blind_answer_to_a_label_adds_no_progress(db):
    image_overlap.set_overlap(db, 2, 1.0)
    cells = [(1, class_id, 1, None) for class_id in (1, 2, 3)]
    for who in ("Ann", "Ben"):
        assert not decisions.save(db, [Batch(f"r-{who}", who, "reading", cells)]).refused
        assert load_progress(db).pairs_answered == 3


def test_progress_counts_labels_accepted_by_the_model_separately(db):
    with db.writing() as sql:
        sql.execute("INSERT INTO tally VALUES ('accepted', 1, 1, 5)")
    found = load_progress(db)
    assert (found.pairs_answered, found.pairs_accepted, found.share) == (0, 5, 0.0)
    assert "5 accepted by the model" in found.sentence()


def test_auto_accepted_labels_reduce_the_number_of_grids_to_go_in_progress(db):
    cells = [(image_id, 1, -1, None) for image_id in range(1, 25)]
    assert not decisions.save(db, [Batch("all", "Ann", "grid", cells, None, 24_000)]).refused
    assert "2 grids to go" in load_progress(db, "Ann").sentence()
    with db.writing() as sql:
        sql.execute("INSERT INTO tally VALUES ('accepted', 2, 1, 20), ('accepted', 3, -1, 24)")
    assert load_progress(db, "Ann").pairs_open == 4 and "1 grid to go" in load_progress(db, "Ann").sentence()
    with db.writing() as sql:
        sql.execute("UPDATE tally SET n = 24 WHERE kind = 'accepted'")
    assert load_progress(db, "Ann").seconds_left == 0 and "to go" not in load_progress(db, "Ann").sentence()


def test_time_left_follows_the_measured_pace_and_is_unknown_without_one(db):
    assert load_progress(db, "Ann").seconds_left is None and "to go" not in load_progress(db, "Ann").sentence()
    cells = [(image_id, 1, -1, None) for image_id in range(1, 25)]
    assert not decisions.save(db, [Batch(f"g{uuid.uuid4()}", "Ann", "grid", cells, None, 24_000)]).refused
    db.caches.clear()  # a pace is kept for a minute
    slow = load_progress(db, "Ann")
    assert slow.seconds_left is not None and 48 * 0.4 < slow.seconds_left < 48 * 1.5
    assert " · 2 grids to go, about " in slow.sentence(), "48 pairs are open"
    assert load_progress(db, "Ben").seconds_left == slow.seconds_left, "whose times are unknown has those of all"


def test_status_python_api_queues_and_progress_page_show_the_same_progress(db, project, annotator):
    for image_id in range(1, 13):
        say(db, "A+", image_id=image_id)
    say(db, "A.", image_id=1)
    sentence = load_progress(db).sentence()
    assert sentence == "14 of 72 pairs answered · 1 of 24 images complete"
    assert sentence in annotator("status", project).stdout
    told = json.loads(annotator("status", project, "--json").stdout)["progress"]
    assert (told["pairs_answered"], told["pairs"], told["sentence"]) == (14, 72, sentence)
    with Project(project) as opened:
        assert opened.progress() == load_progress(db)
    for work in (
        image_queue.lease_next_work(db, WantedImages("annotate", "a", "Ann", [], 1)),
        grid_queue.lease_next_grids(db, WantedGrids("b", "Ann", None, 12, (), 1)),
        planner.lease_next_actions(db, WantedActions("c", "Ann", (), 1)),
    ):
        assert work.progress.sentence() == sentence
        shown = responses.build_progress(work.progress)
        assert (
            shown["template"].format(**{name: f"{shown[name]:,}" for name in ("pairs_answered", "images_complete")})
            == sentence
        )
    served_project.open_project(project)
    page = AppTest.from_string(PAGE, default_timeout=120).run()
    metrics = {metric.label: metric.value for metric in page.metric}
    assert (metrics["Pairs answered"], metrics["Complete images"]) == ("14 of 72", "1 of 24")
    [bar] = page.get("progress")
    assert bar.proto.value == 19 and "14 of 72 pairs answered" in bar.proto.text.replace("\\", "")


def test_autopilot_reports_every_class_answered_only_when_all_images_are_complete(db):
    publish(db, np.full((24, 3), 0.5))
    run, wanted = runs.load_current_run(db), WantedActions("c", "Ann", (), 1)
    counts = {"all": 24, "complete": 23, "incomplete": 1, "without_decision": 0, "skipped": 0}
    assert "Every class of every image" not in action_texts.explain_empty(db, wanted, counts, True, run)
    every = counts | {"complete": 24, "incomplete": 0}
    assert "Every class of every image" in action_texts.explain_empty(db, wanted, every, True, run)
