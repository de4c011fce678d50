"""`bench effort`: made-up people answer by the truth, and what is reported is what the store holds."""

import json

import numpy as np
import pytest
from harness.adaptable import IMAGES, draw_all, make_network, shown
from harness.photo_truth import small_set

from annotator.benchmark.effort import curves, effort_measurement
from annotator.benchmark.effort.changed_constants import iterate_changes, replace_constant
from annotator.benchmark.effort.comparison import choose_settings, compare_policies, find_goal_level
from annotator.benchmark.effort.effort_measurement import EffortOptions
from annotator.benchmark.effort.play import Play, play_all
from annotator.benchmark.effort.policies import SETTING_POLICIES, shift_to_total
from annotator.benchmark.effort.session import Session
from annotator.benchmark.plots import draw_curves
from annotator.benchmark.reports import format_markdown
from annotator.benchmark.simulated_people import ERROR_SHARE, MISSED_SHARE, Person
from annotator.errors import AnnotatorError
from annotator.queues.autopilot import acquisition, planner
from annotator.snapshot import preset_threshold
from annotator.snapshot.time_model import TimeModel
from annotator.store.networks import adapted_networks, configuration
from annotator.store.runs import runs

TRUTH = np.random.default_rng(0).random((400, 6)) < 0.3


def point(actions: int, recall: float, precision: float = 1.0) -> dict:
    one = {"recall": recall, "precision": precision, "micro_f1": recall}
    spent = {"actions": actions, "seconds": 2.5 * actions, "parts": {"click": actions}}
    return {**spent, "decided": one, "filled": one}


def test_perfect_simulated_annotator_answers_the_truth_and_presses_only_for_changes():
    person = Person.build(TRUTH, noisy=False, seed=0)
    rows, columns = np.arange(400), np.zeros(400, int)
    answers, presses = person.answer(rows, columns, np.ones(400, bool))
    assert (answers == TRUTH[:, 0]).all() and presses == (~TRUTH[:, 0]).sum()


def test_noisy_simulated_annotator_misses_small_objects_and_errs_at_the_set_rate():
    person = Person.build(np.repeat(TRUTH, 20, 0), noisy=True, seed=0)
    rows, columns = np.arange(8000), np.zeros(8000, int)
    there, small = person.truth[:, 0], person.small[:, 0]
    answers, _ = person.answer(rows, columns, np.zeros(8000, bool))
    assert (~answers[there & small]).mean() == pytest.approx(MISSED_SHARE + ERROR_SHARE, abs=0.08)
    assert (~answers[there & ~small]).mean() == pytest.approx(ERROR_SHARE, abs=0.012)
    assert 0 < answers[~there].sum() < 3 * ERROR_SHARE * there.sum()


def test_effort_goal_requires_both_recall_and_precision():
    curve = [point(10, 0.5), point(20, 0.96, 0.98), point(30, 0.951, 0.99)]
    found = curves.find_goal_point(curve)
    assert found and found["actions"] == 30 and curves.find_goal_point(curve[:2]) is None


def test_effort_goal_is_interpolated_linearly_between_points():
    found = curves.find_goal_point([point(10, 0.93), point(20, 0.98), point(30, 0.99)])
    assert found == {"actions": 14, "seconds": 35.0, "parts": {"click": pytest.approx(14)}}


def test_largest_f1_shortfall_is_compared_at_equal_action_counts_from_100_actions_on():
    ours = [point(0, 0.0), point(100, 0.5), point(200, 0.8)]
    theirs = [point(0, 0.0), point(50, 0.9), point(100, 0.5), point(150, 0.7), point(200, 0.8)]
    assert curves.find_largest_shortfall(ours, theirs) == (pytest.approx(1 - 0.65 / 0.7, abs=1e-4), 150)


def test_largest_f1_shortfall_over_time_ignores_the_first_five_minutes():
    def at(seconds: float, micro_f1: float) -> dict:
        return point(round(seconds), micro_f1) | {"seconds": seconds}

    ours = [at(0, 0.0), at(299, 0.1), at(400, 0.6), at(500, 0.8)]
    theirs = [at(0, 0.0), at(100, 0.5), at(300, 0.1), at(400, 0.75), at(900, 1.0)]
    assert curves.find_largest_shortfall(ours, theirs, "seconds") == (pytest.approx(0.2), 400)
    assert curves.find_largest_shortfall(theirs, theirs, "seconds") == (0.0, None)


