"""What a certificate states, of one class and of all."""

from dataclasses import asdict, dataclass
from typing import Any

from annotator.quality.evidence import IF_RIGHT, Interval, ends
from annotator.shares import counted
from annotator.snapshot.progress import CHANGED, TILES
from annotator.snapshot.time_model import DEFAULTS
from annotator.store.labels.audits import Audit

TARGET = 0.98


@dataclass(frozen=True)
class Row:
    """What is certified of one class, or of all together (class_id None).

    Attributes:
        people, accepted: Cells labeled present by people, and auto-accepted as present.
        unknown: Cells that people have not decided.
        audited, waiting: Audit cells that count here, and those without an answer.
        recall, precision: Of the labels as they stand, in [0, 1]; recall: if people's answers are right.
        recall_allowing: Recall that allows for people's mistakes, as overlap shows them.
        missing: Positives that are not labeled, in cells.
        seconds: Of grid work until 95 % of them are found, likeliest cells first; None where it is not measured.
    """

    class_id: int | None
    name: str
    people: int
    accepted: int
    unknown: int
    audited: int
    waiting: int
    recall: Interval
    recall_allowing: Interval
    precision: Interval
    missing: Interval
    seconds: float | None

    @property
    def says(self) -> str:
        """What recall and the missing labels assume, as a sentence."""
        if not self.unknown and not self.audited:
            return f"{IF_RIGHT.capitalize()}: every pair has one, and no audit has checked them."
        return f"{IF_RIGHT.capitalize()}."

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; what was not measured is None, with the reason; `assuming` says under which
        condition a figure holds."""
        figures = {name: value.as_json() for name, value in vars(self).items() if isinstance(value, Interval)}
        for name in ("recall", "missing"):
            if "reason" not in figures[name]:
                figures[name]["assuming"] = IF_RIGHT
        return asdict(self) | figures


@dataclass(frozen=True)
class Relabels:
    """Audit answers to cells that people had decided.

    Attributes:
        present, mistaken: Cells decided present, and those of them answered absent.
        absent, missed: Cells decided absent, and those of them answered present.
    """

    present: int = 0
    mistaken: int = 0
    absent: int = 0
    missed: int = 0


@dataclass(frozen=True)
class Certificate:
    """Everything that is certified now.

    Attributes:
        images: That can be shown.
        audits: Whose answers were used, newest first.
        seconds_a_tile: Of a grid, by the time model.
        last_decision_id: The newest decision it has seen.
        uncovered: Images that were added after the audits it rests on.
        people: Who have answered.
        compared: Answers of people to positives that others, too, had found: what mistakes are measured on.
        unsettled: Cells on which people differ.
        lacks: What would make it better, in sentences.
    """

    classes: list[Row]
    overall: Row
    relabels: Relabels
    audits: list[Audit]
    images: int
    seconds_a_tile: float
    last_decision_id: int
    uncovered: int
    people: int
    compared: int
    unsettled: int
    lacks: list[str]

    def reached(self, target: float = TARGET, allowing: bool = False) -> list[int]:
        """The classes whose recall is at least `target` with 95 % confidence (the low end of its interval).

        Args:
            allowing: For people's mistakes; else if their answers are right.
        """
        recalls = [(row.class_id, row.recall_allowing if allowing else row.recall) for row in self.classes]
        return [id_ for id_, recall in recalls if id_ is not None and recall.low >= target and not recall.reason]

    def sentence(self, target: float = TARGET) -> str:
        """The stopping rule in words, and what is known of precision. No full stop at the end."""
        size = len(self.classes)
        unmeasured = sum(bool(row.recall.reason) for row in self.classes)
        share = f"{len(self.reached(target))} of {counted(size, 'class', 'classes')}"
        reached = f"{100 * target:g} % recall reached with 95 % confidence for {share}"
        if unmeasured:
            reached += f" (recall {'' if unmeasured == size else f'of {unmeasured} '}not measured)"
        if unmeasured < size:
            reached += f" {IF_RIGHT}"
        if self.compared:
            allowing = len(self.reached(target, allowing=True))
            reached += f", for {allowing} allowing for their mistakes"
        precision = self.overall.precision
        return f"{reached}. Precision: {precision.reason or ends(precision)}"

    @property
    def time_is_assumed(self) -> bool:
        """Whether no grid has been timed in this project: times are those of the default time model."""
        return self.seconds_a_tile == DEFAULTS.grid(TILES, CHANGED) / TILES

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; what was not measured is None, with the reason."""
        rows = {"classes": [row.as_json() for row in self.classes], "overall": self.overall.as_json()}
        return asdict(self) | rows


def in_words(certificate: Certificate) -> str:
    """What "allowing for mistakes" rests on, and what it does not see. For certificates with compared answers."""
    return (
        f"Allowing for mistakes: {counted(certificate.compared, 'answer')} could be compared with what others found "
        "on the same images, not knowing of each other. What everybody overlooks is not seen."
    )
