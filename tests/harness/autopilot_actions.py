"""Actions of Autopilot without a browser: a project with a sure model, and requests for actions."""

import uuid

import numpy as np
import pytest

from annotator.queues.autopilot import planner
from annotator.records import Batch, WantedActions
from annotator.store.labels import decisions
from harness.published_runs import publish

SURE = np.stack([np.r_[np.full(16, 0.97), np.full(8, 0.01)], np.full(24, 0.02), np.full(24, np.nan)], 1)


def wanted(holder: str = "tab", annotator: str = "Ann", want: int = 1, **more) -> WantedActions:
    return WantedActions(holder, annotator, more.pop("have", ()), want, **more)


def recorded(db, chance: float, present: int = 0, absent: int = 0, source: str = "exploration") -> None:
    """Answers to cells of the first images for which the model had this probability, given before."""
    states = [1] * present + [-1] * absent
    together = [(1 + number % 2, 1 + number // 2 % 3, state, chance) for number, state in enumerate(states)]
    for cell in together:
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", source, [cell], None, None)]).refused


@pytest.fixture
def sure_db(db, monkeypatch):
    """A model that is sure of sixteen images of the first class; no random action and no exploration."""
    monkeypatch.setattr(planner, "RANDOM_SHARE", 0.0)
    monkeypatch.setattr(planner, "EXPLORATION_CLICK_LIMITS", (0.0, 0, 0))
    monkeypatch.setattr(planner, "MAX_EXPLORED_IMAGES", 0)
    publish(db, SURE)
    return db
