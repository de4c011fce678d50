"""The quality report: recall and precision of the labels, estimated from audit samples."""

from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np

from annotator.memory_allocator import release_freed_memory
from annotator.quality import audit_sampling, guarantee, rule_out
from annotator.quality.certificate_records import (
    DEFAULT_TARGET_RECALL,
    Certificate,
    CertificateRow,
    EventFigures,
    estimate_overlooked,
)
from annotator.quality.certificate_strata import (
    AuditPart,
    CellCounts,
    CellPopulation,
    EventCounts,
    align_sample,
    build_strata,
    count_relabels,
    count_relabels_by_class,
)
from annotator.quality.double_reading_counts import count_double_readings
from annotator.quality.evidence import (
    ALLOWANCES,
    explain_hidden_allowance,
    explain_hidden_missing,
    explain_hidden_precision,
    explain_hidden_recall,
    make_interval,
    round_or_none,
)
from annotator.quality.shortfall import list_shortfalls
from annotator.records import ABSENT, PRESENT, Class
from annotator.snapshot.project_progress import CHANGED_TILES, GRID_TILES
from annotator.snapshot.run_predictions import read_predictions
from annotator.snapshot.time_model import load_time_model
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.events import membership
from annotator.store.images import excluded_images
from annotator.store.labels import audits, auto_accepted, project_counts
from annotator.store.labels.audits import OPEN, AuditCells
from annotator.store.runs import runs
from spmll.statistics.allowed_mistakes import (
    RepeatedAnswers,
    allow_for_mistakes,
    select_allowed_mistakes,
)
from spmll.statistics.bounds import Bounds
from spmll.statistics.certified_recall import CertifiedFigures, LabelTotals, Strata, certify
from spmll.statistics.event_totals import certify_events
from spmll.statistics.stratified_sampling import NO_STRATUM

COLUMNS_PER_READ = 8  # of all probabilities: reading one column of them takes as long as reading eight
FOUND_SHARE = 0.95  # share of the missing positives that the stated time finds


def compute_certificate(db: Database, target: float = DEFAULT_TARGET_RECALL) -> Certificate:
    """Compute the quality report of the current labels.

    Recall is given if all labels are right, and allowing for wrong answers, at a rate that repeated answers show or
    that is assumed. Relabels (blind second answers) lower precision. Without audit answers, recall ranges from all
    unanswered cells present to none.

    Args:
        target: Recall that `lacks` refers to.
    """
    with db.reading():  # labels are read class by class, as of one moment
        result = _compute_certificate(db, target)
    release_freed_memory()
    return result


def _compute_certificate(db: Database, target: float) -> Certificate:
    newest = get_newest_decision_id(db.sql)
    all_classes = classes.load_active_classes(db)
    class_ids = np.array([class_.id for class_ in all_classes], np.int64)
    image_ids = audits.load_readable_image_ids(db)
    event_of = membership.load_event_ids(db, image_ids)
    events = None if event_of is None else membership.number_events(event_of)
    population = CellPopulation(db, image_ids, class_ids, events)
    drawn = [(drawn_audit, audits.load_cells(db, drawn_audit)) for drawn_audit in audits.load_audits(db)]
    of_images = [pair for pair in drawn if not pair[0].by_event]
    samples = [
        sample for drawn_audit, cells in of_images for sample in audit_sampling.load_samples(db, drawn_audit, cells)
    ]
    strata, parts, counts, of_events = build_strata(samples, population, [pair for pair in drawn if pair[0].by_event])
    asked_again = count_relabels_by_class(samples)
    relabels = sum(asked_again.values(), RepeatedAnswers())
    labels = _build_label_totals(db, class_ids, counts, relabels)
    certified = certify(strata, labels)
    read, absent = count_double_readings(db, class_ids), len(image_ids) - counts.present - counts.open
    compared = read.compared_answers[-1] if read else 0
    basis, allowed = select_allowed_mistakes(relabels, read, counts.present, absent)
    recall_allowing = allow_for_mistakes(certified, labels, absent, counts.open - counts.accepted, allowed, read)
    waiting = {cell for _, cells in drawn for cell in _find_waiting_cells(cells)}
    seconds_a_tile = estimate_seconds_per_tile(db)
    tiles = _count_tiles(population, strata, parts, certified)
    waiting_of_class = Counter(class_id for class_id, _ in waiting)
    rows = _build_rows(
        all_classes, counts, strata, certified, recall_allowing, waiting_of_class, tiles * seconds_a_tile
    )
    rows = _add_second_answers(rows, asked_again, absent)
    if events is not None:
        rows = _add_event_figures(rows, of_events)
    *of_classes, overall = (_add_reasons(row, relabels, basis) for row in rows)
    used = {part.sample.audit.id: part.sample.audit for part in parts if part.sample}
    used |= {sample.audit.id: sample.audit for sample in samples if count_relabels([sample]).total}
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
        people=len({*project_counts.list_annotators(db)} - {"import"}),
        compared=int(compared),
        mistakes=basis,
        ruled_out=_describe_ruled_out(db, all_classes),
        unsettled=int(labels.disagreed_present.sum() + labels.disagreed_absent.sum()),
        lacks=[],
        events=None if events is None else int(events.max(initial=-1)) + 1,
        set_aside=excluded_images.count(db),
    )
    result.lacks.extend(list_shortfalls(result, target))
    return result