def test_autopilot_is_compared_with_the_best_other_policy_of_each_recall_goal():
    played = {
        Play("form", "perfect", 0): [point(0, 0.0), point(100, 1.0)],
        Play("form", "perfect", 1): [point(0, 0.0), point(100, 1.0)],
        Play("grid-only", "perfect", 0): [point(0, 0.0), point(10, 0.8), point(400, 1.0)],
        Play("grid-only", "perfect", 1): [point(0, 0.0), point(30, 0.8), point(400, 1.0)],
        Play("autopilot", "perfect", 0): [point(0, 0.0), point(50, 1.0)],
        Play("autopilot", "perfect", 1): [point(0, 0.0), point(40, 0.92)],
    }
    tables = compare_policies(played)
    lead = {(row["goal"], row["cost"]): row for row in tables["lead"]}
    assert lead[0.8, "actions"]["best"] == "grid-only"
    assert lead[0.8, "actions"]["ratio"] == {"mean": pytest.approx(2.58, abs=0.01), "low": 1.167, "high": 4.0}
    assert lead[0.9, "seconds"]["best"] == "form"
    assert lead[0.99, "seconds"]["ratio"] is None  # one seed does not reach it
    ours = {row["goal"]: row for row in tables["goals"] if row["policy"] == "autopilot"}
    assert (ours[0.99]["reached"], ours[0.99]["seeds"]) == (1, 2) and ours[0.9]["actions"]["low"] < 45


def test_goals_of_noisy_annotators_are_relative_to_the_final_quality_of_the_form_policy():
    noisy = {
        Play("form", "noisy", 0): [point(0, 0.0), point(100, 0.9, 0.97)],
        Play("autopilot", "noisy", 0): [point(0, 0.0), point(60, 1.0, 0.965)],
    }
    for play in noisy:
        assert find_goal_level(noisy, play, 0.95) == (pytest.approx(0.855), pytest.approx(0.96))
    assert [row["ratio"]["mean"] for row in compare_policies(noisy)["lead"] if row["goal"] == 0.95] == [0.537, 0.54]


def test_annotation_seconds_are_computed_from_logged_actions_for_any_time_model():
    one = {"actions": 5, "parts": {"begin": 1, "tile": 24, "change": 4, "submit": 1}}
    usual = TimeModel()
    assert curves.compute_seconds(one, usual) == pytest.approx(usual.estimate_grid_seconds(24, 4))
    double = curves.make_time_models()["tile_double"]
    assert curves.compute_seconds(one, double) == pytest.approx(usual.estimate_grid_seconds(24, 4) + 24 * usual.tile)


def test_unknown_policy_error_lists_the_available_policies():
    with pytest.raises(AnnotatorError, match="autopilot"):
        effort_measurement.measure_effort(options=EffortOptions(["autopilt"]))


def test_simulated_expert_scores_sum_to_the_remaining_positives_in_model_order():
    chances = np.array([0.9, 0.5, 0.1, 0.01])
    for total in (1, 2, 3):
        known = shift_to_total(chances, total)
        assert known.sum() == pytest.approx(total, abs=1e-6) and (np.diff(known) < 0).all()
    assert shift_to_total(np.zeros(4), 4) == pytest.approx(np.ones(4))


def test_policy_setting_search_chooses_the_setting_with_fewest_actions_and_reports_all():
    played = {
        Play("form", "perfect", 0): [point(0, 0.0), point(100, 1.0)],
        Play("a", "perfect", 0): [point(0, 0.0), point(60, 1.0)],
        Play("b", "perfect", 0): [point(0, 0.0), point(40, 1.0)],
        Play("c", "perfect", 0): [point(0, 0.0), point(10, 0.9)],
    }
    chosen, searched = choose_settings(played, "best-mixture", ("a", "b", "c"))
    assert [play.policy for play in chosen] == ["form", "best-mixture"]
    assert chosen[Play("best-mixture", "perfect", 0)] == played[Play("b", "perfect", 0)]
    assert [(row["setting"], row["actions"], row["chosen"]) for row in searched] == [
        ("a", 57, False),
        ("b", 38, True),
        ("c", None, False),
    ]


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.training
def test_mixture_policies_label_a_small_dataset_completely_and_correctly(tmp_path, photos):
    shown = effort_measurement.make_project(
        tmp_path / "project", photos, small_set(tmp_path, photos), "efficientnet_lite0"
    )
    plays = [Play(name, "perfect", 0) for name in list(SETTING_POLICIES)[2::4]]
    for curve in play_all(tmp_path / "project", tmp_path / "plays", shown, plays, 1000.0).values():
        assert curve[-1]["decided"]["recall"] == curve[-1]["decided"]["precision"] == 1


