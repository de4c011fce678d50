"""Ruling out a class: only after a large random sample without it, as one decision, audited, and undone as one."""

import csv
import json
import sqlite3
import uuid
from pathlib import Path

import numpy as np
import pytest
from harness.auto_accept_project import publish_chances

from annotator.errors import AnnotatorError, Forbidden
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats.export_view import STATE_WORDS
from annotator.quality import audit_sampling, auto_accept, auto_accept_sample, rule_out
from annotator.quality.certification import compute_certificate
from annotator.quality.guarantee import Guarantee
from annotator.queues import grid_queue
from annotator.queues.autopilot import planner
from annotator.records import FILL_SOURCES, Batch, Decision, WantedActions, WantedGrids
from annotator.snapshot.project_progress import load_progress
from annotator.snapshot.project_status import collect_status
from annotator.store.classes import class_changes, classes
from annotator.store.database import authorization, jobs
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, decisions, label_cells, prediction_outcomes
from annotator.store.people import members
from annotator.store.upkeep import consistency

IMAGES = 400
FOX, BOAT = 1, 2
DRAWN = 120  # random images on which nobody saw a boat


def project_of_images(path: Path) -> Database:
    """A project of 400 images without files, a fox and a boat."""
    db = Database(path, create=True)
    rows = [(number, f"{number}.jpg", f"{number:064}", 9, 9) for number in range(1, IMAGES + 1)]
    with db.writing() as sql:
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, ?, ?)", rows)
    classes.add_classes(db, [("fox", ""), ("boat", "")])
    return db


@pytest.fixture
def many(tmp_path) -> Database:
    """The images, and a run that is sure of the fox; of the boat there is neither example nor model."""
    db = project_of_images(tmp_path / "many")
    publish(db)
    return db