def get_change_key(db: Database) -> tuple[object, ...]:
    """Return a key that changes whenever the quality report may change, for caching."""
    run, acceptances, newest_audit = (
        runs.load_current_run(db),
        auto_accepted.load_acceptances(db),
        audits.load_audits(db, 1),
    )
    return (
        versions.get_label_version(db),
        (run.id, run.version) if run else None,
        newest_audit[0].id if newest_audit else None,
        (len(acceptances), sum(bool(acceptance.withdrawn) for acceptance in acceptances), guarantee.get_guarantee(db)),
        tuple(project_counts.count_images_by_stage(db).values()),
        membership.get_change_key(db),
    )


def estimate_seconds_per_tile(db: Database) -> float:
    """Return the seconds per grid tile, from the times of the newest answers of all annotators."""
    return load_time_model(db, "").estimate_grid_seconds(GRID_TILES, CHANGED_TILES) / GRID_TILES


def _build_label_totals(
    db: Database, class_ids: np.ndarray, counts: CellCounts, relabels: RepeatedAnswers
) -> LabelTotals:
    column_of = {class_id: column for column, class_id in enumerate(class_ids.tolist())}
    disagreed_present, disagreed_absent = np.zeros((2, len(class_ids)), np.int64)
    guaranteed, expected, in_all = np.zeros(len(class_ids)), np.full(len(class_ids), np.nan), 1.0
    chosen = guarantee.get_guarantee(db)
    for acceptance in auto_accepted.load_acceptances(db):
        if acceptance.state == PRESENT and acceptance.cells and acceptance.class_id in column_of:
            column, in_all = column_of[acceptance.class_id], min(in_all, acceptance.precision)
            expected[column] = 1 - acceptance.wrong / max(acceptance.audited, 1)
            # A guarantee for all classes together guarantees nothing about a single class.
            guaranteed[column] = 0.0 if chosen is None or chosen.together else acceptance.precision
    for (class_id, state), cells in audits.count_disagreements(db).items():
        if class_id in column_of and state in (PRESENT, ABSENT):
            (disagreed_present if state == PRESENT else disagreed_absent)[column_of[class_id]] = cells
    return LabelTotals(
        present=counts.present,
        accepted=counts.accepted,
        guaranteed=guaranteed,
        expected=expected,
        disagreed_present=disagreed_present,
        disagreed_absent=disagreed_absent,
        guaranteed_in_all=in_all,
        relabeled=relabels.present,
        relabeled_wrong=relabels.mistaken,
        confirmed=counts.confirmed,
        is_confirmed=counts.unconfirmed == 0,
        looks=np.append(counts.audits, counts.audits.max(initial=0)),
    )


def _describe_ruled_out(db: Database, all_classes: list[Class]) -> dict[int, str]:
    names = {class_.id: class_.name for class_ in all_classes}
    rulings = [ruling for ruling in rule_out.load_rulings(db) if ruling.class_id in names]
    return {ruling.class_id: f"{rule_out.describe_ruling(ruling, names[ruling.class_id])}." for ruling in rulings}


def _find_waiting_cells(cells: AuditCells) -> set[tuple[int, int]]:
    waits = (cells.state == OPEN) & cells.shown
    return set(zip(cells.class_id[waits].tolist(), cells.image_id[waits].tolist(), strict=True))


