"""Records of the figures in a quality report, per class and overall."""

import math
from dataclasses import asdict, astuple, dataclass
from typing import Any

from scipy.special import betaincinv

from annotator.humanize import format_count
from annotator.quality.evidence import (
    IF_ANSWERS_ARE_RIGHT,
    NOT_MEASURED,
    Interval,
    describe_share,
    format_count_interval,
    format_share_interval,
)
from annotator.snapshot.project_progress import CHANGED_TILES, GRID_TILES
from annotator.snapshot.time_model import DEFAULT_TIMES
from annotator.store.labels.audits import Audit
from spmll.statistics.bounds import CONFIDENCE

DEFAULT_TARGET_RECALL = 0.98
UNMEASURED_INTERVAL = Interval(None, 0.0, math.inf, NOT_MEASURED)


@dataclass(frozen=True)
class EventFigures:
    """Recall of one class, or of all, counted in events instead of images.

    Attributes:
        found: Events with an image labeled present by an annotator.
        recall: Share of the events showing the class that are found.
    """

    found: int
    audited: int
    recall: Interval
    missing: Interval


@dataclass(frozen=True)
class RelabelCounts:
    """Counts of blind second answers to cells labeled present (of these `mistaken`) or absent (of these `missed`)."""

    present: int = 0
    mistaken: int = 0
    absent: int = 0
    missed: int = 0

    def __add__(self, other: "RelabelCounts") -> "RelabelCounts":
        return RelabelCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> int:
        return self.present + self.absent

    def estimate_overlooked(self, labeled_absent: int) -> Interval:
        """Return the present cells among all cells labeled absent, without those that these answers found.

        Of N cells the n asked again had x present ones. N times the limits of Clopper and Pearson (Biometrika 1934)
        for x of n, minus x, are conservative limits for a finite N.
        """
        if not self.absent:
            return Interval(None, 0.0, float(labeled_absent), NOT_MEASURED)
        share, was_absent = _bound_share(self.missed, self.absent), labeled_absent + self.missed
        rest = max(was_absent - self.absent, 0)
        least, most = (min(max(was_absent * end - self.missed, 0.0), rest) for end in (share.low, share.high))
        return Interval(round(rest * self.missed / self.absent, 1), math.floor(least), math.ceil(most))

    def describe(self) -> str:
        """Return a clause on what the second answers found, with 95% intervals, or "" without any."""
        if not self.total:
            return ""
        found = [
            f"of {format_count(asked, f'{state} label')}, {changed:,} {kind} "
            f"({format_share_interval(_bound_share(changed, asked))})"
            for changed, asked, state, kind in (
                (self.mistaken, self.present, "present", "wrong"),
                (self.missed, self.absent, "absent", "missed"),
            )
            if asked
        ]
        return f"{format_count(self.total, 'answer')} asked again, blind: {'; '.join(found)}"


def _bound_share(count: int, of: int) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return Interval(count / of, low, high)


@dataclass(frozen=True)
class CertificateRow:
    """The row of one class in a quality report, or of all classes together (`class_id` None).

    Attributes:
        people, accepted: Cells labeled present by annotators, and auto-accepted as present.
        audited, waiting: Answered and unanswered audit cells.
        recall: In [0, 1], assumes correct answers.
        recall_allowing: Allows for mistakes, if several annotators answered.
        missing: Estimated positive cells not labeled present.
        seconds: Estimated time to find 95% of `missing` in grids.
        asked_again: Audit answers to labeled cells, not in `audited`.
        overlooked: Present cells among those labeled absent, from `asked_again`.
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
    events: EventFigures | None = None
    asked_again: RelabelCounts = RelabelCounts()
    overlooked: Interval = UNMEASURED_INTERVAL

    @property
    def audit_answers(self) -> int:
        return self.audited + self.asked_again.total

    @property
    def says(self) -> str:
        """Return a sentence with the assumption behind recall and missing positives."""
        if self.asked_again.absent:
            return (
                f"{IF_ANSWERS_ARE_RIGHT.capitalize()}. {self.asked_again.describe()}. Still overlooked: "
                f"{format_count_interval(self.overlooked)}."
            )
        if not self.unknown and not self.audit_answers:
            return f"{IF_ANSWERS_ARE_RIGHT.capitalize()}: every pair has one, and no audit has checked them."
        return f"{IF_ANSWERS_ARE_RIGHT.capitalize()}."

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values.

        Unmeasured figures are None with a reason. `assuming` states the assumption behind a figure.
        """
        figures = {name: value.as_json() for name, value in vars(self).items() if isinstance(value, Interval)}
        for name in ("recall", "missing"):
            if "reason" not in figures[name]:
                figures[name]["assuming"] = IF_ANSWERS_ARE_RIGHT
        fields = asdict(self) | figures | {"audit_answers": self.audit_answers}
        del fields["events"]
        if self.events:
            of_events = {"recall": self.events.recall.as_json(), "missing": self.events.missing.as_json()}
            fields["events"] = {"found": self.events.found, "audited": self.events.audited} | of_events
        return fields


