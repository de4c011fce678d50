"""The time model: what the times of a person's answers tell of each part of the work, and what they cannot tell."""

import json
import uuid

import numpy as np
import pytest
from harness.autopilot_actions import sure_db, wanted
from harness.published_runs import publish

from annotator.benchmark import simulated_people
from annotator.queues.autopilot import planner
from annotator.records import Batch, Decision
from annotator.snapshot import time_model, time_report
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel, load_time_model
from annotator.store.labels import answer_times, decisions
from annotator.store.labels.answer_times import TimedAnswer
from annotator.store.people import speed_tests
from spmll.statistics.time_regression import INTERVAL_QUANTILES, fit_times

__all__ = ["sure_db"]  # a fixture

ONE = np.ones(1)


def intervals(answers: list[TimedAnswer]) -> np.ndarray:
    """(2, parts): the ends of the 95 % intervals."""
    return np.quantile(time_model.estimate_times(answers, draws=True).draws, INTERVAL_QUANTILES, axis=0)


def give(db, kind: str, cells: list[tuple], seconds: float, source: str = "", annotator: str = "Ann") -> None:
    """One answer; cells: image, class, state, probability."""
    taken = round(1000 * seconds)
    if kind == "click":
        [(image_id, class_id, state, _)] = cells
        given = Decision(str(uuid.uuid4()), "label", annotator, "click", image_id, class_id, state, milliseconds=taken)
    else:
        source = source or {"grid": "grid", "image": "suggestion"}[kind]
        given = Batch(str(uuid.uuid4()), annotator, source, cells, None, taken)
    assert not decisions.save(db, [given]).refused


def work(db, annotator: str, times: TimeModel, rng: np.random.Generator, grids: int = 20) -> None:
    """What a person with these times answers: grids of two sizes, whole images, clicks. Probabilities match answers."""
    varied = rng.lognormal(-0.02, 0.2, (grids, 3))
    for number in range(grids):
        size, changes = ((8, 3), (24, 1), (24, 8), (8, 0))[number % 4]
        cells = [(image, 2, 1 if image <= changes else -1, 0.1) for image in range(1, size + 1)]
        give(db, "grid", cells, times.estimate_grid_seconds(size, changes) * varied[number, 0], annotator=annotator)
        asked = (2, 3)[: 1 + number % 3 // 2]
        cells = [(number + 1, class_id, 1 if class_id == 2 and number % 2 else -1, 0.1) for class_id in asked]
        give(
            db,
            "image",
            cells,
            times.estimate_image_seconds(len(asked), number % 2) * varied[number, 1],
            annotator=annotator,
        )
        give(db, "click", [(number + 1, 3, 1, None)], times.click * varied[number, 2], annotator=annotator)


@pytest.mark.slow
def test_time_model_intervals_cover_the_true_times_as_often_as_stated():
    held, narrower = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        person = simulated_people.draw_person_times(rng)
        low, high = intervals(simulated_people.draw_answer_log(rng, person, 40))
        truth = np.array(list(vars(person).values()))
        held.append((low <= truth) & (truth <= high))
        narrower.append(np.log(high / low))
    # 700 intervals that hang together by persons; annotator bench pace has the figure over many more.
    assert 0.92 <= np.mean(held) <= 0.98
    prior = np.log(intervals([])[1] / intervals([])[0])
    assert (np.mean(narrower, 0) < prior).all()
    assert dict(zip(TIME_PARTS, np.mean(narrower, 0) < 0.6 * prior, strict=True))["tile"]


def test_time_model_without_answers_equals_the_defaults_with_wide_intervals():
    low, high = intervals([])
    defaults = np.array(list(vars(DEFAULT_TIMES).values()))
    assert time_model.fit_time_model([]) == DEFAULT_TIMES
    assert low == pytest.approx(defaults / 4.8, rel=0.15) and high == pytest.approx(defaults * 4.8, rel=0.15)


def test_time_model_keeps_wide_intervals_for_time_parts_that_never_vary_separately():
    grids = [TimedAnswer("grid", 24, 3, seconds) for seconds in 15 * np.random.default_rng(0).lognormal(0, 0.3, 400)]
    low, high = intervals(grids)
    width = dict(zip(TIME_PARTS, high / low, strict=True))
    assert all(width[part] > 2 for part in TIME_PARTS), width  # one equation: no part is told from another
    assert all(width[part] > 4 for part in ("change", "submit", "begin")), width
    seconds, low, high = time_model.estimate_times(grids, draws=True).estimate_task(
        time_model.count_parts("grid", 24, 3)
    )
    assert high / low < 1.1 and low < seconds < high  # the whole grid is well known
    varied = simulated_people.draw_answer_log(np.random.default_rng(0), DEFAULT_TIMES, 400)
    low, high = intervals(varied)
    width = dict(zip(TIME_PARTS, high / low, strict=True))
    assert width["click"] < 1.3 and width["tile"] < 2 and width["begin"] > 3  # begin and submit always come together


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("seed", "clicks", "images", "grids"), [(48, 13, 46, 199), (324, 48, 29, 116)])
def test_time_model_reproduces_answer_times_without_any_noise(seed, clicks, images, grids):
    rng, counts = np.random.default_rng(seed), []
    _ = [rng.integers(0, most) for most in (101, 120, 400)]  # the logs in which it was found began so
    for kind in ["click"] * clicks + ["image"] * images + ["grid"] * grids:
        size = {"click": 1, "image": 19, "grid": int(rng.choice([12, 24, 48, 96]))}[kind]
        changes = 1.0 if kind == "click" else rng.poisson(1.4 if kind == "image" else 4)
        counts.append(time_model.count_parts(kind, size, changes))
    prior = np.array([getattr(DEFAULT_TIMES, part) for part in TIME_PARTS])
    seconds, groups = np.array(counts) @ prior, np.repeat([2, 1, 0], [clicks, images, grids])
    times = fit_times(np.array(counts), np.round(seconds, 3), groups, prior)
    assert np.array(counts) @ times.middle == pytest.approx(seconds, rel=0.1)


