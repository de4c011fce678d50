"""Plays: each follows one policy with one simulated annotator on a project copy."""

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.policies import POLICIES, SETTING_POLICIES
from annotator.benchmark.effort.session import Session
from annotator.benchmark.scratch import print_progress
from annotator.benchmark.simulated_people import Person
from annotator.snapshot.time_model import DEFAULT_TIMES, TimeModel

PERFECT_PERSON, NOISY_PERSON = "perfect", "noisy"
POINT_INTERVAL_SHARE = 0.015  # of the form's actions lie between two points of a curve
DONE_RECALL = 0.995  # recall at which work stops


@dataclass(frozen=True)
class Play:
    """The parameters of one play: policy, annotator, seed and answer times."""

    policy: str
    # PERFECT_PERSON or NOISY_PERSON
    person: str
    seed: int
    times: TimeModel = DEFAULT_TIMES
    # equal answers take different times
    varies: bool = False


def play_all(
    template: Path, folder: Path, truth: np.ndarray, plays: Sequence[Play], limit: float, jobs: int = 1
) -> dict[Play, list[dict]]:
    """Run all plays, and return the curve of each, which does not depend on `jobs`.

    Args:
        template: Project to copy into `folder`.
        truth: (N, C) bool.
        limit: Maximum number of actions per play.
    """
    one = partial(_run_numbered_play, template, folder, truth, limit)
    if jobs <= 1 or len(plays) < 2:
        return dict(zip(plays, map(one, enumerate(plays)), strict=True))
    pool = multiprocessing.get_context("spawn").Pool(min(jobs, len(plays)), _end_with_parent)
    with pool, closing(pool):  # an error, and Ctrl+C, ends all processes
        return dict(zip(plays, pool.imap(one, enumerate(plays)), strict=True))


def _run_numbered_play(
    template: Path, folder: Path, truth: np.ndarray, limit: float, numbered_play: tuple[int, Play]
) -> list[dict]:
    number, one = numbered_play
    return run_play(template, folder / f"copy-{number}", truth, one, limit)


def _end_with_parent() -> None:
    """Let a pool process ignore Ctrl+C, which the parent handles, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def run_play(template: Path, copy: Path, truth: np.ndarray, play: Play, limit: float) -> list[dict]:
    """Play on a project copy for at most `limit` actions and return the curve."""
    policy = POLICIES.get(play.policy) or SETTING_POLICIES[play.policy]
    person = Person.build(truth, noisy=play.person == NOISY_PERSON, seed=play.seed)
    session = Session(
        template, copy, truth, person, learns=policy.learns, seed=play.seed, times=play.times, varies=play.varies
    )
    step = max(4.0, POINT_INTERVAL_SHARE * (truth.sum() + len(truth)))
    curve, next_point = [curves.measure_point(session)], step
    try:
        for _ in policy.steps(session):
            measured = session.spent.actions >= next_point
            if policy.follows or measured:
                session.keep_up()
            if measured:
                curve.append(curves.measure_point(session))
                next_point = session.spent.actions + step
                if curve[-1]["decided"]["recall"] >= DONE_RECALL or session.spent.actions >= limit:
                    break
        if curve[-1]["actions"] < session.spent.actions:
            session.keep_up()
            curve.append(curves.measure_point(session))
    finally:
        session.close()
        shutil.rmtree(copy, ignore_errors=True)
    last, at = curve[-1], curves.find_goal_point(curve)
    print_progress(
        f"{play.policy}, {play.person} person, seed {play.seed}: {last['actions']:,} actions, recall "
        f"{last['decided']['recall']:.3f}; "
        + (f"0.95 at 0.99 after {at['actions']:,}" if at else "0.95 at 0.99 not reached")
    )
    return curve
