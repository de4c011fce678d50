"""The next best action: what it chooses, for whom, and what it says about it."""

import json
import uuid
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.autopilot_actions import SURE, recorded, sure_db, wanted
from harness.published_runs import publish

from annotator.quality import audit_sampling
from annotator.queues import grid_queue
from annotator.queues.autopilot import acquisition, action_texts, complete_project, planner, relabel
from annotator.records import Batch, Decision, WantedGrids
from annotator.settings import MIN_IMAGES_FOR_FIRST_RUN
from annotator.snapshot import time_model
from annotator.snapshot.closing import closing_plan
from annotator.snapshot.closing.account import load_account
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.classes import classes
from annotator.store.database.arrays import save_array
from annotator.store.labels import decisions, label_cells, project_counts
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import IS_A, Declaration
from annotator.store.runs import prediction_sources

__all__ = ["sure_db"]  # a fixture


def give(db, source: str, asked: list[tuple[int, int, int]], milliseconds=10_000, annotator="Ann") -> None:
    together = [(image_id, class_id, state, None) for image_id, class_id, state in asked]
    batch = Batch(str(uuid.uuid4()), annotator, source, together, None, milliseconds)
    assert not decisions.save(db, [batch]).refused


def answer_whole(db, images: range) -> None:
    """All three classes of some images, so that enough is known for the engine to choose."""
    for image_id in images:
        give(db, "suggestion", [(image_id, class_id, -1) for class_id in (1, 2, 3)])


def test_autopilot_first_offers_a_grid_of_confident_predictions_with_expected_yield(sure_db):
    action = planner.lease_next_actions(sure_db, wanted()).items[0]
    assert action.kind == action.source == "grid" and action.grid.class_id == 1 and action.grid.start == "yes"
    assert action.expected_positives == pytest.approx(sum(tile.probability for tile in action.grid.tiles), abs=0.01)
    tiles = len(action.grid.tiles)
    time = f"about {action.seconds:.0f} s"
    assert action.line == f"Which show fox? Probably most of {tiles} ({time})", "how many, no grid has shown yet"
    assert action.reason == "It adds the most correct labels for your time."
    assert len(action.alternatives) == 2  # a click, and a search for the class without an example


def test_autopilot_without_a_model_offers_each_annotator_another_image_to_click(db):
    first = {planner.lease_next_actions(db, wanted(f"tab {n}", f"person {n}")).items[0].item.image.id for n in range(6)}
    assert len(first) == 6  # nobody gets what somebody else has open
    action = planner.lease_next_actions(db, wanted("another", "Eve")).items[0]
    assert action.kind == action.source == "click" and action.line == "Label this image (about 2 s)"


def test_autopilot_offers_the_most_representative_images_first(db):
    order = [9, 4, 21, 3]
    save_array(db.paths.first_orders / "orders" / "representative.npy", np.array(order, np.int64))
    assert [item.item.image.id for item in planner.lease_next_actions(db, wanted(want=2)).items] == [9, 4]
    answer_cell(db, 21, 1)
    third, *others = planner.lease_next_actions(db, wanted("another", "Eve", want=3)).items
    assert third.item.image.id == 3 and third.kind == "click"
    assert not {item.item.image.id for item in others} & set(order), "when they are used up, the others follow"


def test_autopilot_offers_random_whole_images_during_the_first_training(db):
    for image_id in range(1, MIN_IMAGES_FOR_FIRST_RUN + 1):
        answer_cell(db, image_id, 1)
    action = planner.lease_next_actions(db, wanted()).items[0]
    assert action.kind == "image" and action.preset == () and "drawn at random" in action.reason
    assert "estimate" not in action.reason  # the certificate counts audits alone
    assert action.source == "random"


def test_autopilot_does_not_offer_labels_again_that_the_page_has_already_shown(sure_db):
    first = planner.lease_next_actions(sure_db, wanted()).items[0]
    shown = [(tile.image.id, 1) for tile in first.grid.tiles]
    second = planner.lease_next_actions(sure_db, wanted(passed=shown)).items[0]
    again = [(tile.image.id, second.grid.class_id) for tile in second.grid.tiles] if second.grid else []
    assert not set(shown) & set(again)