def test_time_model_estimate_is_robust_to_outlying_answer_times():
    clicks = [
        TimedAnswer("click", 1, 0, seconds) for seconds in 4 * np.random.default_rng(1).lognormal(-0.045, 0.3, 60)
    ]
    disturbed = [*clicks, *[TimedAnswer("click", 1, 0, 500.0)] * 3, TimedAnswer("click", 1, 0, 0.02)]
    assert time_model.fit_time_model(clicks).click == pytest.approx(4, rel=0.1)
    assert time_model.fit_time_model(disturbed).click == pytest.approx(
        time_model.fit_time_model(clicks).click, rel=0.05
    )
    assert np.mean([answer.seconds for answer in disturbed]) > 25


def test_time_model_follows_an_annotator_20_times_slower_than_the_default():
    slow = time_model.fit_time_model([TimedAnswer("click", 1, 0, 50.0)] * 30)
    assert slow.click == pytest.approx(50, rel=0.05)
    # a quarter of what speeds differ by is common to all parts
    assert slow.tile == pytest.approx(DEFAULT_TIMES.tile * 20**0.25, rel=0.05)


def test_slow_grids_of_an_annotator_fast_at_images_are_not_treated_as_pauses():
    """So Autopilot goes on with images: with half of the variance in common the grid still looked as quick."""
    times = TimeModel(tile=2.0, look=0.5, check=0.15)
    quick = [TimedAnswer("click", 1, 1, times.click)] * 20 + [
        TimedAnswer("image", 12, 2, times.estimate_image_seconds(12, 2))
    ] * 12
    ratios = []
    for grids in (0, 2, 5):
        found = time_model.fit_time_model(
            [*quick, *[TimedAnswer("grid", 24, 8, times.estimate_grid_seconds(24, 8))] * grids]
        )
        ratios.append((found.estimate_grid_seconds(24, 8) / 24) / (found.estimate_image_seconds(12, 2) / 12))
    true = (times.estimate_grid_seconds(24, 8) / 24) / (times.estimate_image_seconds(12, 2) / 12)
    assert ratios[1] > 2 * ratios[0] and ratios[2] > 0.7 * true, (ratios, true)


@pytest.mark.parametrize(
    ("source", "states", "chance", "changes"),
    [
        ("grid", [1, 1, 1, -1], 0.9, 1),  # began as present
        ("grid", [-1, -1, 0, 1], 0.1, 3),  # began as absent; unsure is two presses
        ("grid", [1, 1, 1, 1], 0.1, 4),  # the model was wrong everywhere
        ("relabel", [1, 1, 1, -1], None, 1),  # unknown: most are taken to stand as they began
        ("audit", [1, 1, 1, -1], None, 3),  # always begins as absent
    ],
)
def test_grid_changes_are_counted_from_the_initial_state_of_the_grid(db, source, states, chance, changes):
    cells = [(number + 1, 1, state, chance) for number, state in enumerate(states)]
    give(db, "grid", cells, 9.0, source)
    assert answer_times.load_newest_answers(db, "Ann", 100) == [TimedAnswer("grid", 4, changes, 9.0)]


def test_time_model_counts_whole_image_changes_relative_to_preselected_classes(db):
    for source, guessed_from, changes in (("suggestion", 0.5, 2), ("random", 0.5, 1), ("suggestion", None, 1)):
        give(db, "image", [(1, 1, 1, 0.2), (1, 2, -1, 0.8), (1, 3, -1, 0.1)], 5.0, source)
        found = answer_times.load_newest_answers(db, "Ann", 3, guessed_from=guessed_from)
        assert found == [TimedAnswer("image", 3, changes, 5.0)], (source, guessed_from)


