"""Guesses on a whole image: only where the record of this project says that they save presses."""

import numpy as np
import pytest
from harness.autopilot_actions import recorded, sure_db, wanted
from harness.published_runs import publish

from annotator.queues.autopilot import acquisition, planner
from annotator.snapshot.closing import closing_plan
from annotator.snapshot.preset_threshold import find_preset_threshold, find_saving_bound
from annotator.snapshot.time_model import DEFAULT_TIMES

__all__ = ["sure_db"]  # a fixture


@pytest.mark.parametrize(
    ("record", "bound"),
    [
        ([(0.5, 0, 0), (0.9, 0, 0)], None),  # nobody has answered such a cell
        ([(0.5, 0, 0), (0.9, 2, 0)], None),  # 2 saved; by chance 1.64 * sqrt(2) = 2.3
        ([(0.5, 0, 0), (0.9, 3, 0)], 0.9),  # 3 saved; by chance 1.64 * sqrt(3) = 2.8
        ([(0.5, 3, 5), (0.9, 9, 0)], 0.9),  # 9 from 0.9 on, 7 from 0.5 on
        ([(0.5, 5, 3), (0.9, 9, 0)], 0.5),  # 11 from 0.5 on
        ([(0.5, 4, 4), (0.9, 9, 0)], 0.9),  # as many from 0.5 on: what saves nothing is not guessed
        ([(0.5, 9, 10), (0.9, 10, 9)], None),  # 1 of 19, by chance 7
        ([(0.5, 100, 80), (0.9, 10, 30)], None),  # wrong where it was surest: 0 in all
    ],
)
def test_preselection_threshold_maximizes_the_key_presses_saved_in_past_answers(record, bound):
    assert find_saving_bound(record) == bound


def test_predicted_classes_are_preselected_only_after_enough_correct_predictions(sure_db):
    publish(sure_db, np.full((24, 3), 0.72))
    assert find_preset_threshold(sure_db) is None
    assert _whole(sure_db).preset == ()
    recorded(sure_db, 0.72, present=2, absent=1)
    assert find_preset_threshold(sure_db) is None, "2 right and 1 wrong of 3"
    recorded(sure_db, 0.72, present=3)
    assert find_preset_threshold(sure_db) is None, "5 right and 1 wrong save 4; by chance 1.64 * sqrt(6) = 4.02"
    recorded(sure_db, 0.72, present=1)
    assert find_preset_threshold(sure_db) == 0.7, "6 right and 1 wrong save 5; by chance 1.64 * sqrt(7) = 4.3"
    assert _whole(sure_db).preset == (1, 2, 3)
    publish(sure_db, np.full((24, 3), 0.68))
    assert _whole(sure_db).preset == (), "of such probabilities there is no record"


def test_expected_key_presses_per_image_depend_on_the_preselection_threshold(db):
    plan = closing_plan.load_plan(db)
    chances = {1: 0.9, 2: 0.6, 3: 0.1}
    candidate = lambda bound: acquisition.build_image_candidate(1, chances, DEFAULT_TIMES, plan, preset_threshold=bound)  # noqa: E731
    assert candidate(None).expected_presses == pytest.approx(1.6)  # 0.9 + 0.6 + 0.1 are marked
    assert candidate(0.5).expected_presses == pytest.approx(0.6)  # 0.1 + 0.4 are taken back, 0.1 is marked
    assert candidate(0.8).expected_presses == pytest.approx(0.8)  # 0.1 is taken back, 0.6 + 0.1 are marked


def _whole(db):
    """The best image to answer as a whole, as Autopilot would show it."""
    leasing = planner._Planner(db, wanted(), *_facts(db)).leaser
    candidate = acquisition.build_image_candidate(5, leasing.load_open_classes(5), DEFAULT_TIMES, leasing.plan)
    action = leasing.lease_action(candidate)
    assert action and action.kind == "image"
    return action


def _facts(db):
    from annotator.store.classes import classes
    from annotator.store.labels import project_counts

    return classes.load_active_classes(db), project_counts.count_images_by_stage(db)["all"]