def publish(db: Database) -> None:
    chances = np.full((IMAGES, 2), np.nan, np.float16)
    chances[:, 0] = np.where(np.arange(IMAGES) < IMAGES // 2, 0.998, 0.002)
    publish_chances(db, chances)


def say(db: Database, source: str, image_ids: range, state: int = -1, class_id: int = BOAT) -> None:
    together = [(image_id, class_id, state, None) for image_id in image_ids]
    assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", source, together)]).refused


@pytest.fixture
def sampled(many) -> Database:
    say(many, "sample", range(1, DRAWN + 1))
    return many


def absent_boats(db: Database) -> set[int]:
    return {image_id for (image_id, class_id), cell in auto_accepted.load_accepted_cells(db).items() if cell[0] == -1}


OPEN = set(range(DRAWN + 1, IMAGES + 1))


def test_marking_absent_everywhere_requires_96_random_images_and_ignores_search_answers(many):
    say(many, "sample", range(1, 96))
    say(many, "search", range(100, 300))
    with pytest.raises(
        AnnotatorError, match=r"'boat' cannot be ruled out yet: 95 random images showed none .* takes 96"
    ):
        rule_out.rule_out_class(many, BOAT, "Ann")
    assert auto_accepted.load_acceptances(many) == [] and rule_out.load_rulings(many) == []
    say(many, "sample", range(96, 97))
    assert rule_out.rule_out_class(many, BOAT, "Ann").absent == 96


def test_class_with_a_present_label_cannot_be_marked_absent_everywhere(sampled):
    say(sampled, "click", range(200, 201), state=1)
    with pytest.raises(AnnotatorError, match=r"'boat' cannot be ruled out: it is present on 1 image\."):
        rule_out.rule_out_class(sampled, BOAT, "Ann")
    assert auto_accepted.load_accepted_cells(sampled) == {}


def test_marking_absent_everywhere_refuses_unknown_archived_and_finished_classes(sampled):
    for nobody in ("", " "):
        with pytest.raises(AnnotatorError, match="Nobody is named"):
            rule_out.rule_out_class(sampled, BOAT, nobody)
    with pytest.raises(AnnotatorError, match="There is no class 9"):
        rule_out.rule_out_class(sampled, 9, "Ann")
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    with pytest.raises(AnnotatorError, match="'boat' cannot be ruled out: no image is unanswered"):
        rule_out.rule_out_class(sampled, BOAT, "Ann")
    class_changes.archive(sampled, "Ann", [BOAT])
    assert auto_accepted.load_accepted_cells(sampled) == {} and rule_out.load_rulings(sampled) == []
    with pytest.raises(AnnotatorError, match="'boat' is archived"):
        rule_out.rule_out_class(sampled, BOAT, "Ann")


def test_marking_absent_everywhere_counts_all_unanswered_images_and_stores_no_labels(sampled):
    before = decisions.load_all_labels(sampled)
    ruled = rule_out.rule_out_class(sampled, BOAT, "Ann")
    assert absent_boats(sampled) == OPEN and decisions.load_all_labels(sampled) == before
    assert (ruled.cells, ruled.absent, ruled.class_id) == (len(OPEN), DRAWN, BOAT)
    assert ruled.at_most == pytest.approx(1 - 0.05 ** (1 / DRAWN))
    [made] = auto_accepted.load_acceptances(sampled)
    assert (made.annotator, made.state, made.audited, made.wrong, made.threshold) == ("Ann", -1, DRAWN, 0, 1.0)
    assert (made.run_id, made.confidence, made.cells) == (1, 0.95, len(OPEN))
    assert jobs.is_training_requested(sampled), "a training that leaves these cells out of its rankings"
    assert consistency.find_problems(sampled) == []


def test_image_with_a_missing_file_is_not_marked_absent_everywhere(sampled):
    with sampled.writing() as sql:
        sql.execute("UPDATE image SET problem = 'missing' WHERE id IN (1, 399, 400)")
    assert rule_out.rule_out_class(sampled, BOAT, "Ann").cells == len(OPEN) - 2


@pytest.mark.parametrize(("images", "drawn", "cells"), [(400, 120, 280), (400, 120, 12), (5000, 288, 4712)])
def test_precision_bound_of_marking_absent_everywhere_is_tight_in_simulated_samples(images, drawn, cells):
    right = rule_out._compute_min_precision(images, drawn, cells)
    hidden = round((1 - right) * cells)  # the most that the sample would miss in more than 5 % of the draws
    rng = np.random.default_rng(7)

    def missed(positives: int) -> float:
        found = [(rng.choice(images, drawn, replace=False) < positives).any() for _ in range(4000)]
        return 1 - float(np.mean(found))

    assert missed(hidden) > 0.05 - 0.012
    assert hidden == cells or missed(hidden + 1) < 0.05 + 0.012


def test_undo_of_marking_absent_everywhere_reopens_its_images_in_one_step(sampled):
    batch = rule_out.rule_out_class(sampled, BOAT, "Ann").batch
    assert rule_out.undo(sampled, batch) == len(OPEN)
    assert auto_accepted.load_accepted_cells(sampled) == {} and rule_out.load_rulings(sampled) == []
    assert set(label_cells.find_open_images(sampled, BOAT, IMAGES)) == OPEN
    with pytest.raises(AnnotatorError, match=rf"No class was ruled out as batch '{batch}'. There is: none"):
        rule_out.undo(sampled, batch)
    assert rule_out.rule_out_class(sampled, BOAT, "Ben").cells == len(OPEN), "it can be done again"


def test_answer_after_marking_absent_everywhere_replaces_only_the_label_of_its_image(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    say(sampled, "click", range(300, 301), state=1)
    assert absent_boats(sampled) == OPEN - {300}
    assert [label.state for label in decisions.load_labels(sampled, [300])] == [1]
    assert rule_out.load_rulings(sampled)[0].cells == len(OPEN) - 1


def test_images_added_after_marking_absent_everywhere_are_unanswered_until_marked_again(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    with sampled.writing() as sql:
        sql.execute("INSERT INTO image (id, name, sha256, width, height) VALUES (401, 'n.jpg', ?, 9, 9)", ["f" * 64])
    assert label_cells.find_open_images(sampled, BOAT, 10) == [401]
    again = rule_out.rule_out_class(sampled, BOAT, "Ben")
    assert again.cells == len(OPEN) + 1 and absent_boats(sampled) == OPEN | {401}
    assert [(made.batch, made.annotator) for made in rule_out.load_rulings(sampled)] == [(again.batch, "Ben")]


def test_interrupted_marking_absent_everywhere_stores_nothing(sampled):
    with sampled.writing() as sql:
        sql.execute(
            """CREATE TRIGGER cut AFTER INSERT ON accepted WHEN new.image_id = 300
            BEGIN SELECT RAISE(ROLLBACK, 'cut off'); END"""
        )
    with pytest.raises((AnnotatorError, sqlite3.Error), match="cut off"):
        rule_out.rule_out_class(sampled, BOAT, "Ann")
    assert auto_accepted.load_acceptances(sampled) == [] and auto_accepted.load_accepted_cells(sampled) == {}


@pytest.fixture
def accepting(sampled) -> Database:
    """Auto-accept is on, for absent answers too, and has accepted foxes."""
    wanted = Guarantee(0.95, absent=True)
    auto_accept_sample.draw_audit(sampled, wanted)
    for cell in audit_sampling.load_open_cells(sampled):
        state = 1 if cell.image_id <= IMAGES // 2 else -1
        answered = [(cell.image_id, cell.class_id, state, cell.score)]
        assert not decisions.save(sampled, [Batch(str(uuid.uuid4()), "Ann", "audit", answered, run_id=1)]).refused
    auto_accept.set_guarantee(sampled, wanted)
    assert auto_accepted.count_accepted(sampled)["present"] and auto_accepted.count_accepted(sampled)["absent"]
    return sampled


def test_retraining_and_disabling_auto_accept_keep_labels_marked_absent_everywhere(accepting):
    ruled = rule_out.rule_out_class(accepting, BOAT, "Ann")
    of_model = auto_accepted.count_accepted(accepting)
    publish(accepting)
    assert auto_accepted.count_accepted(accepting) == of_model
    auto_accept.set_guarantee(accepting, None)
    assert auto_accepted.count_accepted(accepting) == {"present": 0, "absent": 0}
    assert [(made.batch, made.cells) for made in rule_out.load_rulings(accepting)] == [(ruled.batch, len(OPEN))]
    assert set(auto_accepted.find_ruled_out_classes(accepting)) == {BOAT} and absent_boats(accepting) == OPEN


def test_auto_accept_adds_and_withdraws_no_labels_of_a_class_marked_absent_everywhere(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    new = auto_accepted.NewAcceptance(BOAT, -1, 1, 0.1, 0.99, 0.95, 300, 0, np.array([400]), np.array([0.1]))
    assert not auto_accepted.accept(sampled, "a1", new)
    assert not auto_accepted.withdraw_class(sampled, BOAT, -1, "no longer asked for")
    assert absent_boats(sampled) == OPEN


@pytest.mark.slow
def test_undo_of_marking_absent_everywhere_keeps_auto_accepted_labels(accepting):
    ruled = rule_out.rule_out_class(accepting, BOAT, "Ann")
    of_model = auto_accepted.count_accepted(accepting)
    auto_accept.undo(accepting, ruled.batch)
    assert rule_out.load_rulings(accepting) == [] and auto_accepted.count_accepted(accepting) == of_model
    assert auto_accept.guarantee.get_guarantee(accepting) is not None
    with pytest.raises(AnnotatorError, match="No class was ruled out as batch"):
        rule_out.undo(accepting, auto_accepted.load_acceptances(accepting)[-1].batch)
    assert auto_accepted.count_accepted(accepting) == of_model, "a batch of the model is not this module's to undo"


def test_marking_absent_everywhere_is_refused_after_auto_accept_found_the_class_present(sampled):
    new = auto_accepted.NewAcceptance(BOAT, -1, 1, 0.1, 0.99, 0.95, 300, 0, np.array([399, 400]), np.full(2, 0.1))
    assert auto_accepted.accept(sampled, "a1", new)
    assert rule_out.rule_out_class(sampled, BOAT, "Ann").cells == len(OPEN)
    assert auto_accepted.count_accepted(sampled)["absent"] == 0
    rule_out.undo(sampled, rule_out.load_rulings(sampled)[0].batch)
    present = auto_accepted.NewAcceptance(BOAT, 1, 1, 0.9, 0.99, 0.95, 300, 0, np.array([400]), np.array([0.95]))
    assert auto_accepted.accept(sampled, "a2", present)
    with pytest.raises(AnnotatorError, match="the model has accepted it as present on 1 image"):
        rule_out.rule_out_class(sampled, BOAT, "Ann")


def test_progress_counts_labels_marked_absent_everywhere_apart_from_auto_accepted_ones(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    progress = load_progress(sampled)
    assert (progress.pairs_accepted, progress.pairs_ruled_out, progress.pairs_answered) == (0, len(OPEN), DRAWN)
    assert "280 ruled out after a sample" in progress.sentence() and "model" not in progress.sentence()
    assert collect_status(sampled)["accepted"] == {"present": 0, "absent": 0} and collect_status(sampled)[
        "ruled_out"
    ] == len(OPEN)


def test_audit_and_certificate_include_labels_marked_absent_everywhere(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    audit_sampling.draw_audit(sampled, 200, seed=0)
    asked = {cell.image_id for cell in audit_sampling.load_open_cells(sampled, BOAT)}
    assert len(asked & OPEN) > 20
    assert compute_certificate(sampled).ruled_out == {
        BOAT: "Ruled out by a person after 120 random images: 'boat', 280 images, at most 2.5 % of all show it (95 %)."
    }


def only_boats(db: Database, monkeypatch) -> None:
    """Every fox is answered, and nothing is explored or drawn at random: only the boat is left to ask about."""
    for name, value in {"RANDOM_SHARE": 0.0, "EXPLORATION_CLICK_LIMITS": (0.0, 0, 0), "MAX_EXPLORED_IMAGES": 0}.items():
        monkeypatch.setattr(planner, name, value)
    say(db, "grid", range(1, IMAGES + 1), class_id=FOX)


def test_grid_and_planner_skip_a_class_marked_absent_everywhere_until_undo(sampled, monkeypatch):
    only_boats(sampled, monkeypatch)
    wanted = WantedActions("tab", "Ann", (), 8)

    def searches() -> list:
        work = planner.lease_next_actions(sampled, wanted)
        return [one for one in work.items if one.grid and one.grid.class_id == BOAT]

    offered = searches()
    assert offered and offered[0].source in ("search", "sample")
    offer = offered[0].ruling_out
    assert (offer.class_id, offer.name, offer.absent_answers, offer.images, offer.max_share_text) == (
        BOAT,
        "boat",
        DRAWN,
        280,
        "2.5 %",
    )
    batch = rule_out.rule_out_class(sampled, BOAT, "Ann").batch
    assert searches() == []
    assert grid_queue.lease_next_grids(sampled, WantedGrids("other", "Ben", BOAT, 24, (), 1)).items == []
    whole = planner.lease_next_actions(sampled, WantedActions("third", "Ann", (), 8)).items
    assert all(BOAT not in dict(one.scores) for one in whole)
    rule_out.undo(sampled, batch)
    assert searches()


def test_marking_absent_everywhere_is_offered_only_to_reviewers(sampled, monkeypatch):
    only_boats(sampled, monkeypatch)
    for number, (role, is_made) in enumerate({"annotator": False, "reviewer": True}.items()):
        member = members.add(sampled, role, role, "test")
        authorization.set_member_source(lambda id_=member.id: id_)
        try:
            work = planner.lease_next_actions(sampled, WantedActions(f"tab {number}", role, (), 1))
            assert [one.ruling_out is not None for one in work.items] == [is_made]
            if not is_made:
                with pytest.raises(Forbidden, match="this needs reviewer"):
                    rule_out.rule_out_class(sampled, BOAT, role)
        finally:
            authorization.set_member_source(lambda: None)


def test_autopilot_does_not_offer_marking_absent_everywhere_after_only_95_random_images(many, monkeypatch):
    only_boats(many, monkeypatch)
    say(many, "sample", range(1, 96))
    work = planner.lease_next_actions(many, WantedActions("tab", "Ann", (), 8))
    [search] = [one for one in work.items if one.grid and one.grid.class_id == BOAT][:1]
    assert search.ruling_out is None


def test_whole_image_actions_skip_a_class_marked_absent_everywhere(many, monkeypatch):
    say(many, "sample", range(1, DRAWN + 1))
    rule_out.rule_out_class(many, BOAT, "Ann")
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.0, 0, 0))
    with many.writing() as sql:
        sql.execute("DELETE FROM run")  # without a model images are drawn at random
    actions = planner.lease_next_actions(many, WantedActions("tab", "Ann", (), 8)).items
    assert len(actions) == 8
    for action in actions:
        assert action.kind == "image" and action.decided_cells == 1, "fox is open on all, boat on none"


def test_autopilot_offers_nothing_when_only_labels_marked_absent_everywhere_remain(sampled):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    say(sampled, "grid", range(1, IMAGES + 1), class_id=FOX)
    assert planner.lease_next_actions(sampled, WantedActions("tab", "Ann", (), 1)).items == []


def test_export_gives_labels_marked_absent_everywhere_their_own_provenance(sampled, tmp_path):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    with open_data_set(sampled) as data:
        marked, source = set(), data.view.sources.index("ruled out (sample)")
        for block in data.view.blocks():
            assert not (block.sources == data.view.sources.index("model (accepted)")).any()
            for row, column in zip(*np.nonzero(block.sources == source), strict=True):
                assert (block.values[row, column], block.states[row, column]) == (0, STATE_WORDS.index("absent"))
                marked.add((block.images[row].id, data.view.classes[column].name))
    assert marked == {(image_id, "boat") for image_id in OPEN} and "ruled out (sample)" in FILL_SOURCES
    export_data_set(sampled, tmp_path / "out.csv", "csv")
    assert "ruled out (sample)" in (tmp_path / "out.provenance.csv").read_text()
    card = json.loads((tmp_path / "out.card.json").read_text())
    assert {"state": "absent", "source": "ruled out (sample)", "cells": 280} in card["classes"][1]["cells"]
    assert card["certificate"]["ruled_out"][0].startswith("Ruled out by a person after 120 random images: 'boat'")
    assert "Ann" not in json.dumps(card["certificate"])
    assert "Ruled out by a person after 120 random images" in (tmp_path / "out.card.md").read_text()


def test_import_of_an_export_adds_no_labels_that_were_marked_absent_everywhere(sampled, tmp_path, annotator):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    export_data_set(sampled, tmp_path / "out.csv", "csv")
    copy = project_of_images(tmp_path / "copy")
    annotator("import", copy.paths.project, tmp_path / "out.csv", "--yes")
    labels = [label for label in decisions.load_all_labels(copy) if label.class_id == BOAT]
    assert {label.image_id for label in labels} == set(range(1, DRAWN + 1))
    assert auto_accepted.load_acceptances(copy) == []


def test_export_options_treat_labels_marked_absent_everywhere_like_auto_accepted_ones(sampled, tmp_path):
    rule_out.rule_out_class(sampled, BOAT, "Ann")
    [made] = rule_out.load_rulings(sampled)

    def boats(**choices) -> int:
        path = tmp_path / f"{'-'.join(choices)}.out.csv"
        export_data_set(sampled, path, "csv", Choices(**choices))
        with path.open() as file:
            return sum(row["boat"] == "0" for row in csv.DictReader(file))

    assert boats() == IMAGES
    assert boats(auto_accepted=False) == DRAWN == boats(sources=("sample",)) == boats(annotators=("Ann",))
    assert boats(accepted_precision=made.precision) == IMAGES and boats(accepted_precision=0.99) == DRAWN


def test_accept_command_marks_a_class_absent_everywhere_lists_it_and_undoes_it(sampled, annotator):
    project = sampled.paths.project
    told = annotator("accept", project, "--rule-out", "boat", "--annotator", "Ann").stdout
    assert "boat counts as absent on 280 images" in told and "At most 2.5 % of all images show it" in told
    listed = annotator("accept", project, "--list").stdout
    assert "ruled out by Ann after 120 random images: 280 answers" in listed
    batch = rule_out.load_rulings(sampled)[0].batch
    assert "removed: undone" in annotator("accept", project, "--undo", batch).stdout
    assert auto_accepted.load_accepted_cells(sampled) == {}
    assert prediction_outcomes.count_absent_by_source(sampled, [BOAT])[1] == {BOAT: DRAWN}, "what people answered stays"


def test_undo_of_marking_absent_everywhere_reopens_all_labels_not_answered_since(sampled):
    batch = rule_out.rule_out_class(sampled, BOAT, "Ann").batch
    one = Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=300, class_id=BOAT, state=1)
    assert not decisions.save(sampled, [one]).refused
    publish(sampled)
    assert absent_boats(sampled) == OPEN - {300}
    rule_out.undo(sampled, batch)
    assert set(label_cells.find_open_images(sampled, BOAT, IMAGES)) == OPEN - {300}
