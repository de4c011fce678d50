"""The protocol between the benchmark and a labeling tool, which never sees the truth.

PROTOCOL_VERSION changes whenever a figure could change.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from annotator.errors import AnnotatorError, did_you_mean

PROTOCOL_VERSION = "1.0"
# what counts as finished, and how sure a tool must be of it
GOAL_RECALL, GOAL_PRECISION, GOAL_CONFIDENCE = (0.95, 0.99, 0.95)
QUESTION_KINDS = {
    "grid": "several images, one class: mark the exceptions, submit",
    "image": "one image, several classes: mark the exceptions, submit",
    "check": "one image, several classes: answer each with a press of its own, submit",
    "click": "one image, several classes: name one that it shows, or say that it shows none of them",
}
MAX_CELLS_PER_QUESTION = 400  # of one question
MAX_ASKS_PER_CELL = 20  # times that the same cell may be asked
PATIENCE_FACTOR = 3.0  # times the seconds of the form: after so long a tool has not finished
MAX_COMPUTING_SECONDS = 900.0  # that a tool may compute between two answers


class WrongTool(AnnotatorError):
    """The error for a tool that broke the protocol, ended or was late."""


@dataclass(frozen=True)
class Task:
    """The test set that a tool must label, and the goal to certify."""

    name: str
    # images, classes: questions and labels refer to them by index from 0
    images: tuple[Path, ...]
    classes: tuple[str, ...]
    recall: float
    precision: float
    # required share of certificates that are correct
    confidence: float
    seed: int
    # folder for data derived from images alone
    work: Path


@dataclass(frozen=True)
class Question:
    """A question to a person, of one of QUESTION_KINDS.

    `images` and `classes` are indices in the task. `preset` has the initial answer per grid image or class.
    """

    kind: str
    images: tuple[int, ...]
    classes: tuple[int, ...]
    preset: tuple[bool, ...] = ()

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Return the (image, class) index pairs that are asked, in answer order."""
        return [(image, class_) for image in self.images for class_ in self.classes]


@dataclass(frozen=True)
class Answer:
    """A person's answer to a question."""

    # True, False or None (unanswered) per cell. A click has True for the named class and None elsewhere, or False
    # everywhere
    present: tuple[bool | None, ...]
    # time until the last press
    seconds: float


class Tool(Protocol):
    """The interface of a labeling tool under test. One object serves one set and one person."""

    certifies_by: str

    def start(self, task: Task) -> None:
        """Prepare for a task. Called once, before all other methods."""
        ...

    def ask(self) -> Question | None:
        """Return the next question, or None if finished."""
        ...

    def answer(self, question: Question, answer: Answer) -> None:
        """Process the answer to the newest question."""
        ...

    def labels(self) -> Iterable[tuple[int, int]]:
        """Return the (image, class) index pairs that are present so far. All others are absent."""
        ...

    def certifies(self) -> bool:
        """Return whether the tool claims that its labels reach the task's recall and precision."""
        ...

    def close(self) -> None:
        """Release resources, once at the end."""
        ...


class QuestionChecker:
    """A checker that one tool's questions in one task keep to the protocol."""

    def __init__(self, images: int, classes: int):
        self.images, self.classes = images, classes
        self._times: Counter[tuple[int, int]] = Counter()

    def check_question(self, question: Question) -> None:
        """Raise WrongTool if a question breaks the protocol or was repeated too often."""
        if problems := list(self._find_problems(question)):
            raise WrongTool(f"A question cannot be asked: {'; '.join(problems)}.")
        self._times.update(question.cells)
        cell, times = self._times.most_common(1)[0]
        if times > MAX_ASKS_PER_CELL:
            raise WrongTool(
                f"Class {cell[1]} of image {cell[0]} was asked {times} times, {MAX_ASKS_PER_CELL} are allowed. Does "
                "the tool keep the answers that it is told?"
            )

    def _find_problems(self, question: Question) -> Iterable[str]:
        if question.kind not in QUESTION_KINDS:
            yield f"there is no kind {question.kind!r}. {did_you_mean(str(question.kind), QUESTION_KINDS).rstrip('.')}"
            return
        yield from _find_place_problems("image", question.images, self.images)
        yield from _find_place_problems("class", question.classes, self.classes)
        single, places = ("class", question.classes) if question.kind == "grid" else ("image", question.images)
        if len(places) != 1:
            yield f"{question.kind!r} asks about one {single}, this one about {len(places)}"
        if (cells := len(question.images) * len(question.classes)) > MAX_CELLS_PER_QUESTION:
            yield f"{cells} pairs at once, {MAX_CELLS_PER_QUESTION} are allowed"
        if question.preset and question.kind in ("click", "check"):
            yield f"{question.kind!r} starts without answers, but has {len(question.preset)} preset"
        elif question.preset and len(question.preset) != len(question.cells):
            yield f"{len(question.preset)} preset answers for {len(question.cells)} pairs"


def _find_place_problems(noun: str, places: Sequence[int], count: int) -> Iterable[str]:
    if not places:
        yield f"it names no {noun}"
    if wrong := [place for place in places if isinstance(place, bool) or not isinstance(place, int)]:
        yield f"{wrong[0]!r} is no number of an {noun}" if noun == "image" else f"{wrong[0]!r} is no number of a {noun}"
        return
    if outside := [place for place in places if not 0 <= place < count]:
        yield f"there is no {noun} {outside[0]}: they are numbered 0 to {count - 1}"
    if len(set(places)) < len(places):
        yield f"it names the same {noun} twice"
