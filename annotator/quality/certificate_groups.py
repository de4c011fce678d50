"""The quality report by metadata field: recall and precision per place, camera, hour and so on.

Audits of whole events do not count here.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.indexing import find_positions
from annotator.memory_allocator import release_freed_memory
from annotator.quality import audit_sampling, certification
from annotator.quality.certificate_strata import CellPopulation, count_relabels, select_best_audits
from annotator.quality.double_reading_counts import count_double_readings
from annotator.quality.evidence import (
    ALLOWANCES,
    IF_ANSWERS_ARE_RIGHT,
    Interval,
    explain_hidden_allowance,
    explain_hidden_missing,
    explain_hidden_precision,
    explain_hidden_recall,
    make_interval,
)
from annotator.records import ABSENT, PRESENT
from annotator.snapshot import fact_groups, gallery_listing, image_facts
from annotator.snapshot.fact_groups import FactGroups
from annotator.snapshot.image_facts import FactKind
from annotator.store.classes import classes
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.gallery import image_columns
from annotator.store.gallery.values import NO_TEXT
from annotator.store.images import attributes
from annotator.store.labels import audits, auto_accepted
from spmll.statistics.allowed_mistakes import allow_for_mistakes, select_allowed_mistakes
from spmll.statistics.bounds import CONFIDENCE
from spmll.statistics.certified_recall import LabelTotals, Strata, count_strata_by_domain
from spmll.statistics.domain_totals import certify_domain, select_domain_rows

MAX_GROUPS = 60  # groups; the rarest choices are one group together
UNKNOWN_GROUP_NAME = "not known"


@dataclass(frozen=True)
class CertifiedGroup:
    """Recall and precision over all classes for the images with one value of a metadata field."""

    name: str
    # filter text that selects its images, or ""
    given: str
    # position among the groups by name, number or time
    place: int
    images: int
    audited_images: int
    audited: int
    # people, accepted: cells labeled present by annotators, and auto-accepted as present
    people: int
    accepted: int
    unknown: int
    # assumes correct answers
    recall: Interval
    # allows for wrong answers, without second looks
    recall_allowing: Interval
    precision: Interval
    # estimated positive cells not labeled present
    missing: Interval

    @property
    def is_measured(self) -> bool:
        return not self.recall.reason

    def as_json(self) -> dict[str, Any]:
        figures = {name: value.as_json() for name, value in vars(self).items() if isinstance(value, Interval)}
        for name in ("recall", "missing"):
            if "reason" not in figures[name]:
                figures[name]["assuming"] = IF_ANSWERS_ARE_RIGHT
        return asdict(self) | figures


@dataclass(frozen=True)
class FactCertificate:
    """The quality report by one metadata field (`fact`).

    Groups are sorted by the lower end of recall's interval, unmeasured ones last by descending size.
    """

    fact: str
    label: str
    groups: list[CertifiedGroup]
    last_decision_id: int
    allowance: str = ""

    @property
    def measured_groups(self) -> list[CertifiedGroup]:
        return [group for group in self.groups if group.is_measured]

    def format_sentences(self) -> list[str]:
        """Return sentences on how many groups were measured, and on the effect of chance."""
        many, measured = len(self.groups), len(self.measured_groups)
        sampled = sum(group.unknown > 0 for group in self.measured_groups)
        sentences: list[str] = []
        if measured < many:
            rest = many - measured
            sentences.append(
                f"Not enough audited: {rest:,} of {format_count(many, 'group')}. A larger audit measures more."
            )
        if sampled > 1:
            wrong = (1 - CONFIDENCE) * sampled
            some = f"about {wrong:,.0f}" if wrong >= 1.5 else "one"
            sentences.append(
                f"Each interval holds with 95 % confidence on its own. Of {sampled:,} such intervals {some} may miss "
                "the truth by chance, so the lowest group may only look low."
            )
        return sentences

    def as_json(self) -> dict[str, Any]:
        return {
            "fact": self.fact,
            "label": self.label,
            "confidence": CONFIDENCE,
            "simultaneous": False,
            "assuming": self.allowance,
            "groups": [group.as_json() for group in self.groups],
            "last_decision_id": self.last_decision_id,
            "sentences": self.format_sentences(),
        }


def compute_certificate_by(db: Database, fact_name: str, max_groups: int = MAX_GROUPS) -> FactCertificate:
    """Compute recall and precision per value of a metadata field, for the `max_groups` groups with most images.

    Raises AnnotatorError if the field does not exist or has no value.
    """
    with gallery_listing.open_columns(db) as columns:
        fact = image_facts.find(db, columns, fact_name)
        image_ids = columns.image_ids.copy()
        groups = fact_groups.group_values(fact, fact.read_values(db, columns), max_groups)
    if not (groups.codes != NO_TEXT).any():
        by_worker = " The worker measures it: is it running?" if fact.by_worker else ""
        raise AnnotatorError(
            f"{fact.label} is known of none of {format_count(len(image_ids), 'image')}, so there are no groups by it."
            f"{by_worker}"
        )
    with db.reading():  # labels are read class by class, as of one moment
        cells = _GroupedCells(db, image_ids, groups, fact.kind == FactKind.CHOICE)
        found = cells.build_groups()
        newest = get_newest_decision_id(db.sql)
    release_freed_memory()
    measured = sorted((one for one in found if one.is_measured), key=lambda one: (one.recall.low, one.name))
    rest = sorted((one for one in found if not one.is_measured), key=lambda one: -one.images)
    return FactCertificate(fact.name, fact.label, measured + rest, newest, ALLOWANCES[cells.basis])


def get_change_key(db: Database) -> tuple[object, ...]:
    """Return a key that changes whenever a report by field may change, for caching."""
    return (*certification.get_change_key(db), attributes.get_change_key(db), image_columns.load_stamp(db))


class _GroupedCells:
    """The accumulator of all cells by group, counted class by class."""

    def __init__(self, db: Database, image_ids: np.ndarray, groups: FactGroups, by_name: bool):
        self._db, self._names = db, [*groups.labels, UNKNOWN_GROUP_NAME]
        self._given = [*groups.filter_values, ""]
        self._many = len(self._names)
        # What has no filter is no value: the rest of the choices, and what is not known.
        keys = [name.casefold() if by_name else "" for name in self._names]
        order = sorted(range(self._many), key=lambda group: (not self._given[group], keys[group], group))
        self._places = np.argsort(order).tolist()
        class_ids = np.array([class_.id for class_ in classes.load_active_classes(db)], np.int64)
        self._population = CellPopulation(db, audits.load_readable_image_ids(db), class_ids, None)
        places, known = find_positions(self._population.image_ids, image_ids)
        codes = np.where(known, groups.codes[places] if len(image_ids) else NO_TEXT, NO_TEXT)
        self._group_of = np.where(codes == NO_TEXT, self._many - 1, codes).astype(np.int32)
        self._samples = [
            sample
            for drawn in audits.load_audits(db)
            if not drawn.by_event
            for sample in audit_sampling.load_samples(db, drawn, audits.load_cells(db, drawn))
        ]
        self._parts: list[tuple[int, int, dict[str, np.ndarray]]] = []
        self._sampled = np.zeros(len(self._group_of), bool)  # images of which an answer counts
        self._audited = np.zeros(self._many, np.int64)
        self._labels = np.zeros((3, len(class_ids), self._many), np.int64)  # present, accepted, open
        for column in range(len(class_ids)):
            self._count_class(column)
        self._disputed = self._count_disagreed(class_ids)
        self._expected = self._load_expected_precision(class_ids)
        present, _, open_ = self._labels.sum(2)
        absent = len(self._population.image_ids) - present - open_
        read = count_double_readings(db, class_ids)
        self.basis, self._allowed = select_allowed_mistakes(count_relabels(self._samples), read, present, absent)

    def build_groups(self) -> list[CertifiedGroup]:
        images = np.bincount(self._group_of, minlength=self._many)
        sampled = np.bincount(self._group_of[self._sampled], minlength=self._many)
        return [
            self._build_group(group, int(images[group]), int(sampled[group]))
            for group in np.flatnonzero(images).tolist()
        ]

    def _count_class(self, column: int) -> None:
        states, accepted = self._population.read_class(column)
        is_open = (states != PRESENT) & (states != ABSENT)
        for place, cells in enumerate((states == PRESENT, accepted & is_open, is_open)):
            self._labels[place, column] = np.bincount(self._group_of[cells], minlength=self._many)
        used = np.zeros(len(states), bool)
        for number, (aligned, _) in enumerate(
            select_best_audits(self._samples, self._population, column, states, accepted)
        ):
            everything = np.ones(len(aligned.rows), bool)
            sample = (aligned.strata, states, accepted, aligned.rows, everything)
            counts = count_strata_by_domain(*sample, self._group_of, self._many)
            self._parts.append((column, number, counts))
            used[aligned.rows] = True
        self._sampled |= used
        self._audited += np.bincount(self._group_of[used], minlength=self._many)

    def _build_group(self, group: int, images: int, audited_images: int) -> CertifiedGroup:
        present, accepted, open_ = self._labels[:, :, group]
        people, filled, unknown = int(present.sum()), int(accepted.sum()), int(open_.sum())
        audited = int(self._audited[group])
        relabels = count_relabels(self._samples, self._population.image_ids[self._group_of == group])
        # What a guarantee promises of all cells together it does not promise of each place.
        labels = LabelTotals(
            present=present,
            accepted=accepted,
            guaranteed=np.zeros(len(present)),
            expected=self._expected,
            disagreed_present=self._disputed[0, :, group],
            disagreed_absent=self._disputed[1, :, group],
            relabeled=relabels.present,
            relabeled_wrong=relabels.mistaken,
        )
        certified = certify_domain(self._build_strata(group), labels)
        recall, precision = make_interval(certified.recall, -1, 4), make_interval(certified.precision, -1, 4)
        missing = make_interval(certified.missing, -1, 1)
        labeled = people + filled
        absent = images - present - open_
        bounds = allow_for_mistakes(certified, labels, absent, open_ - accepted, self._allowed)
        allowing = make_interval(bounds, -1, 4)
        hidden = explain_hidden_recall(recall, labeled, unknown, audited)
        return CertifiedGroup(
            name=self._names[group],
            given=self._given[group],
            place=self._places[group],
            images=images,
            audited_images=audited_images,
            audited=audited,
            people=people,
            accepted=filled,
            unknown=unknown,
            recall=_set_reason(recall, hidden),
            recall_allowing=_set_reason(allowing, hidden or explain_hidden_allowance(allowing, labeled)),
            precision=_set_reason(
                precision, explain_hidden_precision(precision, people, filled, audited, relabels.present)
            ),
            missing=_set_reason(missing, explain_hidden_missing(missing, recall, labeled, unknown, audited)),
        )

    def _build_strata(self, group: int) -> Strata:
        rows: list[dict[str, np.ndarray]] = []
        for column, number, counts in self._parts:
            within = select_domain_rows(counts, group)
            size = len(within["code"])
            rows.append(within | {"of_class": np.full(size, column), "audit": np.full(size, number)})
        none = np.zeros(0, np.int64)
        names = Strata.__dataclass_fields__
        return Strata(**{name: np.concatenate([none, *(row[name] for row in rows)]) for name in names})

    def _count_disagreed(self, class_ids: np.ndarray) -> np.ndarray:
        """Count cells with conflicting answers, (2, C, G): by label (present, absent), class and group."""
        result = np.zeros((2, len(class_ids), self._many), np.int64)
        cells = audits.load_disagreed_cells(self._db)
        columns, is_class = find_positions(cells[:, 0], class_ids)
        places, is_image = find_positions(cells[:, 1], self._population.image_ids)
        for row, state in enumerate((PRESENT, ABSENT)):
            of = is_class & is_image & (cells[:, 2] == state)
            np.add.at(result[row], (columns[of], self._group_of[places[of]]), 1)
        return result

    def _load_expected_precision(self, class_ids: np.ndarray) -> np.ndarray:
        result = np.full(len(class_ids), np.nan)
        for acceptance in auto_accepted.load_acceptances(self._db):
            if acceptance.state == PRESENT and acceptance.cells:
                result[class_ids == acceptance.class_id] = 1 - acceptance.wrong / max(acceptance.audited, 1)
        return result


def _set_reason(interval: Interval, reason: str) -> Interval:
    return Interval(interval.estimate, interval.low, interval.high, reason)
