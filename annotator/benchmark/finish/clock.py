"""The cost of an answer: presses, and seconds by a time model, whose parts are assumed unless measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from annotator.benchmark.effort.session import Spent
from annotator.benchmark.finish.protocol import QUESTION_KINDS, Question
from annotator.snapshot.time_model import DEFAULT_TIMES, TimeModel

ASSUMED_SOURCE = "assumed"


def count_answer_parts(question: Question, presses: int) -> tuple[int, dict[str, float]]:
    """Return the number of presses, the last one included, and how often each part of the time model occurs.

    Args:
        question: The question that was answered.
        presses: The presses that change a preset answer; in a check every answer is one press.
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
    """The time model of a benchmark, scaled for each kind of question.

    Attributes:
        model: The parts in seconds.
        factors: Kind of question -> measured times over those of the model.
        sources: Kind of question -> "assumed", or the source of the measured times.
    """

    model: TimeModel = DEFAULT_TIMES
    factors: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(QUESTION_KINDS, 1.0))
    sources: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(QUESTION_KINDS, ASSUMED_SOURCE))

    def compute_seconds(self, kind: str, parts: Mapping[str, float]) -> float:
        """Return the seconds of one answer to a question of this kind; `parts` counts the parts of the time model."""
        return self.factors[kind] * sum(count * getattr(self.model, part) for part, count in parts.items())

    def compute_form_seconds(self, images: int, classes: int, positives: int) -> float:
        """Return the seconds of labelling with a form for every image, in which each positive is ticked."""
        parts = {"look": images, "check": images * classes, "change": positives, "submit": images}
        return self.compute_seconds("image", parts)

    def as_json(self) -> dict:
        """Return the model, the factors and the sources of times."""
        return {"parts": dict(vars(self.model)), "factors": dict(self.factors), "sources": dict(self.sources)}


class Watch:
    """The sums of one person's work: `spent` counts presses and parts, `seconds` are by the clock."""

    def __init__(self, clock: Clock):
        self.clock, self.spent, self.seconds = clock, Spent(), 0.0

    def add_answer(self, question: Question, presses: int) -> float:
        """Add an answer to the sums and return its seconds."""
        actions, parts = count_answer_parts(question, presses)
        self.spent.actions += actions
        for part, count in parts.items():
            self.spent.parts[part] += count
        seconds = self.clock.compute_seconds(question.kind, parts)
        self.seconds += seconds
        return seconds