def _count_tiles(
    population: CellPopulation, strata: Strata, parts: list[AuditPart], certified: CertifiedFigures
) -> np.ndarray:
    """Return per class, (C,), the grid tiles to view to find FOUND_SHARE of its missing positives, or nan."""
    image_ids, class_ids = population.image_ids, population.class_ids
    tiles = np.full(len(class_ids), np.nan)
    predictions, probabilities, first = read_predictions(population.db), np.zeros((0, 0), np.float16), -COLUMNS_PER_READ
    for column, of_class in groupby((part for part in parts if part.sample), lambda part: part.column):
        if column >= first + COLUMNS_PER_READ:
            first = column
            some = class_ids[first : first + COLUMNS_PER_READ]
            probabilities = audit_sampling.get_probabilities(predictions, image_ids, some)
        states, accepted = population.read_class(column)
        cells = np.flatnonzero((states == OPEN) & ~accepted)
        weights = np.nan_to_num(probabilities[cells, column - first].astype(np.float64)) + 1e-4
        shares = np.zeros(len(cells))  # expected positives of each open cell, summed over audits
        for part in of_class:
            assert part.sample is not None
            expected, codes = np.zeros(256), strata.code[part.rows]
            expected[codes] = certified.in_strata[part.rows]
            of_cells = align_sample(part.sample, image_ids).strata[cells]
            code = np.where(np.isin(of_cells, codes), of_cells, NO_STRATUM)
            shares += expected[code] * weights / np.maximum(np.bincount(code, weights, minlength=256)[code], 1e-12)
        cumulative = np.cumsum(np.sort(shares)[::-1])
        total = cumulative[-1] if len(cumulative) else 0
        tiles[column] = 0 if total <= 0 else 1 + np.searchsorted(cumulative, FOUND_SHARE * total)
    return tiles


def _build_rows(
    all_classes: list[Class],
    counts: CellCounts,
    strata: Strata,
    certified: CertifiedFigures,
    recall_allowing: Bounds,
    waiting: Counter[int],
    seconds: np.ndarray,
) -> list[CertificateRow]:
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
        CertificateRow(
            class_id=class_id,
            name=name,
            people=int(people[place]),
            accepted=int(accepted_cells[place]),
            unknown=int(unknown[place]),
            audited=int(audited[place]),
            waiting=int(waits[place]),
            recall=make_interval(certified.recall, place, 4),
            recall_allowing=make_interval(recall_allowing, place, 4),
            precision=make_interval(certified.precision, place, 4),
            missing=make_interval(certified.missing, place, 1),
            seconds=round_or_none(seconds[place], 1),
        )
        for place, (class_id, name) in enumerate(names)
    ]


def _add_second_answers(
    rows: list[CertificateRow], asked_again: dict[int, RepeatedAnswers], absent: np.ndarray
) -> list[CertificateRow]:
    of_rows = [asked_again.get(row.class_id or 0, RepeatedAnswers()) for row in rows[:-1]]
    of_rows.append(sum(of_rows, RepeatedAnswers()))
    cells = [*absent.tolist(), int(absent.sum())]
    return [
        replace(row, asked_again=again, overlooked=estimate_overlooked(again, labeled))
        for row, again, labeled in zip(rows, of_rows, cells, strict=True)
    ]


def _add_event_figures(rows: list[CertificateRow], counts: list[EventCounts]) -> list[CertificateRow]:
    found = np.array([of_class.found for of_class in counts], np.int64)
    totals = certify_events([of_class.strata for of_class in counts], found)
    return [
        replace(
            row,
            events=EventFigures(
                int(totals.found[place]),
                int(totals.drawn[place]),
                make_interval(totals.recall, place, 4),
                make_interval(totals.missing, place, 1),
            ),
        )
        for place, row in enumerate(rows)
    ]


def _add_reasons(row: CertificateRow, relabels: RepeatedAnswers, basis: str) -> CertificateRow:
    labeled = row.people + row.accepted
    recall = explain_hidden_recall(row.recall, labeled, row.unknown, row.audited)
    precision = explain_hidden_precision(row.precision, row.people, row.accepted, row.audited, relabels.present)
    missing = explain_hidden_missing(row.missing, row.recall, labeled, row.unknown, row.audited)
    allowing = recall or explain_hidden_allowance(row.recall_allowing, labeled)
    events = row.events
    if events:
        known = (events.found, row.unknown, events.audited)
        events = replace(
            events,
            recall=replace(events.recall, reason=explain_hidden_recall(events.recall, *known)),
            missing=replace(events.missing, reason=explain_hidden_missing(events.missing, events.recall, *known)),
        )
    return replace(
        row,
        events=events,
        allowance=ALLOWANCES[basis],
        recall=replace(row.recall, reason=recall),
        recall_allowing=replace(row.recall_allowing, reason=allowing),
        precision=replace(row.precision, reason=precision),
        missing=replace(row.missing, reason=missing),
        seconds=None if missing else row.seconds,
    )