@pytest.mark.slow
@pytest.mark.process
def test_parallel_simulations_equal_serial_ones(tmp_path, photos):
    shown = effort_measurement.make_project(
        tmp_path / "project", photos, small_set(tmp_path, photos), "efficientnet_lite0"
    )
    plays = [Play("form", "noisy", 0), Play("form", "noisy", 1), Play("grid-only", "noisy", 0)]
    serial, parallel = (
        play_all(tmp_path / "project", tmp_path / f"{jobs} jobs", shown, plays, 30.0, jobs) for jobs in (1, 2)
    )
    assert serial == parallel and list(serial) == plays
    assert serial[plays[0]] != serial[plays[1]]  # another seed is another person


def test_replace_constant_restores_the_planner_constant_afterwards():
    own = vars(preset_threshold) | vars(acquisition) | vars(planner)
    for name, value in iterate_changes():
        before = own[name]
        with replace_constant(name, value):
            assert (vars(preset_threshold) | vars(acquisition) | vars(planner))[name] == value != before, name
        assert (vars(preset_threshold) | vars(acquisition) | vars(planner))[name] == before, name


@pytest.mark.slow
@pytest.mark.training
def test_simulated_session_uses_an_adapted_backbone_only_when_judged_better(tmp_path):
    photos, truth = draw_all(tmp_path / "photos"), tmp_path / "truth.csv"
    rows = [f"{number:03}.jpg,{'|'.join(shown(number))}\n" for number in range(IMAGES)]
    truth.write_text("image,labels\n" + "".join(rows))
    network = f"local-dir:{make_network(tmp_path / 'network')}"
    known = effort_measurement.make_project(tmp_path / "project", photos, truth, network)
    person = Person.build(known, noisy=False, seed=0)
    session = Session(tmp_path / "project", tmp_path / "copy", known, person, learns=True, seed=0)
    # there is nothing to judge by
    assert session.adapt_network() is None and configuration.get_backbone(session.db) == network
    for image_id in session.shuffle_images():
        session.fill_form(image_id)
    session.keep_up()
    made = session.adapt_network()
    assert made is not None and made.parent == network and made.held_out_images > 3
    assert configuration.get_backbone(session.db) == (made.name if made.is_better else network)
    adapted_networks.set_next_backbone(session.db, made.name)  # as if it had been
    session.change_network()
    run = runs.load_current_run(session.db)
    assert (
        run is not None and run.backbone == configuration.get_backbone(session.db) == made.name and run.images == IMAGES
    )
    session.close()


@pytest.mark.slow
def test_every_policy_labels_a_small_dataset_and_the_form_needs_the_expected_actions(tmp_path, photos):
    truth = small_set(tmp_path, photos)
    result = effort_measurement.measure_effort(
        photos,
        truth,
        EffortOptions(
            ["form", "random", "expert-grids", "autopilot"], work=tmp_path / "work", backbone="efficientnet_lite0"
        ),
    )
    json.dumps(result)
    assert result["backbone"] == "efficientnet_lite0"
    labels = round(result["figures"]["labels_per_image"] * 24)
    by = {(one["policy"], one["person"]): one["points"] for one in result["curves"]}
    assert by["form", "perfect"][-1]["actions"] == labels + 24
    for points in (
        by["form", "perfect"],
        by["random", "perfect"],
        by["expert-grids", "perfect"],
        by["autopilot", "perfect"],
    ):
        assert points[-1]["decided"]["recall"] == points[-1]["decided"]["precision"] == 1
        assert [one["actions"] for one in points] == sorted(one["actions"] for one in points)
    assert result["ratios"]["form_over_autopilot_actions_at_recall_95"] == pytest.approx(
        result["figures"]["form_actions_at_recall_95"] / result["figures"]["autopilot_actions_at_recall_95"], abs=0.01
    )
    text = format_markdown(effort_measurement.build_effort_report(result, "annotator bench effort"))
    assert (
        f"| {result['figures']['form_actions_at_recall_95']:,.0f} |" in text and "Autopilot over the best other" in text
    )
    draw_curves(result, tmp_path / "effort.png")
    assert (tmp_path / "effort.png").stat().st_size > 5000