@dataclass(frozen=True)
class Certificate:
    """The quality report: figures per class and overall, and the data behind them.

    Attributes:
        audits: Audits used, newest first.
        uncovered: Images added after these audits.
        compared: Answers to positives that others also found, which measure mistakes.
        unsettled: Cells with conflicting answers.
        ruled_out: Class id -> sentence, for classes marked absent everywhere.
        lacks: Advice on reaching the target recall.
    """

    classes: list[CertificateRow]
    overall: CertificateRow
    relabels: RelabelCounts
    audits: list[Audit]
    images: int
    seconds_a_tile: float
    last_decision_id: int
    uncovered: int
    people: int
    compared: int
    unsettled: int
    ruled_out: dict[int, str]
    lacks: list[str]
    events: int | None = None
    set_aside: int = 0

    def find_reached_classes(self, target: float = DEFAULT_TARGET_RECALL, allowing: bool = False) -> list[int]:
        """Return the ids of classes whose recall reaches `target` with 95% confidence.

        Recall assumes correct answers, or allows for mistakes if `allowing`.
        """
        recalls = [(row.class_id, row.recall_allowing if allowing else row.recall) for row in self.classes]
        return [id_ for id_, recall in recalls if id_ is not None and recall.low >= target and not recall.reason]

    @property
    def unmeasured_class_count(self) -> int:
        return sum(bool(row.recall.reason) for row in self.classes)

    def headline(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return a clause on how many classes reach the target recall, without a period."""
        if self.unmeasured_class_count == len(self.classes):
            return "Not measured yet. An audit tells how many labels are missing"
        share = f"{len(self.find_reached_classes(target))} of {format_count(len(self.classes), 'class', 'classes')}"
        return f"{100 * target:g} % recall reached for {share}"

    def conditions(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return the assumptions behind the headline, without a period, or "" if nothing is measured."""
        if self.unmeasured_class_count == len(self.classes):
            return ""
        rest = f"; {self.unmeasured_class_count:,} not measured" if self.unmeasured_class_count else ""
        rest += f"; without {format_count(self.set_aside, 'image')} set aside" if self.set_aside else ""
        allowing = ""
        if self.compared:
            allowing = f". Reached allowing for their mistakes: {len(self.find_reached_classes(target, allowing=True))}"
        return f"With 95 % confidence, {IF_ANSWERS_ARE_RIGHT}{rest}{allowing}"

    def sentence(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return headline, conditions and precision in one text, without a final period."""
        precision = self.overall.precision
        parts = [self.headline(target), self.conditions(target)]
        if self.unmeasured_class_count < len(self.classes) or not precision.reason:
            parts.append(f"Precision: {precision.reason or format_share_interval(precision)}")
        return ". ".join(filter(None, parts))

    def in_events(self) -> str:
        """Return sentences on the number of events and their recall, or "" without events."""
        of_all = self.overall.events
        if of_all is None:
            return ""
        return (
            f"{format_count(self.images, 'image')} in {format_count(self.events or 0, 'event')}. "
            f"{format_count(of_all.found, 'pair')} of an event and a class found, by a label of a person. Recall of "
            f"events, from {format_count(of_all.audited, 'audited pair')}: {describe_share(of_all.recall)}."
        )

    @property
    def time_is_assumed(self) -> bool:
        """Return whether times come from the default time model, not from measured answers."""
        return self.seconds_a_tile == DEFAULT_TIMES.estimate_grid_seconds(GRID_TILES, CHANGED_TILES) / GRID_TILES

    def as_json(self) -> dict[str, Any]:
        rows = {"classes": [row.as_json() for row in self.classes], "overall": self.overall.as_json()}
        fields = asdict(self) | rows | {"audits": [audit.as_json() for audit in self.audits]}
        absent = {"events"} if self.events is None else set()
        absent |= set() if self.set_aside else {"set_aside"}
        return {name: value for name, value in fields.items() if name not in absent}


def describe_mistake_allowance(certificate: Certificate) -> str:
    """Describe which mistakes the recall that allows for mistakes covers, and which it misses."""
    return (
        f"Allowing for mistakes: from {format_count(certificate.compared, 'answer')} that others gave, too, blind. "
        "What everybody overlooks is not seen."
    )
