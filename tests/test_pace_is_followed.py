"""Autopilot is told nothing of a person but how long each answer took, and asks for what suits them."""

from pathlib import Path

import numpy as np
import pytest

from annotator.benchmark import pace
from annotator.benchmark.effort import measure
from annotator.benchmark.effort.by_times import FOLLOWED
from annotator.benchmark.effort.people import Person
from annotator.benchmark.effort.policies import POLICIES
from annotator.benchmark.effort.session import NAME, Session
from annotator.benchmark.effort.time_sets import read_time_sets
from annotator.benchmark.harness.projects import SAMPLE
from annotator.queues.autopilot import planner
from annotator.records import WantedActions
from annotator.snapshot.time_model import TimeModel, time_model_of
from annotator.store.people import speed_tests

KINDS = {one.name: one.times for one in read_time_sets("kinds")}


def work_for_ten_minutes(folder: Path, template: Path, shown: np.ndarray, times: TimeModel) -> Session:
    """The project of a person who answered what Autopilot asked for, in times that vary."""
    person = Person.build(shown, noisy=False, seed=0)
    session = Session(template, folder, shown, person, learns=True, seed=0, times=times, varies=True)
    for _ in POLICIES["autopilot"].steps(session):
        session.keep_up()
        if session.spent.seconds(times) >= FOLLOWED:
            return session
    raise AssertionError(f"all was done after {session.spent.seconds(times):.0f} s")


def share_of_whole_images(session: Session, name: str, want: int = 8) -> float:
    """Of the pairs of an image and a class that the next actions of this person settle, what whole images ask for."""
    actions = planner.next_actions(session.db, WantedActions(f"page of {name}", name, (), want)).items
    pairs = [action.decided * (action.kind == "image") for action in actions]
    return sum(pairs) / sum(action.decided for action in actions)


def know(session: Session, name: str, times: TimeModel) -> None:
    """Let somebody with these times take the speed test so often that they are known."""
    for task, answer in enumerate(pace.log(np.random.default_rng(1), times, 200)):
        speed_tests.store(session.db, name, (1, task), answer)


@pytest.mark.slow
@pytest.mark.training
@pytest.mark.parametrize("kind", ["slow at tiles", "slow at images"])
def test_after_ten_minutes_a_person_gets_the_kind_of_action_of_somebody_whose_times_are_known(tmp_path, kind):
    """One state of a project, three persons: who worked, and two newcomers who took the speed test."""
    shown = measure.make_project(tmp_path / "project", SAMPLE / "images", SAMPLE / "truth.csv", "efficientnet_lite0")
    session = work_for_ten_minutes(tmp_path / "copy", tmp_path / "project", shown, KINDS[kind])
    other = next(name for name in ("slow at tiles", "slow at images") if name != kind)
    know(session, "as quick", KINDS[kind])
    know(session, "otherwise", KINDS[other])
    shares = {name: share_of_whole_images(session, name) for name in (NAME, "as quick", "otherwise")}
    learned, true = time_model_of(session.db, NAME), KINDS[kind]
    print(kind, session.spent, shares, learned)
    session.close()
    ratios = [(times.grid(24, 3) / 24) / (times.image(12, 2) / 12) for times in (learned, true)]
    assert (ratios[0] > 1) == (ratios[1] > 1) == (kind == "slow at tiles")
    assert abs(shares[NAME] - shares["as quick"]) < 0.25 < abs(shares[NAME] - shares["otherwise"])
