"""One measure of progress: what counts, what it costs, and that all places show the same."""

import json
import uuid
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_annotator_disagreement import say
from test_grid import publish

from annotator.project import Project
from annotator.queues import annotate, grid
from annotator.queues.autopilot import planner, wording
from annotator.records import Batch, Wanted, WantedActions, WantedGrids
from annotator.snapshot.progress import Progress, progress_of
from annotator.store.classes import changes as class_changes
from annotator.store.classes import classes
from annotator.store.labels import decisions
from annotator.store.labels import overlap as readings
from annotator.store.runs import runs
from annotator.ui.access import context
from annotator.ui.routes import shapes

PAGE = """
from annotator.ui.pages import progress
progress.page()
"""
NOTHING = Progress(0, 72, 0, 0, 0, 24, None)


def test_pairs_that_people_answered_count_unsure_included_and_a_full_bar_needs_all_of_them(db):
    assert progress_of(db) == NOTHING
    for image_id in range(1, 25):
        say(db, "A+" if image_id % 2 else "A?", image_id=image_id)
    after = progress_of(db)
    assert (after.pairs_answered, after.images_complete, after.images_labeled) == (24, 0, 24)
    assert after.share == pytest.approx(1 / 3) and after.percent() == "33 %", (
        "every image has a label, two pairs are open"
    )
    for image_id in range(1, 24):
        say(db, "A.", image_id=image_id)
    almost = progress_of(db)
    assert (
        (almost.pairs_answered, almost.images_complete) == (70, 23) and almost.share < 1 and almost.percent() != "100 %"
    )
    say(db, "A.", image_id=24)
    assert progress_of(db).share == 1.0
    assert progress_of(db).sentence() == "72 of 72 pairs answered · 24 of 24 images complete"


def test_archived_classes_have_no_pairs_and_new_ones_open_what_was_complete(db):
    for image_id in range(1, 25):
        say(db, "A.", image_id=image_id)
    class_changes.archive(db, "Ann", [2])
    assert progress_of(db) == Progress(48, 48, 0, 24, 24, 24, None)
    classes.add_classes(db, [("boar", "")])
    assert progress_of(db) == Progress(48, 72, 0, 0, 24, 24, None)


def test_images_without_a_file_keep_their_answers_and_their_open_pairs(db):
    say(db, "A+")
    with db.writing() as sql:
        sql.execute("UPDATE image SET problem = 'missing: gone' WHERE id IN (1, 2)")
    assert progress_of(db) == replace(NOTHING, pairs_answered=1, images_labeled=1)


def test_blind_answers_to_what_is_answered_add_nothing(db):
    readings.choose(db, 2, 1.0)
    cells = [(1, class_id, 1, None) for class_id in (1, 2, 3)]
    for who in ("Ann", "Ben"):
        assert not decisions.decide(db, [Batch(f"r-{who}", who, "reading", cells)]).refused
        assert progress_of(db).pairs_answered == 3


def test_what_the_model_accepted_is_counted_apart(db):
    with db.writing() as sql:
        sql.execute("INSERT INTO tally VALUES ('accepted', 1, 1, 5)")
    found = progress_of(db)
    assert (found.pairs_answered, found.pairs_accepted, found.share) == (0, 5, 0.0)
    assert "5 accepted by the model" in found.sentence()


def test_what_was_accepted_or_ruled_out_is_no_grid_to_go(db):
    cells = [(image_id, 1, -1, None) for image_id in range(1, 25)]
    assert not decisions.decide(db, [Batch("all", "Ann", "grid", cells, None, 24_000)]).refused
    assert "2 grids to go" in progress_of(db, "Ann").sentence()
    with db.writing() as sql:
        sql.execute("INSERT INTO tally VALUES ('accepted', 2, 1, 20), ('accepted', 3, -1, 24)")
    assert progress_of(db, "Ann").pairs_open == 4 and "1 grid to go" in progress_of(db, "Ann").sentence()
    with db.writing() as sql:
        sql.execute("UPDATE tally SET n = 24 WHERE kind = 'accepted'")
    assert progress_of(db, "Ann").seconds_left == 0 and "to go" not in progress_of(db, "Ann").sentence()


def test_the_time_left_is_that_of_the_open_pairs_at_the_persons_pace_and_unknown_without_any(db):
    assert progress_of(db, "Ann").seconds_left is None and "to go" not in progress_of(db, "Ann").sentence()
    cells = [(image_id, 1, -1, None) for image_id in range(1, 25)]
    assert not decisions.decide(db, [Batch(f"g{uuid.uuid4()}", "Ann", "grid", cells, None, 24_000)]).refused
    db.caches.clear()  # a pace is kept for a minute
    slow = progress_of(db, "Ann")
    assert slow.seconds_left is not None and 48 * 0.4 < slow.seconds_left < 48 * 1.5
    assert " · 2 grids to go, about " in slow.sentence(), "48 pairs are open"
    assert progress_of(db, "Ben").seconds_left == slow.seconds_left, "whose times are unknown has those of all"


def test_every_place_shows_the_same_figures(db, project, annotator):
    for image_id in range(1, 13):
        say(db, "A+", image_id=image_id)
    say(db, "A.", image_id=1)
    sentence = progress_of(db).sentence()
    assert sentence == "14 of 72 pairs answered · 1 of 24 images complete"
    assert sentence in annotator("status", project).stdout
    told = json.loads(annotator("status", project, "--json").stdout)["progress"]
    assert (told["pairs_answered"], told["pairs"], told["sentence"]) == (14, 72, sentence)
    with Project(project) as opened:
        assert opened.progress() == progress_of(db)
    for work in (
        annotate.next_work(db, Wanted("annotate", "a", "Ann", [], 1)),
        grid.next_grids(db, WantedGrids("b", "Ann", None, 12, (), 1)),
        planner.next_actions(db, WantedActions("c", "Ann", (), 1)),
    ):
        assert work.progress.sentence() == sentence
        shown = shapes.progress(work.progress)
        assert (
            shown["template"].format(**{name: f"{shown[name]:,}" for name in ("pairs_answered", "images_complete")})
            == sentence
        )
    context.open_project(project)
    page = AppTest.from_string(PAGE, default_timeout=30).run()
    metrics = {metric.label: metric.value for metric in page.metric}
    assert (metrics["Pairs answered"], metrics["Complete images"]) == ("14 of 72", "1 of 24")
    [bar] = page.get("progress")
    assert bar.proto.value == 19 and "14 of 72 pairs answered" in bar.proto.text.replace("\\", "")


def test_autopilot_claims_that_everything_is_answered_only_when_it_is(db):
    publish(db, np.full((24, 3), 0.5))
    run, wanted = runs.current_run(db), WantedActions("c", "Ann", (), 1)
    counts = {"all": 24, "complete": 23, "incomplete": 1, "without_decision": 0, "skipped": 0}
    assert "Every class of every image" not in wording.empty(db, wanted, counts, True, run)
    every = counts | {"complete": 24, "incomplete": 0}
    assert "Every class of every image" in wording.empty(db, wanted, every, True, run)
