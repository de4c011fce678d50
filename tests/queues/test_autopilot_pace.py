"""Autopilot is told nothing of a person but how long each answer took, and asks for what suits them."""

from pathlib import Path

import numpy as np
import pytest

from annotator.benchmark import simulated_people
from annotator.benchmark.effort import effort_measurement
from annotator.benchmark.effort.by_times import ADAPTATION_SECONDS
from annotator.benchmark.effort.policies import POLICIES
from annotator.benchmark.effort.session import ANNOTATOR_NAME, Session
from annotator.benchmark.effort.time_sets import read_time_sets
from annotator.benchmark.simulated_people import Person
from annotator.queues.autopilot import planner
from annotator.records import WantedActions
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.snapshot.time_model import TimeModel, load_time_model
from annotator.store.people import speed_tests

KINDS = {one.name: one.times for one in read_time_sets("kinds")}


def work_for_ten_minutes(folder: Path, template: Path, shown: np.ndarray, times: TimeModel) -> Session:
    """The project of a person who answered what Autopilot asked for, in times that vary."""
    person = Person.build(shown, noisy=False, seed=0)
    session = Session(template, folder, shown, person, learns=True, seed=0, times=times, varies=True)
    for _ in POLICIES["autopilot"].steps(session):
        session.keep_up()
        if session.spent.compute_seconds(times) >= ADAPTATION_SECONDS:
            return session
    raise AssertionError(f"all was done after {session.spent.compute_seconds(times):.0f} s")


def share_of_whole_images(session: Session, name: str, want: int = 8) -> float:
    """Of the pairs of an image and a class that the next actions of this person settle, what whole images ask for."""
    actions = planner.lease_next_actions(session.db, WantedActions(f"page of {name}", name, (), want)).items
    pairs = [action.decided_cells * (action.kind == "image") for action in actions]
    return sum(pairs) / sum(action.decided_cells for action in actions)


def know(session: Session, name: str, times: TimeModel) -> None:
    """Let somebody with these times take the speed test so often that they are known."""
    for task, answer in enumerate(simulated_people.draw_answer_log(np.random.default_rng(1), times, 200)):
        speed_tests.store(session.db, name, (1, task), answer)


def share_asked_in_whole_images(session: Session) -> float:
    """Of the pairs that were asked because they were worth it, not drawn or explored, what whole images asked for."""
    count = "SELECT count(*) FROM decision WHERE source = ?"
    images, grids = (session.db.value(count, [source]) for source in ("suggestion", "grid"))
    return images / (images + grids)


@pytest.mark.slow
@pytest.mark.training
@pytest.mark.parametrize(("kind", "least", "most"), [("slow at tiles", 0.4, 1.0), ("slow at images", 0.0, 0.05)])
def test_autopilot_prefers_the_faster_task_of_an_annotator_within_ten_minutes(tmp_path, kind, least, most):
    shown = effort_measurement.make_project(
        tmp_path / "project", SAMPLE_DATA_FOLDER / "images", SAMPLE_DATA_FOLDER / "truth.csv", "efficientnet_lite0"
    )
    session = work_for_ten_minutes(tmp_path / "copy", tmp_path / "project", shown, KINDS[kind])
    learned, asked = load_time_model(session.db, ANNOTATOR_NAME), share_asked_in_whole_images(session)
    if kind == "slow at tiles":  # it is the times that decide: in the same state somebody else is asked for grids
        know(session, "Otherwise", KINDS["slow at images"])
        own, other = (share_of_whole_images(session, name) for name in (ANNOTATOR_NAME, "Otherwise"))
        assert other < 0.25 < own, (own, other)
    session.close()
    assert least <= asked <= most, (asked, learned)
    ratios = [
        (times.estimate_grid_seconds(24, 3) / 24) / (times.estimate_image_seconds(12, 2) / 12)
        for times in (learned, KINDS[kind])
    ]
    assert (ratios[0] > 1) == (ratios[1] > 1) == (kind == "slow at tiles")
