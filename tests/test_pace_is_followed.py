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
@pytest.mark.parametrize(("kind", "least", "most"), [("slow at tiles", 0.75, 1.0), ("slow at images", 0.0, 0.25)])
def test_after_ten_minutes_a_person_is_asked_what_somebody_is_whose_times_are_known(tmp_path, kind, least, most):
    """One state of a project and two persons: who worked, and a newcomer who took a long speed test."""
    shown = measure.make_project(tmp_path / "project", SAMPLE / "images", SAMPLE / "truth.csv", "efficientnet_lite0")
    session = work_for_ten_minutes(tmp_path / "copy", tmp_path / "project", shown, KINDS[kind])
    know(session, "Known", KINDS[kind])
    learned = time_model_of(session.db, NAME)
    followed, known = (share_of_whole_images(session, name) for name in (NAME, "Known"))
    if kind == "slow at tiles":  # it is the times that decide: in the same state somebody else is asked for grids
        know(session, "Otherwise", KINDS["slow at images"])
        assert share_of_whole_images(session, "Otherwise") < 0.25
    session.close()
    assert least <= followed <= most and followed == pytest.approx(known, abs=0.25), (followed, known, learned)
    ratios = [(times.grid(24, 3) / 24) / (times.image(12, 2) / 12) for times in (learned, KINDS[kind])]
    assert (ratios[0] > 1) == (ratios[1] > 1) == (kind == "slow at tiles")
