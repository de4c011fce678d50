"""The certificate: how complete and how correct the labels are, estimated from audit samples (audit.py).

This module reads the store and builds the records; the statistics are those of models/statistics/certificate.py.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from annotator.indexing import positions
from annotator.quality import audit, event_audit, guarantee, rule_out
from annotator.quality.audit import Sample
from annotator.quality.certificate_records import TARGET, Certificate, EventFigures, Relabels, Row
from annotator.quality.double_reading import double_read
from annotator.quality.evidence import Interval, allowing_reason, missing_reason, precision_reason, recall_reason
from annotator.quality.shortfall import lacks
from annotator.records import ABSENT, PRESENT, Class
from annotator.snapshot.predictions import read_predictions
from annotator.snapshot.progress import CHANGED, TILES
from annotator.snapshot.time_model import time_model_of
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.database import Database, newest_decision
from annotator.store.events import membership
from annotator.store.images import set_aside
from annotator.store.labels import audits, auto_accepted
from annotator.store.labels import counts as overview
from annotator.store.labels.audits import OPEN, Audit, AuditCells
from annotator.store.pictures.decoding_budget import give_back_freed
from annotator.store.runs import runs
from models.statistics.bounds import Bounds
from models.statistics.certificate import Certified, Labels, Strata, certify, count
from models.statistics.double_reading import allowing_for_mistakes
from models.statistics.event_totals import certify_events, count_events, states_of_events
from models.statistics.stratified_sampling import LOOK_ABSENT, LOOK_PRESENT, OUTSIDE

COLUMNS_AT_ONCE = 8  # of all probabilities: reading one column of them takes as long as reading eight
FOUND = 0.95  # share of the missing positives that the stated time finds
UNKNOWN = Interval(None, 0.0, 1.0)
SLACK = 0.02  # an audit is used, too, if it leaves at most this share of a class's cells more without a sample


def certificate(db: Database, target: float = TARGET) -> Certificate:
    """Compute the certificate of the labels as they stand.

    People's decisions are taken as true; relabels estimate how many are not, and lower precision. Where several people
    answered the same images, recall is also given allowing for their mistakes (double_reading.py). Cells on which
    annotators disagree count either way. Audits that leave out newer images or classes are used only where there is no
    other. Without any answer the interval of recall is what is certain: from "all unknown cells are present" to "none
    is".

    Args:
        db: The project's database.
        target: The recall that `lacks` refers to.
    """
    with db.reading():  # labels are read class by class, as of one moment
        result = _certificate(db, target)
    give_back_freed()
    return result


def _certificate(db: Database, target: float) -> Certificate:
    newest = newest_decision(db.sql)
    all_classes = classes.all_classes(db)
    class_ids = np.array([class_.id for class_ in all_classes], np.int64)
    image_ids = audits.readable_images(db)
    event_of = membership.events_of(db, image_ids)
    events = None if event_of is None else membership.numbered(event_of)
    population = _Population(db, image_ids, class_ids, events)
    drawn = [(drawn_audit, audits.cells_of(db, drawn_audit)) for drawn_audit in audits.audits(db)]
    of_images = [pair for pair in drawn if not pair[0].by_event]
    samples = [sample for drawn_audit, cells in of_images for sample in audit.samples_of(db, drawn_audit, cells)]
    strata, parts, counts, of_events = _strata(samples, population, [pair for pair in drawn if pair[0].by_event])
    relabels = _relabels(samples)
    labels = _labels(db, class_ids, counts, relabels)
    certified = certify(strata, labels)
    compared, allowing = np.zeros(len(class_ids) + 1, np.int64), None
    if read := double_read(db, class_ids):
        absent = len(image_ids) - counts.present - counts.open
        compared = read.compared
        allowing = allowing_for_mistakes(certified, labels, absent, counts.open - counts.accepted, read)
    waiting = {cell for _, cells in drawn for cell in _waiting(cells)}
    seconds_a_tile = seconds_per_tile(db)
    tiles = _tiles(population, strata, parts, certified)
    waiting_of_class = Counter(class_id for class_id, _ in waiting)
    rows = _rows(all_classes, counts, strata, certified, allowing, waiting_of_class, tiles * seconds_a_tile)
    if events is not None:
        rows = _with_events(rows, of_events)
    *of_classes, overall = (
        _with_reasons(row, relabels, answers) for row, answers in zip(rows, compared.tolist(), strict=True)
    )
    used = {part.sample.audit.id: part.sample.audit for part in parts if part.sample}
    if overall.events and overall.events.audited:
        used |= {drawn_audit.id: drawn_audit for drawn_audit, _ in drawn if drawn_audit.by_event}
    result = Certificate(
        classes=of_classes,
        overall=overall,
        relabels=relabels,
        audits=sorted(used.values(), key=lambda drawn_audit: -drawn_audit.id),
        images=len(image_ids),
        seconds_a_tile=seconds_a_tile,
        last_decision_id=newest,
        uncovered=max((part.uncovered for part in parts if part.sample), default=0),
        people=len({*overview.annotators(db)} - {"import"}),
        compared=int(compared[-1]),
        ruled_out=_ruled_out(db, all_classes),
        unsettled=int(labels.disagreed_present.sum() + labels.disagreed_absent.sum()),
        lacks=[],
        events=None if events is None else int(events.max(initial=-1)) + 1,
        set_aside=set_aside.count(db),
    )
    result.lacks.extend(lacks(result, target))
    return result


def stamp(db: Database) -> tuple[object, ...]:
    """Return all that the certificate depends on: while two stamps are equal, so are the certificates."""
    run, acceptances, newest_audit = runs.current_run(db), auto_accepted.acceptances(db), audits.audits(db, 1)
    return (
        versions.version(db),
        (run.id, run.version) if run else None,
        newest_audit[0].id if newest_audit else None,
        (len(acceptances), sum(bool(acceptance.withdrawn) for acceptance in acceptances), guarantee.chosen(db)),
        tuple(overview.image_counts(db).values()),
        membership.stamp(db),
    )


def seconds_per_tile(db: Database) -> float:
    """Return the seconds for one tile of a grid, by the time model of everybody's newest answers."""
    return time_model_of(db, "").grid(TILES, CHANGED) / TILES


