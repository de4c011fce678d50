"""The account of Autopilot: what promises were worth decides what comes next, at once and without a training."""

import uuid

import numpy as np
import pytest
from harness.autopilot_actions import sure_db, wanted
from harness.published_runs import publish

from annotator.queues.autopilot import planner
from annotator.queues.autopilot.actions import Action
from annotator.records import Batch, Decision
from annotator.snapshot.closing import account
from annotator.snapshot.closing.account import Account, load_account
from annotator.store.labels import decisions
from annotator.store.labels.prediction_outcomes import ScoredAnswers

__all__ = ["sure_db"]  # a fixture


def grid(db, class_id: int, images: range, chance: float | None, present: int = 0, source: str = "grid") -> str:
    """Answer one grid in which the model promised `chance` of every tile; return the uuid of its batch."""
    states = [1] * present + [-1] * (len(images) - present)
    asked = [(image_id, class_id, state, chance) for image_id, state in zip(images, states, strict=True)]
    batch = Batch(str(uuid.uuid4()), "Ann", source, asked, None, 10_000)
    assert not decisions.save(db, [batch]).refused
    return batch.uuid


def account_for(class_id: int, tiles: int, chance: float, present: int, in_grid: bool = True) -> Account:
    rows = [(class_id, chance, place < present, in_grid) for place in range(tiles)]
    return Account.build(ScoredAnswers.from_rows(rows))


def test_autopilot_lowers_expected_positives_after_too_few_found_mostly_for_that_class():
    made = account_for(1, 192, 0.06, present=1)  # 11.5 promised
    before, after = np.full(96, 0.06), made.correct_for_grid(1, np.full(96, 0.06))
    assert after.sum() < before.sum() / 3
    # Nothing says that of other classes, but a little.
    assert before.sum() / 3 < made.correct_for_grid(2, before).sum() < before.sum()


def test_autopilot_raises_expected_positives_after_more_found_up_to_a_probability_limit():
    made = account_for(1, 96, 0.6, present=96)
    worth = made.correct_for_image([1, 1, 2], np.array([0.6, 0.995, np.nan]))
    assert 0.6 < worth[0] <= account.MAX_CORRECTED_PROBABILITY and worth[1] == 0.995 and worth[2] == 0


def test_yield_correction_weights_newer_grid_answers_more_than_older_ones():
    barren, rich = [(1, 0.1, False, True)] * 200, [(1, 0.1, place % 5 == 0, True) for place in range(200)]
    first_rich, first_barren = (Account.build(ScoredAnswers.from_rows(rows)) for rows in (rich + barren, barren + rich))
    assert first_rich.correct_for_grid(1, np.array([0.1])) < first_barren.correct_for_grid(1, np.array([0.1])) / 1.5


def test_yield_account_counts_stored_grid_answers_and_drops_undone_ones(db):
    assert load_account(db).answered_tiles == {}
    batch = grid(db, 1, range(1, 13), 0.25)
    low = load_account(db)
    assert low.answered_tiles == {1: 12} and low.tiles_without_positive == {1: 12}
    grid(db, 1, range(13, 25), 0.25, present=1)
    assert load_account(db).answered_tiles == {1: 24} and load_account(db).tiles_without_positive == {1: 11}
    undo = Decision(str(uuid.uuid4()), "undo", "Ann", "grid", undoes=batch)
    assert not decisions.save(db, [undo]).refused
    after = load_account(db)
    assert after.answered_tiles == {1: 12} and after.correct_for_grid(1, np.array([0.25])) > low.correct_for_grid(
        1, np.array([0.25])
    )


def test_whole_image_answers_correct_the_expected_yield_of_images_but_not_of_grids():
    rows = [(1 + place % 3, 0.3, False, False) for place in range(60)]  # 18 promised on whole images, none found
    made = Account.build(ScoredAnswers.from_rows(rows))
    assert made.correct_for_image([1], np.array([0.3])) < 0.2
    assert made.correct_for_grid(1, np.array([0.3])) == pytest.approx(0.3)


@pytest.mark.usefixtures("sure_db")
def test_autopilot_offers_another_class_after_a_grid_without_positives(sure_db):
    chances = np.stack([np.full(24, 0.3), np.full(24, 0.25), np.full(24, np.nan)], 1)
    publish(sure_db, chances)
    first = planner.lease_next_actions(sure_db, wanted("first")).items[0]
    assert first.kind == "grid" and first.grid.class_id == 1
    grid(sure_db, 1, range(1, 13), 0.3)  # the same version goes on: no training has seen these answers
    second = planner.lease_next_actions(sure_db, wanted("second", "Bob")).items[0]
    assert second.kind == "grid" and second.grid.class_id == 2


@pytest.mark.usefixtures("sure_db")
def test_autopilot_grid_text_estimates_positives_only_after_a_first_grid_of_the_class(sure_db):
    publish(sure_db, np.stack([np.full(24, 0.3), np.full(24, np.nan), np.full(24, np.nan)], 1))
    line = planner.lease_next_actions(sure_db, wanted("first")).items[0].line
    assert line.startswith("Which show fox? The first grid of 24 (") and "robably" not in line
    grid(sure_db, 1, range(1, 13), 0.3, present=4)
    assert "Which show fox? Probably " in planner.lease_next_actions(sure_db, wanted("first")).items[0].line


@pytest.mark.usefixtures("sure_db")
def test_search_action_states_how_rare_a_class_is_after_random_images_without_it(sure_db):
    publish(sure_db, np.full((24, 3), np.nan))
    for class_id in (2, 3):
        grid(sure_db, class_id, range(1, 25), None, source="sample")
    found = search(sure_db)
    assert found.line.startswith("Does any show fox?") and "unusual images" in found.line
    assert "None of" not in found.reason
    grid(sure_db, 1, range(1, 21), None, source="sample")
    assert "None of 20 random images did, so at most 13.9 % of all do (95 %)." in search(sure_db).reason


def search(db) -> Action:
    """The first search that comes, whatever comes before it."""
    actions = planner.lease_next_actions(db, wanted("first", want=8)).items
    return next(action for action in actions if action.source in ("search", "sample"))
