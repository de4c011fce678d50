"""One run of a labeling tool with a simulated person on a test set.

A premature claim is recorded and the run continues, to measure the time to the true goal.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from annotator.benchmark.effort import curves
from annotator.benchmark.finish.clock import Clock, Watch
from annotator.benchmark.finish.protocol import (
    PATIENCE_FACTOR,
    Answer,
    Question,
    QuestionChecker,
    Task,
    Tool,
    WrongTool,
)
from annotator.benchmark.simulated_people import Person

POINT_INTERVAL_SHARE = 0.01  # of the form's seconds lie between two points of a curve
RUN_CERTIFIED, RUN_TOO_EARLY, RUN_GAVE_UP, RUN_NOT_FINISHED, RUN_FAILED = (
    "certified",
    "too early",
    "gave up",
    "not finished",
    "failed",
)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Goal:
    """The recall and precision that labels must reach to count as finished."""

    recall: float
    precision: float

    def is_reached(self, scores: dict) -> bool:
        return scores["recall"] >= self.recall and scores["precision"] >= self.precision


def play_tool(tool: Tool, task: Task, truth: np.ndarray, person: Person, clock: Clock) -> dict[str, Any]:
    """Let a tool question a person until it is done or fails, and return the outcome.

    Returns:
        {"ended", "why", "seconds", "actions", "claim", "true", "final", "person_seconds", "computing_seconds",
        "slowest_seconds", "certifies_by", "curve"}. `seconds` and `actions` count until the tool correctly claims
        the goal. `claim` is the time of its first claim, `true` the time at which the labels reach the goal.
    """
    played = _ToolRun(tool, task, truth, person, clock)
    ended, why = RUN_FAILED, ""
    try:
        ended = played.run_to_end()
    except WrongTool as error:
        why = str(error)
    except Exception as error:  # whatever the tool's own code raises
        why = f"{type(error).__name__}: {error}"
    finally:
        played.close()
    return played.make_result(ended, why)


class _ToolRun:
    def __init__(self, tool: Tool, task: Task, truth: np.ndarray, person: Person, clock: Clock):
        self.tool, self.task, self.truth, self.person = tool, task, truth, person
        self.goal = Goal(task.recall, task.precision)
        self.images, self.classes = len(task.images), len(task.classes)
        self.watch, self.question_checker = Watch(clock), QuestionChecker(self.images, self.classes)
        form = clock.compute_form_seconds(self.images, self.classes, int(truth.sum()))
        self.step, self.limit = POINT_INTERVAL_SHARE * form, PATIENCE_FACTOR * form
        self.computing = self.slowest = 0.0
        self.curve: list[dict] = []
        self.claim: dict | None = None

    def run_to_end(self) -> str:
        self._time_call(lambda: self.tool.start(self.task))
        self._add_point()
        while True:
            question = self._time_call(self.tool.ask)
            if question is None:
                break
            self.question_checker.check_question(question)
            said, presses = answer_question(self.person, question)
            answer = Answer(said, self.watch.add_answer(question, presses))
            self._time_call(lambda question=question, answer=answer: self.tool.answer(question, answer))
            claims = self.claim is None and self._time_call(self.tool.certifies)
            if claims or self.watch.seconds >= self.curve[-1]["seconds"] + self.step:
                self._add_point()
            if claims:
                self.claim = self.curve[-1]
                if self.goal.is_reached(self.claim["decided"]):
                    return RUN_CERTIFIED
            if self.claim and self.goal.is_reached(self.curve[-1]["decided"]):
                return RUN_TOO_EARLY
            if self.watch.seconds >= self.limit:
                break
        self._add_point()
        if self.claim is None and question is None and self._time_call(self.tool.certifies):
            self.claim = self.curve[-1]
            if self.goal.is_reached(self.claim["decided"]):
                return RUN_CERTIFIED
        return RUN_TOO_EARLY if self.claim else RUN_GAVE_UP if question is None else RUN_NOT_FINISHED

    def make_result(self, ended: str, why: str) -> dict[str, Any]:
        finished = ended == RUN_CERTIFIED
        reached = curves.find_goal_point(self.curve, self.goal.recall, self.goal.precision)
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

    def _add_point(self) -> None:
        labels = np.zeros(self.truth.shape, bool)
        for image, class_ in self._time_call(lambda: list(self.tool.labels())):
            if not (0 <= image < self.images and 0 <= class_ < self.classes):
                raise WrongTool(
                    f"A label is on class {class_} of image {image}: there are {self.images} images and {self.classes} "
                    "classes, counted from 0."
                )
            labels[image, class_] = True
        scores = curves.compute_scores(labels, self.truth)
        spent = self.watch.spent
        point = {"seconds": round(self.watch.seconds, 1), "actions": spent.actions, "parts": dict(spent.parts)}
        self.curve.append(point | {"decided": scores, "filled": scores})

    def _time_call(self, call: Callable[[], Value]) -> Value:
        started = time.perf_counter()
        try:
            return call()
        finally:
            took = time.perf_counter() - started
            self.computing, self.slowest = self.computing + took, max(self.slowest, took)


def answer_question(person: Person, question: Question) -> tuple[tuple[bool | None, ...], int]:
    """Return a person's answer per cell, and the number of presses that change a preset answer."""
    rows, columns = np.array(question.cells).T
    if question.kind == "click":
        open_ = np.zeros(person.truth.shape[1], bool)
        open_[columns] = True
        named = person.name_one(int(rows[0]), open_)
        return tuple(False if named is None else True if column == named else None for column in columns.tolist()), 1
    preset = np.array(question.preset, bool) if question.preset else np.zeros(len(rows), bool)
    said, presses = person.answer(rows, columns, preset)
    return tuple(said.tolist()), presses
