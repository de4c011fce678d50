"""The figures that a certificate states, of each class and of all."""

from dataclasses import asdict, dataclass
from typing import Any

from annotator.humanize import format_count
from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, Interval, describe_share, format_share_interval
from annotator.snapshot.project_progress import CHANGED_TILES, GRID_TILES
from annotator.snapshot.time_model import DEFAULT_TIMES
from annotator.store.labels.audits import Audit

DEFAULT_TARGET_RECALL = 0.98


@dataclass(frozen=True)
class EventFigures:
    """What is certified of a class, or of all, when each event counts once, whatever its number of images.

    Attributes:
        found: Events of which a person labeled an image present.
        audited: Events of audits of events whose answers count.
        recall: The share of the events showing the class that are found.
        missing: Events that show the class and are not found.
    """

    found: int
    audited: int
    recall: Interval
    missing: Interval


@dataclass(frozen=True)
class CertificateRow:
    """The certified figures of one class, or of all classes together (class_id None).

    Attributes:
        people, accepted: Cells labeled present by people, and auto-accepted as present.
        unknown: Cells that people have not decided.
        audited, waiting: Audit cells whose answers count here, and audit cells without an answer.
        recall, precision: Of the labels as they stand, in [0, 1]; recall holds if people's answers are right.
        recall_allowing: Recall that allows for people's mistakes, measured where several people answered.
        missing: Positives that are not labeled, in cells.
        seconds: Of grid work until 95 % of the missing positives are found, likeliest cells first; None where it is not
            measured.
        events: The same counted in events; None in a project without events.
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

    @property
    def says(self) -> str:
        """Return a sentence on what recall and the number of missing labels assume."""
        if not self.unknown and not self.audited:
            return f"{IF_ANSWERS_ARE_RIGHT.capitalize()}: every pair has one, and no audit has checked them."
        return f"{IF_ANSWERS_ARE_RIGHT.capitalize()}."

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values.

        A figure that was not measured is None, with the reason; `assuming` says under which condition a figure holds.
        """
        figures = {name: value.as_json() for name, value in vars(self).items() if isinstance(value, Interval)}
        for name in ("recall", "missing"):
            if "reason" not in figures[name]:
                figures[name]["assuming"] = IF_ANSWERS_ARE_RIGHT
        fields = asdict(self) | figures
        del fields["events"]
        if self.events:
            of_events = {"recall": self.events.recall.as_json(), "missing": self.events.missing.as_json()}
            fields["events"] = {"found": self.events.found, "audited": self.events.audited} | of_events
        return fields


@dataclass(frozen=True)
class RelabelCounts:
    """Counts of the audit answers to cells that people had decided.

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
    """The certified figures of the project: of each class and of all, and what they rest on.

    Attributes:
        images: How many images can be shown.
        audits: The audits whose answers were used, newest first.
        seconds_a_tile: Seconds for one tile of a grid, by the time model.
        last_decision_id: The newest decision that was counted.
        uncovered: Images that were added after the audits in use.
        people: How many people have answered.
        compared: Answers of people to positives that others, too, had found: the measure of mistakes.
        unsettled: Cells on which people differ.
        ruled_out: Class id -> a sentence on who takes it as absent, and after which sample (rule_out.py).
        lacks: Sentences that say what would improve the certificate.
        events: How many events the images are of; None in a project without events.
        set_aside: Images that people set aside, which are in no figure.
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
        """Return the ids of the classes whose recall is at least `target` with 95 % confidence.

        That is the low end of recall's interval.

        Args:
            target: The recall to reach, in [0, 1].
            allowing: Allow for people's mistakes; False: take their answers as right.
        """
        recalls = [(row.class_id, row.recall_allowing if allowing else row.recall) for row in self.classes]
        return [id_ for id_, recall in recalls if id_ is not None and recall.low >= target and not recall.reason]

    @property
    def unmeasured_class_count(self) -> int:
        """Return the number of classes whose recall was not measured."""
        return sum(bool(row.recall.reason) for row in self.classes)

    def headline(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return how many classes reach the target, or what would tell, without a full stop at the end."""
        if self.unmeasured_class_count == len(self.classes):
            return "Not measured yet. An audit tells how many labels are missing"
        share = f"{len(self.find_reached_classes(target))} of {format_count(len(self.classes), 'class', 'classes')}"
        return f"{100 * target:g} % recall reached for {share}"

    def conditions(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return what the headline rests on, without a full stop at the end; "" where nothing was measured."""
        if self.unmeasured_class_count == len(self.classes):
            return ""
        rest = f"; {self.unmeasured_class_count:,} not measured" if self.unmeasured_class_count else ""
        rest += f"; without {format_count(self.set_aside, 'image')} set aside" if self.set_aside else ""
        allowing = ""
        if self.compared:
            allowing = f". Reached allowing for their mistakes: {len(self.find_reached_classes(target, allowing=True))}"
        return f"With 95 % confidence, {IF_ANSWERS_ARE_RIGHT}{rest}{allowing}"

    def sentence(self, target: float = DEFAULT_TARGET_RECALL) -> str:
        """Return the stopping rule and the state of precision in words, without a full stop at the end."""
        precision = self.overall.precision
        parts = [self.headline(target), self.conditions(target)]
        if self.unmeasured_class_count < len(self.classes) or not precision.reason:
            parts.append(f"Precision: {precision.reason or format_share_interval(precision)}")
        return ". ".join(filter(None, parts))

    def in_events(self) -> str:
        """Return how many events there are and which of them are found, in words; "" in a project without events."""
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
        """Return whether the times are those of the default time model, as no grid has been timed in this project."""
        return self.seconds_a_tile == DEFAULT_TIMES.estimate_grid_seconds(GRID_TILES, CHANGED_TILES) / GRID_TILES

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values; a figure that was not measured is None, with the reason."""
        rows = {"classes": [row.as_json() for row in self.classes], "overall": self.overall.as_json()}
        fields = asdict(self) | rows | {"audits": [audit.as_json() for audit in self.audits]}
        absent = {"events"} if self.events is None else set()
        absent |= set() if self.set_aside else {"set_aside"}
        return {name: value for name, value in fields.items() if name not in absent}


def describe_mistake_allowance(certificate: Certificate) -> str:
    """Return what "allowing for mistakes" is measured on and what it cannot see, in words.

    Only for certificates with compared answers.
    """
    return (
        f"Allowing for mistakes: from {format_count(certificate.compared, 'answer')} that others gave, too, blind. "
        "What everybody overlooks is not seen."
    )