def test_speed_test_times_count_for_their_annotator_and_for_annotators_without_times(db):
    assert load_time_model(db, "Ann") == DEFAULT_TIMES
    for task in range(10):
        speed_tests.store(db, "Ann", (1, task), TimedAnswer("click", 1, 1, 9.0))
        speed_tests.store(db, "Ann", (1, task), TimedAnswer("click", 1, 1, 99.0))  # sent again
    give(db, "click", [(1, 1, 1, None)], 1.0, annotator="Bob")
    assert load_time_model(db, "Ann").click == pytest.approx(9, rel=0.1) and load_time_model(db, "Bob").click < 2.5
    assert db.value("SELECT count(*) FROM label") == db.value("SELECT count(*) FROM decision") == 1
    report = time_report.load_time_report(db, "Ann")
    assert (report.tested, report.answers) == (10, {"grid": 0, "image": 0, "click": 10})
    everybody = load_time_model(db, "Eve")  # who has no times of their own gets those of all
    assert everybody.click == pytest.approx(9, rel=0.1)


def test_new_answer_changes_the_next_time_estimate(db):
    for image in range(1, 9):
        before = load_time_model(db, "Ann").click
        assert load_time_model(db, "Ann").click == before
        give(db, "click", [(image, 1, 1, None)], 20.0)
        assert load_time_model(db, "Ann").click > before
    decisions.undo(db, annotator="Ann")
    assert load_time_model(db, "Ann").click > DEFAULT_TIMES.click


def test_autopilot_offers_different_actions_to_annotators_with_different_answer_times(sure_db):
    """One state of a project, two persons: their own logs alone decide what comes next."""
    known, rng = sure_db, np.random.default_rng(3)
    looks = TimeModel(tile=2.0, look=4.0, check=3.0, change=0.3, submit=0.3, begin=0.5, click=1.0)
    presses = TimeModel(tile=0.1, look=0.3, check=0.1, change=6.0, submit=1.0, begin=1.0, click=9.0)
    work(known, "Ann", looks, rng)
    work(known, "Bob", presses, rng)
    # Only the first class is open. Four images without any label show it almost surely, and some of the others.
    chances = np.stack([np.r_[np.full(20, 0.3), np.full(4, 0.95)], *[np.full(24, np.nan)] * 2], 1)
    # Such probabilities have been right so far: they are guessed.
    give(known, "image", [(image, 3, 1, 0.97) for image in range(1, 5)], 0.0, annotator="Bob")
    publish(known, chances, decisions.get_newest_decision_id(known))
    looker, presser = (load_time_model(known, name) for name in ("Ann", "Bob"))
    assert looker.tile > 4 * presser.tile and presser.change > 4 * looker.change
    first = {name: planner.lease_next_actions(known, wanted("one page", name)).items[0] for name in ("Ann", "Bob")}
    # Ann gets all open cells as tiles, of which each costs her less than an image. Bob, whose presses are slow, gets
    # what starts as the model expects: one press saves it.
    assert {name: action.kind for name, action in first.items()} == {"Ann": "grid", "Bob": "image"}
    assert first["Bob"].preset == (1,)


def test_pace_command_shows_every_time_part_with_its_interval(annotator, db):
    for image in range(1, 6):
        give(db, "click", [(image, 1, 1, None)], 5.0)
    report = json.loads(annotator("pace", db.paths.project, "--annotator", "Ann", "--json").stdout)
    assert [part["name"] for part in report["parts"]] == list(TIME_PARTS)
    click = next(part for part in report["parts"] if part["name"] == "click")
    assert click["answers"] == 5 and click["low"] < 5 < click["high"] and click["default"] == 2.5
    assert {task["name"]: task["answers"] for task in report["tasks"]} == {"grid": 0, "image": 0, "click": 5}
    told = annotator("pace", db.paths.project, "--annotator", "Bob").stdout
    assert "Bob: 0 timed answers" in told and "Annotators of this project: Ann." in told


@pytest.mark.parametrize(
    ("counts", "seconds", "prior"),
    [
        (np.ones((2, 1)), ONE, ONE),
        (np.zeros((1, 1)), ONE, ONE),
        (np.ones((1, 1)), -ONE, ONE),
        (np.ones((1, 1)), ONE, 0 * ONE),
    ],
)
def test_time_model_fit_refuses_impossible_counts_and_times(counts, seconds, prior):
    with pytest.raises(ValueError, match="must be"):
        fit_times(counts, seconds, np.zeros(len(seconds), int), prior)
