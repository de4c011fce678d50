"""The plan to the end of a project: its work, its seconds, and that Autopilot and the header follow it."""

import uuid
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.autopilot_actions import sure_db, wanted
from harness.published_runs import publish

from annotator.queues.autopilot import action_texts, planner, relabel
from annotator.queues.autopilot.complete_project import PairOffer
from annotator.queues.grid_queue import UnavailableCells
from annotator.records import Batch, WantedGrids
from annotator.snapshot import project_progress
from annotator.snapshot.closing import closing_plan
from annotator.snapshot.closing.account import load_account
from annotator.snapshot.closing.closing_plan import build_plan, count_grids
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import DEFAULT_TIMES
from annotator.store.classes import classes
from annotator.store.labels import decisions

__all__ = ["sure_db"]  # a fixture


def answer_grid(db, class_id: int, image_ids: list[int], source: str = "grid", milliseconds: int = 10_000) -> None:
    cells = [(image_id, class_id, -1, None) for image_id in image_ids]
    batch = Batch(str(uuid.uuid4()), "Ann", source, cells, None, milliseconds)
    assert not decisions.save(db, [batch]).refused


def make_plan(open_cells: list[int], answered: list[int], positives: list[float]) -> closing_plan.ClosingPlan:
    cells, expected = np.zeros((2, len(open_cells), closing_plan.BAND_COUNT))
    cells[:, 0], expected[:, 0] = open_cells, positives
    class_ids = np.arange(1, len(open_cells) + 1)
    return build_plan(class_ids, np.array(open_cells), np.array(answered), cells, expected)


def test_grids_of_a_class_grow_with_its_answers():
    assert count_grids(np.array([300, 300, 0, 1]), np.array([0, 300, 9, 0])).tolist() == [8, 7, 0, 1], (
        "24, 24, five times 48 and 12 tiles, or six times 48 and 12"
    )


def test_plan_seconds_are_those_of_its_grids():
    plan = make_plan([48, 24], [500, 500], [3.0, 0.0])
    seconds = DEFAULT_TIMES.estimate_grid_seconds(48, 3) + DEFAULT_TIMES.estimate_grid_seconds(24, 0)
    assert plan.estimate_seconds(DEFAULT_TIMES) == pytest.approx(seconds)
    assert plan.estimate_saving(1, 48, 3.0, DEFAULT_TIMES) == pytest.approx(
        DEFAULT_TIMES.estimate_grid_seconds(48, 3)
    ), "the grid that closes a class saves all of it"
    assert plan.estimate_saving(1, 12, 1.0, DEFAULT_TIMES) < DEFAULT_TIMES.estimate_grid_seconds(12, 1)


def test_single_open_cell_on_an_image_saves_less_than_it_takes_where_a_grid_closes_more():
    plan = make_plan([50, 1], [500, 500], [1.0, 0.0])
    seconds = DEFAULT_TIMES.estimate_image_seconds(1, 0.0)
    assert plan.estimate_image_saving([1], 0.0, DEFAULT_TIMES) < seconds / 4
    assert plan.estimate_image_saving([2], 0.0, DEFAULT_TIMES) == pytest.approx(seconds), "no grid closes more"


def test_tail_of_scattered_cells_of_a_class_without_a_model_is_closed_by_grids(sure_db):
    for class_id in (1, 2):
        answer_grid(sure_db, class_id, list(range(1, 25)))
    answer_cell(sure_db, 1, 3)  # an example, but no training since
    asked = 0
    while items := planner.lease_next_actions(sure_db, wanted()).items:
        action = items[0]
        assert action.grid is not None and action.grid.class_id == 3 and action.ruling_out is None
        assert "No image is known" not in action.reason
        answer_grid(sure_db, 3, [tile.image.id for tile in action.grid.tiles], action.source)
        asked += 1
    assert asked <= 2


def test_images_that_no_model_ranks_are_closed_by_a_grid(db, monkeypatch):
    monkeypatch.setattr(planner, "RANDOM_SHARE", 0.0)
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.0, 0, 0))
    monkeypatch.setattr(planner, "MAX_EXPLORED_IMAGES", 0)
    for class_id in (1, 2):
        answer_grid(db, class_id, list(range(1, 25)))
    answer_grid(db, 3, list(range(1, 13)))
    publish(db, np.full((24, 3), 0.5), decisions.get_newest_decision_id(db))
    snapshot = read_snapshot(db)
    assert snapshot is not None
    snapshot.rankings.by_class[2, :], snapshot.rankings.by_image[:] = -1, -1  # as of images that were added since
    action = planner.lease_next_actions(db, wanted()).items[0]
    assert action.grid is not None and len(action.grid.tiles) == 12 and action.source == "search"


