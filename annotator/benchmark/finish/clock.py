"""The cost of an answer: key presses, and assumed or measured seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from annotator.benchmark.effort.session import Spent
from annotator.benchmark.finish.protocol import QUESTION_KINDS, Question
from annotator.snapshot.time_model import DEFAULT_TIMES, TimeModel

ASSUMED_SOURCE = "assumed"


def count_answer_parts(question: Question, presses: int) -> tuple[int, dict[str, float]]:
    """Return the presses of an answer, and how often each part of the time model occurs in it.

    In a question of kind "check" each answer is one press.
    """
    cells = len(question.cells)
    if question.kind == "click":
        return 1, {"click": 1}
    if question.kind == "grid":
        return presses + 1, {"begin": 1, "tile": cells, "change": presses, "submit": 1}
    if question.kind == "check":
        presses = cells
    return presses + 1, {"look": 1, "check": cells, "change": presses, "submit": 1}


@dataclass(frozen=True)
class Clock:
    """A time model for the benchmark: seconds per part, with a factor and a source per kind of question."""

    model: TimeModel = DEFAULT_TIMES
    factors: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(QUESTION_KINDS, 1.0))
    sources: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(QUESTION_KINDS, ASSUMED_SOURCE))

    def compute_seconds(self, kind: str, parts: Mapping[str, float]) -> float:
        """Return the seconds of one answer, from how often each part occurs in it."""
        return self.factors[kind] * sum(count * getattr(self.model, part) for part, count in parts.items())

    def compute_form_seconds(self, images: int, classes: int, positives: int) -> float:
        parts = {"look": images, "check": images * classes, "change": positives, "submit": images}
        return self.compute_seconds("image", parts)

    def as_json(self) -> dict:
        return {"parts": dict(vars(self.model)), "factors": dict(self.factors), "sources": dict(self.sources)}


class Watch:
    """A counter of one person's presses, parts and seconds."""

    def __init__(self, clock: Clock):
        self.clock, self.spent, self.seconds = clock, Spent(), 0.0

    def add_answer(self, question: Question, presses: int) -> float:
        actions, parts = count_answer_parts(question, presses)
        self.spent.actions += actions
        for part, count in parts.items():
            self.spent.parts[part] += count
        seconds = self.clock.compute_seconds(question.kind, parts)
        self.seconds += seconds
        return seconds