@dataclass(frozen=True, eq=False)
class _Population:
    """All cells of the project, whose labels are read class by class: N bytes at a time instead of N x C.

    Attributes:
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64.
        events: (N,) int64 from 0, the event of each image; None in a project without events.
    """

    db: Database
    image_ids: np.ndarray
    class_ids: np.ndarray
    events: np.ndarray | None

    def of_class(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of one class, (N,) int8, and which cells are auto-accepted as present, (N,) bool."""
        class_id = int(self.class_ids[column])
        accepted = audits.class_accepted(self.db, class_id, self.image_ids) == PRESENT
        return audits.class_labels(self.db, class_id, self.image_ids), accepted


@dataclass(frozen=True, eq=False)
class _Aligned:
    """A sample of one class in rows of the current images.

    Attributes:
        sample: None without an audit.
        strata: (N,) uint8.
        rows: (n,) sampled rows, without relabels.
        uncovered: Images that were added after the sample was drawn.
    """

    sample: Sample | None
    strata: np.ndarray
    rows: np.ndarray
    uncovered: int


@dataclass(frozen=True, eq=False)
class _Part:
    """The strata that one audit contributes to one class; rows (h,) are places in `Strata`."""

    column: int
    sample: Sample | None
    uncovered: int
    rows: np.ndarray


def _aligned(sample: Sample, image_ids: np.ndarray) -> _Aligned:
    places, known = positions(image_ids, sample.image_ids)
    strata = np.where(known, sample.strata[places], OUTSIDE)
    rows, _ = positions(sample.image_ids[sample.rows], image_ids)
    relabel = np.isin(strata[rows], (LOOK_PRESENT, LOOK_ABSENT))
    return _Aligned(sample, strata, rows[~relabel], int((~known).sum()))


def _unaudited(images: int) -> _Aligned:
    return _Aligned(None, np.full(images, OUTSIDE, np.uint8), np.zeros(0, np.int64), images)


def _counts(aligned: _Aligned, states: np.ndarray, accepted: np.ndarray) -> dict[str, np.ndarray]:
    return count(aligned.strata, states, accepted, aligned.rows, np.ones(len(aligned.rows), bool))


def _sharpest(
    counted: list[tuple[_Aligned, dict[str, np.ndarray]]], images: int
) -> list[tuple[_Aligned, dict[str, np.ndarray]]]:
    """Return the audits of one class that leave the fewest open cells without a sample, within SLACK."""
    blank = [
        int(((counts["size"] - counts["present"] - counts["absent"]) * (counts["drawn"] == 0)).sum())
        for _, counts in counted
    ]
    return [part for part, cells in zip(counted, blank, strict=True) if cells <= min(blank) + SLACK * images]


class _EventCounts(NamedTuple):
    """The events of one class: the rows of `Strata` of its sample, and how many events are found."""

    strata: dict[str, np.ndarray]
    found: int


class CellCounts(NamedTuple):
    """Counts of cells by class, (C,) each.

    present: labeled present; open: without a present or absent label; accepted: those of `open` that are auto-accepted
    as present.
    """

    present: np.ndarray
    accepted: np.ndarray
    open: np.ndarray


def _strata(
    samples: list[Sample], population: _Population, of_events: list[tuple[Audit, AuditCells]]
) -> tuple[Strata, list[_Part], CellCounts, list[_EventCounts]]:
    """Return all strata of all classes, the part of each audit in them, and the counts of cells by label.

    And what is known of the events of each class, from audits of events; [] in a project without events.
    """
    strata: list[dict[str, np.ndarray]] = []
    counts_of_events: list[_EventCounts] = []
    parts: list[_Part] = []
    images, length = len(population.image_ids), 0
    cells = np.zeros((3, len(population.class_ids)), np.int64)
    for column, class_id in enumerate(population.class_ids.tolist()):
        states, accepted = population.of_class(column)
        is_open = (states != PRESENT) & (states != ABSENT)
        cells[:, column] = (states == PRESENT).sum(), (accepted & is_open).sum(), is_open.sum()
        of_class = [_aligned(sample, population.image_ids) for sample in samples if sample.class_id == class_id]
        answered = [aligned for aligned in of_class if len(aligned.rows)] or [_unaudited(images)]
        counted = [(aligned, _counts(aligned, states, accepted)) for aligned in answered]
        if population.events is not None:
            sample = event_audit.largest_sample(population.db, of_events, class_id, population.image_ids)
            found = int((states_of_events(states, population.events) == PRESENT).sum())
            counts_of_events.append(_EventCounts(count_events(sample, states, population.events), found))
        for number, (aligned, counts) in enumerate(_sharpest(counted, images)):
            size = len(counts["code"])
            strata.append(counts | {"of_class": np.full(size, column), "audit": np.full(size, number)})
            parts.append(_Part(column, aligned.sample, aligned.uncovered, np.arange(length, length + size)))
            length += size
    empty = np.zeros(0, np.int64)
    names = Strata.__dataclass_fields__
    joined = {name: np.concatenate([empty, *(counts[name] for counts in strata)]) for name in names}
    return Strata(**joined), parts, CellCounts(*cells), counts_of_events


def _relabels(samples: list[Sample]) -> Relabels:
    strata = np.concatenate([np.zeros(0, np.int64), *(sample.strata[sample.rows] for sample in samples)])
    states = np.concatenate([np.zeros(0, np.int64), *(sample.states for sample in samples)])
    at_present, at_absent = strata == LOOK_PRESENT, strata == LOOK_ABSENT
    sure = states != 0
    return Relabels(
        present=int((at_present & sure).sum()),
        mistaken=int((at_present & (states == ABSENT)).sum()),
        absent=int((at_absent & sure).sum()),
        missed=int((at_absent & (states == PRESENT)).sum()),
    )


def _labels(db: Database, class_ids: np.ndarray, counts: CellCounts, relabels: Relabels) -> Labels:
    column_of = {class_id: column for column, class_id in enumerate(class_ids.tolist())}
    disagreed_present, disagreed_absent = np.zeros((2, len(class_ids)), np.int64)
    guaranteed, expected, in_all = np.zeros(len(class_ids)), np.full(len(class_ids), np.nan), 1.0
    chosen = guarantee.chosen(db)
    for acceptance in auto_accepted.acceptances(db):
        if acceptance.state == PRESENT and acceptance.cells and acceptance.class_id in column_of:
            column, in_all = column_of[acceptance.class_id], min(in_all, acceptance.precision)
            expected[column] = 1 - acceptance.wrong / max(acceptance.audited, 1)
            # A guarantee for all classes together guarantees nothing about a single class.
            guaranteed[column] = 0.0 if chosen is None or chosen.together else acceptance.precision
    for (class_id, state), cells in audits.disagreement_counts(db).items():
        if class_id in column_of and state in (PRESENT, ABSENT):
            (disagreed_present if state == PRESENT else disagreed_absent)[column_of[class_id]] = cells
    return Labels(
        present=counts.present,
        accepted=counts.accepted,
        guaranteed=guaranteed,
        expected=expected,
        disagreed_present=disagreed_present,
        disagreed_absent=disagreed_absent,
        guaranteed_in_all=in_all,
        looked=relabels.present,
        mistaken=relabels.mistaken,
    )


def _ruled_out(db: Database, all_classes: list[Class]) -> dict[int, str]:
    """Return class id -> a sentence on each class that a person has ruled out, which names nobody."""
    names = {class_.id: class_.name for class_ in all_classes}
    rulings = [ruling for ruling in rule_out.rulings(db) if ruling.class_id in names]
    return {ruling.class_id: f"{rule_out.in_words(ruling, names[ruling.class_id])}." for ruling in rulings}


def _waiting(cells: AuditCells) -> set[tuple[int, int]]:
    """Return the audit cells that wait for an answer, as (class id, image id)."""
    waits = (cells.state == OPEN) & cells.shown
    return set(zip(cells.class_id[waits].tolist(), cells.image_id[waits].tolist(), strict=True))


def _tiles(population: _Population, strata: Strata, parts: list[_Part], certified: Certified) -> np.ndarray:
    """Return (C,) how many tiles grids show until FOUND of the missing positives are found.

    nan for an unaudited class. The missing positives of a stratum are distributed over its open cells in proportion to
    the current run's probabilities; grids show the likeliest cells first.
    """
    image_ids, class_ids = population.image_ids, population.class_ids
    tiles = np.full(len(class_ids), np.nan)
    predictions, probabilities, first = read_predictions(population.db), np.zeros((0, 0), np.float16), -COLUMNS_AT_ONCE
    for column, of_class in groupby((part for part in parts if part.sample), lambda part: part.column):
        if column >= first + COLUMNS_AT_ONCE:
            first = column
            some = class_ids[first : first + COLUMNS_AT_ONCE]
            probabilities = audit.probabilities_of(predictions, image_ids, some)
        states, accepted = population.of_class(column)
        cells = np.flatnonzero((states == OPEN) & ~accepted)
        weights = np.nan_to_num(probabilities[cells, column - first].astype(np.float64)) + 1e-4
        shares = np.zeros(len(cells))  # expected positives of each open cell, summed over audits
        for part in of_class:
            assert part.sample is not None
            expected, codes = np.zeros(256), strata.code[part.rows]
            expected[codes] = certified.in_strata[part.rows]
            of_cells = _aligned(part.sample, image_ids).strata[cells]
            code = np.where(np.isin(of_cells, codes), of_cells, OUTSIDE)
            shares += expected[code] * weights / np.maximum(np.bincount(code, weights, minlength=256)[code], 1e-12)
        cumulative = np.cumsum(np.sort(shares)[::-1])
        total = cumulative[-1] if len(cumulative) else 0
        tiles[column] = 0 if total <= 0 else 1 + np.searchsorted(cumulative, FOUND * total)
    return tiles


def _rows(
    all_classes: list[Class],
    counts: CellCounts,
    strata: Strata,
    certified: Certified,
    allowing: Bounds | None,
    waiting: Counter[int],
    seconds: np.ndarray,
) -> list[Row]:
    """Return the row of each class, and at the end the row of all of them together."""
    size = len(all_classes)
    audited = np.bincount(strata.of_class, strata.drawn, minlength=size) if size else np.zeros(0)
    waits = np.array([waiting[class_.id] for class_ in all_classes], np.int64)
    by_class = (counts.present, counts.accepted, counts.open, audited, waits)
    people, accepted_cells, unknown, audited, waits = (
        np.append(counts, counts.sum()).astype(int) for counts in by_class
    )
    all_seconds = float(np.nansum(seconds)) if size and not np.isnan(seconds).any() else np.nan
    seconds = np.append(seconds, all_seconds)
    names: list[tuple[int | None, str]] = [*((class_.id, class_.name) for class_ in all_classes), (None, "all classes")]
    return [
        Row(
            class_id=class_id,
            name=name,
            people=int(people[place]),
            accepted=int(accepted_cells[place]),
            unknown=int(unknown[place]),
            audited=int(audited[place]),
            waiting=int(waits[place]),
            recall=_interval(certified.recall, place, 4),
            recall_allowing=_interval(allowing, place, 4) if allowing else UNKNOWN,
            precision=_interval(certified.precision, place, 4),
            missing=_interval(certified.missing, place, 1),
            seconds=_number(seconds[place], 1),
        )
        for place, (class_id, name) in enumerate(names)
    ]


def _with_events(rows: list[Row], counts: list[_EventCounts]) -> list[Row]:
    """Return the rows with their figures counted in events."""
    found = np.array([of_class.found for of_class in counts], np.int64)
    totals = certify_events([of_class.strata for of_class in counts], found)
    return [
        replace(
            row,
            events=EventFigures(
                int(totals.found[place]),
                int(totals.drawn[place]),
                _interval(totals.recall, place, 4),
                _interval(totals.missing, place, 1),
            ),
        )
        for place, row in enumerate(rows)
    ]


def _with_reasons(row: Row, relabels: Relabels, compared: int) -> Row:
    labeled = row.people + row.accepted
    recall = recall_reason(row.recall, labeled, row.unknown, row.audited)
    precision = precision_reason(row.precision, row.people, row.accepted, row.audited, relabels.present)
    missing = missing_reason(row.missing, row.recall, labeled, row.unknown, row.audited)
    allowing = recall or allowing_reason(row.recall_allowing, labeled, compared)
    events = row.events
    if events:
        known = (events.found, row.unknown, events.audited)
        events = replace(
            events,
            recall=replace(events.recall, reason=recall_reason(events.recall, *known)),
            missing=replace(events.missing, reason=missing_reason(events.missing, events.recall, *known)),
        )
    return replace(
        row,
        events=events,
        recall=replace(row.recall, reason=recall),
        recall_allowing=replace(row.recall_allowing, reason=allowing),
        precision=replace(row.precision, reason=precision),
        missing=replace(row.missing, reason=missing),
        seconds=None if missing else row.seconds,
    )


def _interval(bounds: Bounds, place: int, digits: int) -> Interval:
    # Rounded outwards: rounding never narrows the interval.
    scale = 10**digits
    low, high = np.floor(bounds.low[place] * scale) / scale, np.ceil(bounds.high[place] * scale) / scale
    return Interval(_number(bounds.estimate[place], digits), float(low), float(high))


def _number(value: float, digits: int) -> float | None:
    return None if np.isnan(value) else round(float(value), digits)