def test_autopilot_asks_the_grids_of_its_plan(sure_db):
    publish(sure_db, np.stack([np.full(24, 0.01)] * 3, 1))
    planned, asked = int(closing_plan.load_plan(sure_db).grids.sum()), 0
    while items := planner.lease_next_actions(sure_db, wanted()).items:
        if items[0].grid is None:
            continue
        answer_grid(sure_db, items[0].grid.class_id, [tile.image.id for tile in items[0].grid.tiles], items[0].source)
        asked += 1
    assert planned == 3 and asked == planned


def test_header_shows_the_seconds_and_grids_of_the_plan(sure_db):
    answer_grid(sure_db, 1, list(range(1, 25)), milliseconds=24_000)
    progress, plan = project_progress.load_progress(sure_db, "Ann"), closing_plan.load_plan(sure_db)
    times = project_progress.load_pace(sure_db, "Ann")
    assert times is not None and progress.seconds_left is not None and progress.seconds_range is not None
    assert progress.seconds_left == pytest.approx(float(plan.parts @ times.middle))
    low, high = progress.seconds_range
    assert low < progress.seconds_left < high and progress.grids_left == plan.grids.sum() == 2
    answer_grid(sure_db, 2, list(range(1, 25)), milliseconds=24_000)
    after = project_progress.load_progress(sure_db, "Ann").seconds_left
    assert after is not None and after < 0.75 * progress.seconds_left


def test_random_action_is_left_out_where_its_seconds_would_exceed_their_share(sure_db, monkeypatch):
    monkeypatch.setattr(planner, "RANDOM_SHARE", 0.05)
    chooser = planner._Planner(sure_db, wanted(tiles=12), classes.load_active_classes(sure_db), 24)
    assert chooser._lease_random(1.0, 0.04) is None, "it takes several times the second of the best action"
    action = chooser._lease_random(60.0, 0.04)
    assert action is not None and action.grid is not None and action.source == "sample"
    assert action.reason == "No image is known to show it yet." or "drawn at random" in action.reason


def test_recheck_without_an_expected_change_is_offered_only_on_request(sure_db):
    answer_grid(sure_db, 1, list(range(1, 13)))
    publish(sure_db, np.stack([np.full(24, 0.97)] * 3, 1), decisions.get_newest_decision_id(sure_db))
    account, snapshot = load_account(sure_db), read_snapshot(sure_db)
    assert snapshot is not None
    given = (snapshot, DEFAULT_TIMES, UnavailableCells(WantedGrids("tab", "Ann", None, 24, (), 1), []))
    assert list(relabel.propose_grids(sure_db, *given, account)), "the model contradicts twelve answers"
    right = replace(account, relabels={-1: (40, 0)})
    assert not list(relabel.propose_grids(sure_db, *given, right))
    assert list(relabel.propose_grids(sure_db, *given, right, ask_once=True))


def test_audit_that_finds_no_wrong_answer_lowers_the_number_of_answers_that_may_be_wrong(sure_db):
    answer_grid(sure_db, 1, list(range(1, 13)))
    answer_grid(sure_db, 2, list(range(1, 25)))
    publish(sure_db, np.stack([np.full(24, 0.97), np.full(24, 0.01), np.full(24, 0.01)], 1), 36)
    before = expect_changes(sure_db)
    answer_grid(sure_db, 2, list(range(1, 25)), "audit")
    assert load_account(sure_db).audited == (24, 0) and 0 < expect_changes(sure_db) < 0.8 * before


def expect_changes(db) -> float:
    snapshot = read_snapshot(db)
    assert snapshot is not None
    out = UnavailableCells(WantedGrids("tab", "Ann", None, 24, (), 1), [])
    return sum(changes for _, changes in relabel.list_checks(db, snapshot, out, load_account(db)))


def test_offer_to_check_answers_states_how_many_are_expected_to_be_wrong():
    line = action_texts.format_doubted_line(PairOffer(68, 27.0, 2.1))
    assert line == "About 2 of 68 answers that the model contradicts may be wrong. About 27 seconds."
    line = action_texts.format_doubted_line(PairOffer(68, 27.0, 0.3))
    assert line.startswith("Probably none of 68 answers that the model contradicts is wrong.")