def test_autopilot_never_leases_a_label_to_two_annotators(sure_db):
    seen = []
    for holder in ("one", "two", "three"):
        for action in planner.lease_next_actions(sure_db, wanted(holder, holder, want=2)).items:
            whole = [(action.item.image.id, class_id) for class_id in (1, 2, 3)] if action.item else []
            tiles = action.grid.tiles if action.grid else ()
            seen += whole + [(tile.image.id, action.grid.class_id) for tile in tiles]
    assert len(seen) == len(set(seen))


def test_autopilot_continues_until_every_label_is_answered(db, monkeypatch):
    publish(db, SURE)
    for _ in range(200):
        work = planner.lease_next_actions(db, wanted())
        if not work.items:
            break
        action = work.items[0]
        if action.grid:
            give(db, action.source, [(tile.image.id, action.grid.class_id, -1) for tile in action.grid.tiles])
        elif action.kind == "click":
            answer_cell(db, action.item.image.id, action.scores[0][0])
        else:
            there = label_cells.load_answered_cells(db, [action.item.image.id]).get(action.item.image.id, {})
            give(db, action.source, [(action.item.image.id, one, -1) for one in (1, 2, 3) if one not in there])
    assert set(project_counts.count_decisions_by_source(db)) >= {"search", "grid"}
    assert work.empty_reason.startswith("Every class of every image has an answer")
    assert sum(map(len, label_cells.load_answered_cells(db, range(1, 25)).values())) == 72


def test_autopilot_offers_only_requested_optional_checks_once_all_labels_are_answered(db):
    answer_whole(db, range(1, 25))
    publish(db, SURE, decisions.get_newest_decision_id(db))
    audit_sampling.draw_audit(db, 12, seed=1)
    assert planner.lease_next_actions(db, wanted()).items == []
    for extra in complete_project.EXTRA_KINDS:
        asked = planner.lease_next_actions(db, wanted(extra, extra, extras=(extra,))).items
        assert [action.source for action in asked] == [extra]
    cleared = Decision(str(uuid.uuid4()), "clear", "Ann", "click", image_id=5, class_id=2)
    assert not decisions.save(db, [cleared]).refused
    assert planner.lease_next_actions(db, wanted("open", "Bob")).items, "as before, while a pair is open"
    for have in ([(5, 2)], [(5, 0)]):
        assert planner.lease_next_actions(db, wanted("in hand", "Eve", have=have)).items == [], (
            "the last pair is on screen"
        )


def test_project_counts_as_complete_when_only_missing_images_are_unanswered(db):
    answer_whole(db, range(1, 24))
    assert not complete_project.has_no_open_pair(db)
    with db.writing() as sql:
        sql.execute("UPDATE image SET problem = 'missing' WHERE id = 24")
    assert complete_project.has_no_open_pair(db)
    with db.writing() as sql:
        sql.execute("UPDATE image SET problem = 'missing' WHERE id = 1")
    assert complete_project.has_no_open_pair(db), "whose pairs are answered"
    found = complete_project.load_complete_project(db, wanted())
    assert found is not None and found.progress.pairs_answered == 69 and found.doubted_answers is None
    assert action_texts.format_complete_line(found) == (
        "Nothing is left to answer: 24 images, 0 labels. Of 72 pairs: 69 answered, 3 not shown."
    )


@pytest.mark.parametrize(("many", "whole"), [(9, 2), (8, 1)], ids=["few images a class", "many images a class"])
def test_autopilot_explores_unlabeled_images_first_while_the_model_is_unsure(db, monkeypatch, many, whole):
    monkeypatch.setattr(planner, "MANY_IMAGES_PER_CLASS", many)  # times three classes; there are 24 images
    monkeypatch.setattr(planner, "MAX_EXPLORED_OF_MANY", 3)
    monkeypatch.setattr(planner, "RANDOM_SHARE", 0.0)
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.05, 0, 200))  # of 24 images, rounded up: two
    monkeypatch.setattr(planner, "MAX_EXPLORED_IMAGES", 4)  # with those that came first
    answer_whole(db, range(1, 3))
    recorded(db, 0.6, present=4)
    publish(db, np.full((24, 3), 0.6))
    for kind in ("click", "click", *["image"] * whole):
        action = planner.lease_next_actions(db, wanted()).items[0]
        image_id = action.item.image.id
        assert action.kind == kind and "The model learns from it" in action.reason
        assert action.source == {"click": "click", "image": "exploration"}[kind]
        assert label_cells.find_unlabeled_images(db, "", 24, 24).count(image_id) == 1 and image_id > 2
        assert action.preset == ((1, 2, 3) if kind == "image" else ())
        if kind == "click":
            answer_cell(db, image_id, 1)
        else:
            answer_whole(db, range(image_id, image_id + 1))
    assert "learns from it" not in planner.lease_next_actions(db, wanted()).items[0].reason


