"""One tool with one person on one set: questions are checked, answered and timed until the tool says that it is done.

What a tool says is compared with the truth at once. One that says "done" too early is marked and gets no time; it is
asked further, so that its time to the true goal is known as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.people import Person
from annotator.benchmark.finish.clock import Clock, Watch
from annotator.benchmark.finish.protocol import PATIENCE, Answer, Asked, Question, Task, Tool, WrongTool

POINTS = 0.01  # of the form's seconds lie between two points of a curve
CERTIFIED, TOO_EARLY, ENDED, LIMIT, FAILED = "certified", "too early", "gave up", "not finished", "failed"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Goal:
    """The recall and precision at which a set counts as finished."""

    recall: float
    precision: float

    def holds(self, scores: dict) -> bool:
        """Return whether scores (of curves.scores) reach both."""
        return scores["recall"] >= self.recall and scores["precision"] >= self.precision


def play(tool: Tool, task: Task, truth: np.ndarray, person: Person, clock: Clock) -> dict[str, Any]:
    """Let a tool question a person until it is done or fails, and return the outcome.

    Args:
        tool: The tool that asks.
        task: The images and classes that it is given.
        truth: (N, C) bool, which the person knows as well.
        person: The simulated person.
        clock: The time model of the benchmark, which gives the seconds of each answer.

    Returns:
        {"ended", "why", "seconds", "actions", "claim", "true", "final", "person_seconds", "computing_seconds",
        "slowest_seconds", "certifies_by", "curve"}. ended: one of CERTIFIED, TOO_EARLY, ENDED, LIMIT, FAILED; seconds
        and actions: of the person until the tool said "done" rightly, else None; claim: the moment at which it first
        said so, or None; true: when the true goal was reached, or None; final: the scores at the end.
    """
    played = _Played(tool, task, truth, person, clock)
    ended, why = FAILED, ""
    try:
        ended = played.to_the_end()
    except WrongTool as error:
        why = str(error)
    except Exception as error:  # whatever the tool's own code raises
        why = f"{type(error).__name__}: {error}"
    finally:
        played.close()
    return played.result(ended, why)


class _Played:
    def __init__(self, tool: Tool, task: Task, truth: np.ndarray, person: Person, clock: Clock):
        self.tool, self.task, self.truth, self.person = tool, task, truth, person
        self.goal = Goal(task.recall, task.precision)
        self.images, self.classes = len(task.images), len(task.classes)
        self.watch, self.asked = Watch(clock), Asked(self.images, self.classes)
        form = clock.form(self.images, self.classes, int(truth.sum()))
        self.step, self.limit = POINTS * form, PATIENCE * form
        self.computing = self.slowest = 0.0
        self.curve: list[dict] = []
        self.claim: dict | None = None

    def to_the_end(self) -> str:
        self._timed(lambda: self.tool.start(self.task))
        self._measure()
        while True:
            question = self._timed(self.tool.ask)
            if question is None:
                break
            self.asked.check(question)
            said, presses = answered(self.person, question)
            answer = Answer(said, self.watch.add(question, presses))
            self._timed(lambda question=question, answer=answer: self.tool.answer(question, answer))
            claims = self.claim is None and self._timed(self.tool.certifies)
            if claims or self.watch.seconds >= self.curve[-1]["seconds"] + self.step:
                self._measure()
            if claims:
                self.claim = self.curve[-1]
                if self.goal.holds(self.claim["decided"]):
                    return CERTIFIED
            if self.claim and self.goal.holds(self.curve[-1]["decided"]):
                return TOO_EARLY
            if self.watch.seconds >= self.limit:
                break
        self._measure()
        if self.claim is None and question is None and self._timed(self.tool.certifies):
            self.claim = self.curve[-1]
            if self.goal.holds(self.claim["decided"]):
                return CERTIFIED
        return TOO_EARLY if self.claim else ENDED if question is None else LIMIT

    def result(self, ended: str, why: str) -> dict[str, Any]:
        finished = ended == CERTIFIED
        reached = curves.reached(self.curve, self.goal.recall, self.goal.precision)
        return {
            "ended": ended,
            "why": why,
            "seconds": round(self.watch.seconds, 1) if finished else None,
            "actions": self.watch.spent.actions if finished else None,
            "claim": self.claim and {key: self.claim[key] for key in ("seconds", "actions", "decided")},
            "true": reached and {key: reached[key] for key in ("seconds", "actions")},
            "final": self.curve[-1]["decided"] if self.curve else None,
            "person_seconds": round(self.watch.seconds, 1),
            "computing_seconds": round(self.computing, 1),
            "slowest_seconds": round(self.slowest, 1),
            "certifies_by": str(getattr(self.tool, "certifies_by", "")),
            "curve": [{key: point[key] for key in ("seconds", "actions", "decided")} for point in self.curve],
        }

    def close(self) -> None:
        try:
            self.tool.close()
        except Exception:  # it has given its answers; how it ends is its own affair
            return

    def _measure(self) -> None:
        labels = np.zeros(self.truth.shape, bool)
        for image, class_ in self._timed(lambda: list(self.tool.labels())):
            if not (0 <= image < self.images and 0 <= class_ < self.classes):
                raise WrongTool(
                    f"A label is on class {class_} of image {image}: there are {self.images} images and {self.classes} "
                    "classes, counted from 0."
                )
            labels[image, class_] = True
        scores = curves.scores(labels, self.truth)
        spent = self.watch.spent
        point = {"seconds": round(self.watch.seconds, 1), "actions": spent.actions, "parts": dict(spent.parts)}
        self.curve.append(point | {"decided": scores, "filled": scores})

    def _timed(self, call: Callable[[], Value]) -> Value:
        started = time.perf_counter()
        try:
            return call()
        finally:
            took = time.perf_counter() - started
            self.computing, self.slowest = self.computing + took, max(self.slowest, took)


def answered(person: Person, question: Question) -> tuple[tuple[bool | None, ...], int]:
    """Return a person's answers to a question, one for each cell, and the number of presses that change an answer."""
    rows, columns = np.array(question.cells).T
    if question.kind == "click":
        open_ = np.zeros(person.truth.shape[1], bool)
        open_[columns] = True
        named = person.name_one(int(rows[0]), open_)
        return tuple(False if named is None else True if column == named else None for column in columns.tolist()), 1
    preset = np.array(question.preset, bool) if question.preset else np.zeros(len(rows), bool)
    said, presses = person.answer(rows, columns, preset)
    return tuple(said.tolist()), presses
