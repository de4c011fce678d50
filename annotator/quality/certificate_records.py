"""Records of the figures in a quality report, per class and overall."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from annotator.humanize import format_count
from annotator.quality.evidence import (
    ALLOWANCES,
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
from spmll.statistics.allowed_mistakes import (
    ASSUMED_MISTAKE_SHARE,
    ENOUGH_REPEATS,
    READ_TWICE,
    REPEATED_ANSWERS,
    RepeatedAnswers,
)
from spmll.statistics.intervals import exact_interval

DEFAULT_TARGET_RECALL = 0.95  # more cannot be shown while 1 answer in 50 may be wrong
UNMEASURED_INTERVAL = Interval(None, 0.0, math.inf, NOT_MEASURED)


@dataclass(frozen=True)
class EventFigures:
    """Recall of one class, or of all, counted in events instead of images."""

    # events with an image labeled present by an annotator
    found: int
    audited: int
    # share of the events showing the class that are found
    recall: Interval
    missing: Interval


def estimate_overlooked(repeats: RepeatedAnswers, labeled_absent: int) -> Interval:
    """Return the present cells among all cells labeled absent, without those that the second answers found.

    Of N cells the n asked again had x present ones. N times the limits of Clopper and Pearson (Biometrika 1934)
    for x of n, minus x, are conservative limits for a finite N.
    """
    if not repeats.absent:
        return Interval(None, 0.0, float(labeled_absent), NOT_MEASURED)
    share, was_absent = exact_interval(repeats.missed, repeats.absent), labeled_absent + repeats.missed
    rest = max(was_absent - repeats.absent, 0)
    least, most = (min(max(was_absent * end - repeats.missed, 0.0), rest) for end in share)
    return Interval(round(rest * repeats.missed / repeats.absent, 1), math.floor(least), math.ceil(most))


def describe_repeats(repeats: RepeatedAnswers) -> str:
    """Return a clause on what the second answers found, with 95% intervals, or "" without any."""
    if not repeats.total:
        return ""
    found = [
        f"of {format_count(asked, f'{state} label')}, {changed:,} {kind} "
        f"({format_share_interval(Interval(changed / asked, *exact_interval(changed, asked)))})"
        for changed, asked, state, kind in (
            (repeats.mistaken, repeats.present, "present", "wrong"),
            (repeats.missed, repeats.absent, "absent", "missed"),
        )
        if asked
    ]
    return f"{format_count(repeats.total, 'answer')} asked again, blind: {'; '.join(found)}"


@dataclass(frozen=True)
class CertificateRow:
    """The row of one class in a quality report, or of all classes together (`class_id` None)."""

    class_id: int | None
    name: str
    # people, accepted: cells labeled present by annotators, and auto-accepted as present
    people: int
    accepted: int
    unknown: int
    # audited, waiting: answered and unanswered audit cells
    audited: int
    waiting: int
    # in [0, 1], assumes correct answers
    recall: Interval
    # allows for wrong answers. The target must be reached with it
    recall_allowing: Interval
    precision: Interval
    # estimated positive cells not labeled present
    missing: Interval
    # estimated time to find 95% of `missing` in grids
    seconds: float | None
    events: EventFigures | None = None
    # clause on the wrong answers that `recall_allowing` allows for
    allowance: str = ""
    # audit answers to labeled cells, not in `audited`
    asked_again: RepeatedAnswers = field(default_factory=RepeatedAnswers)
    # present cells among those labeled absent, from `asked_again`
    overlooked: Interval = UNMEASURED_INTERVAL

    @property
    def audit_answers(self) -> int:
        return self.audited + self.asked_again.total

    @property
    def says(self) -> str:
        """Return a sentence with the assumption behind recall and missing positives."""
        if self.asked_again.absent:
            return (
                f"{IF_ANSWERS_ARE_RIGHT.capitalize()}. {describe_repeats(self.asked_again)}. Still overlooked: "
                f"{format_count_interval(self.overlooked)}."
            )
        if not self.unknown and not self.audit_answers:
            return f"{IF_ANSWERS_ARE_RIGHT.capitalize()}: every pair has one, and no audit has checked them."
        return f"From {format_count(self.audited, 'audit answer')}, each taken as right."

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values.

        Unmeasured figures are None with a reason. `assuming` states the assumption behind a figure.
        """
        figures = {name: value.as_json() for name, value in vars(self).items() if isinstance(value, Interval)}
        for name in ("recall", "missing"):
            if "reason" not in figures[name]:
                figures[name]["assuming"] = IF_ANSWERS_ARE_RIGHT
        if "reason" not in figures["recall_allowing"]:
            figures["recall_allowing"]["assuming"] = self.allowance
        fields = asdict(self) | figures | {"audit_answers": self.audit_answers}
        del fields["events"]
        if self.events:
            of_events = {"recall": self.events.recall.as_json(), "missing": self.events.missing.as_json()}
            fields["events"] = {"found": self.events.found, "audited": self.events.audited} | of_events
        return fields


@dataclass(frozen=True)
class Certificate:
    """The quality report: figures per class and overall, and the data behind them."""

    classes: list[CertificateRow]
    overall: CertificateRow
    relabels: RepeatedAnswers
    # audits used, newest first
    audits: list[Audit]
    images: int
    seconds_a_tile: float
    last_decision_id: int
    # images added after these audits
    uncovered: int
    people: int
    # answers to positives that others also found, which measure mistakes
    compared: int
    # what the rates of wrong answers rest on, a key of ALLOWANCES
    mistakes: str
    # cells with conflicting answers
    unsettled: int
    # class id -> sentence, for classes marked absent everywhere
    ruled_out: dict[int, str]
    # advice on reaching the target recall
    lacks: list[str]
    events: int | None = None
    set_aside: int = 0

    @property
    def allowance(self) -> str:
        """Return the clause on the wrong answers that certified figures allow for."""
        return ALLOWANCES[self.mistakes]

    def find_reached_classes(self, target: float = DEFAULT_TARGET_RECALL) -> list[int]:
        """Return the ids of classes whose recall, allowing for wrong answers, reaches `target` with 95% confidence."""
        recalls = [(row.class_id, row.recall_allowing) for row in self.classes]
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
        return f"With 95 % confidence at all looks together, {self.allowance}{rest}"

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
    """Describe which wrong answers the certified recall allows for, and which it misses."""
    repeats = certificate.relabels.present + certificate.relabels.absent
    if certificate.mistakes == READ_TWICE:
        return (
            f"Allowing for mistakes: from {format_count(certificate.compared, 'answer')} that others gave, too, blind. "
            "What everybody overlooks is not seen."
        )
    if certificate.mistakes == REPEATED_ANSWERS:
        return (
            f"Allowing for mistakes: from {format_count(repeats, 'label')} that audits asked again, of all classes "
            "together. What is overlooked each time is not seen."
        )
    return (
        f"Allowing for mistakes: up to 1 answer in {1 / ASSUMED_MISTAKE_SHARE:.0f} may be wrong. Measured rates "
        f"replace this assumption once audits have asked {ENOUGH_REPEATS} present and {ENOUGH_REPEATS} absent labels "
        f"again ({certificate.relabels.present:,} and {certificate.relabels.absent:,} so far)."
    )