def test_autopilot_explores_with_single_clicks_when_whole_images_would_take_too_long(db, monkeypatch):
    monkeypatch.setattr(planner, "RANDOM_SHARE", 0.0)
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.05, 0, 200))  # two
    monkeypatch.setattr(
        planner,
        "MAX_EXPLORATION_SECONDS",
        time_model.DEFAULT_TIMES.estimate_image_seconds(3, planner.EXPECTED_POSITIVES) - 0.1,
    )
    publish(db, np.full((24, 3), 0.6))
    for image_id in (1, 2):
        action = planner.lease_next_actions(db, wanted(f"tab {image_id}")).items[0]
        assert action.kind == "click" and "learns from it" in action.reason
        answer_cell(db, image_id, 1)
    assert "learns from it" not in planner.lease_next_actions(db, wanted("third")).items[0].reason
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.5, 0, 200))
    assert planner.lease_next_actions(db, wanted("third")).items[0].kind == "click"
    publish(db, SURE)
    assert "learns from it" not in planner.lease_next_actions(db, wanted("third")).items[0].reason


def test_autopilot_offers_open_audit_labels_without_predictions(db, monkeypatch):
    publish(db, SURE)
    monkeypatch.setattr(planner, "RANDOM_SHARE", 1.0)
    answer_whole(db, range(1, 25))
    assert not audit_sampling.load_open_cells(db) and not planner.lease_next_actions(db, wanted()).items
    drawn = audit_sampling.draw_audit(db, 12, seed=1)
    action = planner.lease_next_actions(db, wanted(extras=("audit",))).items[0]
    assert action.kind == "audit" and action.grid.run_id is None and action.grid.start == "no"
    assert all(tile.probability is None for tile in action.grid.tiles)
    assert drawn.id == audit_sampling.load_open_cells(db)[0].audit_id


def test_grid_of_a_class_with_few_likely_images_takes_the_unlikely_rest_with_it(sure_db):
    few = np.stack([np.r_[np.full(3, 0.9), np.full(21, 0.004)], np.full(24, 0.3), np.full(24, np.nan)], 1)
    publish(sure_db, few)
    grids = acquisition.propose_grids(*evaluated(sure_db), closing_plan.load_plan(sure_db), load_account(sure_db))
    found = {one.class_id: one for one in grids}
    assert len(found[1].cells) == 24, "twelve at first would take one grid more"
    assert len(found[2].cells) == 24


def test_grid_stays_small_for_a_class_with_few_answers(sure_db, monkeypatch):
    monkeypatch.setattr(acquisition, "NEW_CLASS_TILES", 12)
    publish(sure_db, np.full((24, 3), 0.9))
    plan = replace(closing_plan.load_plan(sure_db), answered=np.array([24, 23, 0]))
    grids = acquisition.propose_grids(*evaluated(sure_db), plan, load_account(sure_db))
    found = {one.class_id: one for one in grids}
    assert [len(found[class_id].cells) for class_id in (1, 2, 3)] == [24, 12, 12]


def test_autopilot_grid_size_stays_within_the_grid_size_of_the_annotator(sure_db):
    publish(sure_db, np.full((24, 3), 0.9))
    for tiles, most in ((None, 24), (20, 20), (12, 12), (5, 5)):
        action = planner.lease_next_actions(sure_db, wanted(f"tab {tiles}", tiles=tiles)).items[0]
        assert action.kind == "grid" and len(action.grid.tiles) == most, tiles
    assert acquisition.choose_sizes(None) == acquisition.GRID_SIZES
    assert acquisition.choose_sizes(32) == (12, 24, 32) and acquisition.choose_sizes(500) == acquisition.GRID_SIZES


def evaluated(db):
    return (
        read_snapshot(db),
        time_model.DEFAULT_TIMES,
        grid_queue.UnavailableCells(WantedGrids("tab", "Ann", None, 24, (), 1), []),
    )


