"""What a certificate states, of one class and of all."""

from dataclasses import asdict, dataclass

from annotator.quality.evidence import Interval, ends
from annotator.snapshot.time_model import DEFAULTS
from annotator.store.audits import Audit

TARGET = 0.98
TILES, CHANGED = 24, 2  # of the grid by which times are told


@dataclass(frozen=True)
class Row:
    """What is certified of one class, or of all together (class_id None).

    people, accepted    cells labeled present by people, and filled in as present by a model
    unknown             cells that people have not decided
    audited, waiting    drawn cells that count here, and those that wait for an answer
    recall, precision   of the labels as they stand, in [0, 1]
    missing             positives that are not labeled, in cells
    seconds             of grid work until 95 % of them are found, likeliest cells first; None where nobody can tell
    """

    class_id: int | None
    name: str
    people: int
    accepted: int
    unknown: int
    audited: int
    waiting: int
    recall: Interval
    precision: Interval
    missing: Interval
    seconds: float | None

    def as_json(self) -> dict:
        """Everything as plain values; what was not measured is None, with the reason."""
        return asdict(self) | {name: getattr(self, name).as_json() for name in ("recall", "precision", "missing")}


@dataclass(frozen=True)
class Relabels:
    """Second looks at what people had decided: at "present" ones and how many were not, at "absent" ones and how many
    were there after all."""

    present: int = 0
    mistaken: int = 0
    absent: int = 0
    missed: int = 0


@dataclass(frozen=True)
class Certificate:
    """Everything that is certified now.

    images             that can be shown
    audits             whose answers were used, newest first
    seconds_a_tile     of a grid, by which times are told
    last_decision_id   the newest decision it has seen
    uncovered          images that came after the drawings it rests on
    lacks              what would make it better, in sentences
    """

    classes: list[Row]
    overall: Row
    relabels: Relabels
    audits: list[Audit]
    images: int
    seconds_a_tile: float
    last_decision_id: int
    uncovered: int
    lacks: list[str]

    def reached(self, target: float = TARGET) -> list[int]:
        """The classes whose recall is at least `target` with 95 % confidence (the low end of its interval)."""
        rows = (one for one in self.classes if one.recall.low >= target and not one.recall.reason)
        return [one.class_id for one in rows if one.class_id is not None]

    def sentence(self, target: float = TARGET) -> str:
        """The stopping rule in words, and what is known of precision. No full stop at the end."""
        every = len(self.classes)
        blank = sum(bool(one.recall.reason) for one in self.classes)
        reached = (
            f"{100 * target:g} % recall reached with 95 % confidence for {len(self.reached(target))} of {every} classes"
        )
        if blank:
            reached += f" (recall {'' if blank == every else f'of {blank} '}not measured)"
        precision = self.overall.precision
        return f"{reached}. Precision: {precision.reason or ends(precision)}"

    @property
    def pace_is_assumed(self) -> bool:
        """Nobody's grids have been timed here: times are told by the start values of time_model.py."""
        return self.seconds_a_tile == DEFAULTS.grid(TILES, CHANGED) / TILES

    def as_json(self) -> dict:
        """Everything as plain values; what was not measured is None, with the reason."""
        rows = {"classes": [one.as_json() for one in self.classes], "overall": self.overall.as_json()}
        return asdict(self) | rows