def test_autopilot_still_offers_work_after_a_disagreement_and_with_a_wrong_model(sure_db):
    answer_cell(sure_db, 1, 1, 1)
    give(sure_db, "grid", [(1, 1, -1)], annotator="Bob")
    publish(sure_db, np.full((24, 3), np.nan))
    assert planner.lease_next_actions(sure_db, wanted()).items  # nothing is known of any class: images at random
    publish(sure_db, np.stack([np.linspace(1, 0, 24)] * 3, 1), decisions.get_newest_decision_id(sure_db))
    backwards = planner.lease_next_actions(sure_db, wanted("another", "Bob")).items[0]
    assert backwards.expected_positives > 0 and backwards.seconds > 0


def test_relabeling_offers_each_likely_mistake_once_and_expects_more_after_confirmed_ones(sure_db):
    give(sure_db, "grid", [(image_id, 1, -1) for image_id in range(1, 13)])
    give(sure_db, "grid", [(image_id, 1, 1) for image_id in range(17, 25)])
    publish(sure_db, SURE, decisions.get_newest_decision_id(sure_db))
    first = {(one.class_id, one.start_present): one for one in relabel_candidates(sure_db)}
    assert {image_id for image_id, _ in first[1, False].cells} == set(range(1, 13))
    assert {image_id for image_id, _ in first[1, True].cells} == set(range(17, 25))
    give(sure_db, "relabel", [(image_id, 1, 1) for image_id in range(17, 25)])  # relabeled, and nothing changed
    second = {(one.class_id, one.start_present): one for one in relabel_candidates(sure_db)}
    assert set(second) == {(1, False)}
    give(sure_db, "relabel", [(image_id, 1, 1) for image_id in range(1, 7)])  # half of the others were wrong
    third = relabel_candidates(sure_db)[0]
    assert len(third.cells) == 6 and third.expected_positives / 6 > 1.4 * second[1, False].expected_positives / 12


def relabel_candidates(db):
    return list(relabel.propose_grids(db, *evaluated(db), load_account(db)))


def test_autopilot_prefers_a_grid_whose_positives_imply_other_labels(sure_db):
    chances = np.stack([np.full(24, 0.3), np.full(24, 0.33), np.full(24, np.nan)], 1)
    publish(sure_db, chances)
    assert planner.lease_next_actions(sure_db, wanted("first")).items[0].grid.class_id == 2
    declared_relations.declare(sure_db, [Declaration(IS_A, (1, 2))], "Ann")  # whoever is a fox is a heron
    action = planner.lease_next_actions(sure_db, wanted("second", "Bob")).items[0]
    assert action.grid.class_id == 1 and action.expected_positives < 24 * 0.31, (
        "what follows is no promise of this grid"
    )
    give(sure_db, "grid", [(image_id, 2, 1) for image_id in range(1, 25)])  # nothing of a heron is open any more
    implied = planner._Planner(sure_db, wanted(), classes.load_active_classes(sure_db), 24)._implied_counter
    assert implied is not None and implied(1, [1, 2]).tolist() == [0, 0]


def test_imported_predictions_do_not_end_exploration_before_calibration_with_answers(db, monkeypatch):
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.0, 0, 0))
    run_id = publish(db, SURE)
    assert planner.lease_next_actions(db, wanted("first")).items[0].kind == "grid"
    source = prediction_sources.add(
        db, "tagger", "probability", "Ann", np.array([1]), np.array([1]),
        lambda: iter([(np.array([1]), np.array([1]), np.array([[0.9]]))]),
    )  # fmt: skip
    with db.writing() as sql:
        sql.execute("INSERT INTO run_source VALUES (?, ?, 1, '{}')", [run_id, source.id])
    action = planner.lease_next_actions(db, wanted("second", "Bob")).items[0]
    assert action.kind == "image" and action.source == "exploration"
    with db.writing() as sql:  # what a training stores that was calibrated with answers
        calibration = {"kind": "stacked", "slopes": [1, 1, 1], "shifts": [0, 0, 0], "knots": {}}
        sql.execute("UPDATE run SET calibration = ?", [json.dumps(calibration)])
    db.caches.clear()
    assert planner.lease_next_actions(db, wanted("third", "Eve")).items[0].kind == "grid"
