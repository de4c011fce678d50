"""How complete and how correct the labels are as they stand, by the answers to random drawings (audit.py).

The statistics are models/statistics/certificate.py's; here the store is read, and what the numbers mean is put into
words.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from annotator.indexing import positions
from annotator.quality import audit as drawings
from annotator.quality import guarantee
from annotator.quality.audit import Sample
from annotator.quality.certificate_records import CHANGED, TARGET, TILES, Certificate, Relabels, Row
from annotator.quality.evidence import Interval, missing_reason, precision_reason, recall_reason
from annotator.quality.shortfall import lacks
from annotator.records import ABSENT, PRESENT, Class
from annotator.snapshot.predictions import read_predictions
from annotator.snapshot.time_model import time_model_of
from annotator.store import audits, auto_accepted, classes, overview, runs, versions
from annotator.store.audits import OPEN, Audit
from annotator.store.database import Database
from models.statistics.certificate import Bounds, Certified, Labels, Strata, certify, count
from models.statistics.stratified_sampling import LOOK_ABSENT, LOOK_PRESENT, OUTSIDE

FOUND = 0.95  # of the missing ones are looked for when the time for it is told
SLACK = 0.02  # a drawing that leaves this share of a class's cells more without a sample is as good as another one


def certificate(db: Database, target: float = TARGET) -> Certificate:
    """The certificate of the labels as they stand.

    target    the recall that `lacks` speaks of

    People's decisions are taken as true. Second looks, where there are any, say how many are not, and lower precision;
    cells on which people disagree count either way. Drawings that leave out images or classes that came later are used
    only where there is no other. Without any answer the interval of recall is what is certain: from "all unknown cells
    are present" to "none is".
    """
    every = classes.all_classes(db)
    class_ids = np.array([one.id for one in every], np.int64)
    image_ids = audits.readable_images(db)
    states, newest = audits.label_matrix(db, image_ids, class_ids)
    filled = audits.accepted_matrix(db, image_ids, class_ids) == PRESENT
    drawn = {one.id: (one, audits.cells_of(db, one)) for one in audits.audits(db)}
    taken = [one for audit, cells in drawn.values() for one in drawings.samples_of(db, audit, cells)]
    strata, parts = _strata(taken, class_ids, image_ids, states, filled)
    looks = _looks(taken)
    labels = _labels(db, class_ids, states, filled, looks)
    told = certify(strata, labels)
    asked = [(cells, (cells.state == OPEN) & cells.shown) for _, cells in drawn.values()]
    waiting = {cell for one, wait in asked for cell in zip(one.class_id[wait], one.image_id[wait], strict=True)}
    pace = seconds_per_tile(db)
    tiles = _tiles(db, image_ids, class_ids, (states == OPEN) & ~filled, strata, parts, told)
    of_class = Counter(int(class_id) for class_id, _ in waiting)
    rows = _rows(every, states, filled, strata, told, of_class, tiles * pace)
    certified = [_with_reasons(one, looks) for one in rows]
    used = {one.audit.id: one.audit for _, one, _ in parts if one.audit is not None}
    result = Certificate(
        certified[:-1],
        certified[-1],
        looks,
        sorted(used.values(), key=lambda one: -one.id),
        len(image_ids),
        pace,
        newest,
        max((one.uncovered for _, one, _ in parts if one.audit is not None), default=0),
        [],
    )
    result.lacks.extend(lacks(result, target))
    return result


def stamp(db: Database) -> tuple:
    """What a certificate is worked out from: while this stays as it is, so does the certificate."""
    run, filled = runs.current_run(db), auto_accepted.acceptances(db)
    drawn = audits.audits(db, 1)
    return (
        versions.version(db),
        (run.id, run.version) if run else None,
        drawn[0].id if drawn else None,
        (len(filled), sum(bool(one.withdrawn) for one in filled), guarantee.chosen(db)),
        tuple(overview.image_counts(db).values()),
    )


def seconds_per_tile(db: Database) -> float:
    """How long a tile of a grid takes here, in seconds: at the pace of everybody's newest answers (time_model.py)."""
    return time_model_of(db, "").grid(TILES, CHANGED) / TILES


@dataclass(frozen=True, eq=False)
class _Here:
    """A sample in rows of the images there are now: strata (N,), rows (n,); uncovered: images it knows nothing of."""

    audit: Audit | None
    strata: np.ndarray
    rows: np.ndarray
    uncovered: int


def _here(sample: Sample, image_ids: np.ndarray) -> _Here:
    places, known = positions(image_ids, sample.image_ids)
    strata = np.where(known, sample.strata[places], OUTSIDE)
    rows, _ = positions(sample.image_ids[sample.rows], image_ids)
    looks = np.isin(strata[rows], (LOOK_PRESENT, LOOK_ABSENT))
    return _Here(sample.audit, strata, rows[~looks], int((~known).sum()))


def _sharpest(parts: list[tuple[_Here, dict[str, np.ndarray]]], images: int) -> list[tuple[_Here, dict]]:
    """Of the drawings of one class those that leave the fewest open cells without a sample, or hardly more."""
    blank = [int(((one["size"] - one["present"] - one["absent"]) * (one["drawn"] == 0)).sum()) for _, one in parts]
    return [part for part, many in zip(parts, blank, strict=True) if many <= min(blank) + SLACK * images]


def _nothing(images: int) -> _Here:
    return _Here(None, np.full(images, OUTSIDE, np.uint8), np.zeros(0, np.int64), images)


def _strata(
    samples: list[Sample], class_ids: np.ndarray, image_ids: np.ndarray, states: np.ndarray, filled: np.ndarray
) -> tuple[Strata, list[tuple[int, _Here, np.ndarray]]]:
    """All strata, and of each drawing of each class: column, drawing, and which rows of the strata are its own."""
    counts, parts, rows = [], [], 0
    for column, class_id in enumerate(class_ids.tolist()):
        mine = [_here(one, image_ids) for one in samples if one.class_id == class_id]
        counted = [
            (one, count(one.strata, states[:, column], filled[:, column], one.rows, np.ones(len(one.rows), bool)))
            for one in [one for one in mine if len(one.rows)] or [_nothing(len(image_ids))]
        ]
        for number, (one, found) in enumerate(_sharpest(counted, len(image_ids))):
            many = len(found["code"])
            counts.append(found | {"of_class": np.full(many, column), "audit": np.full(many, number)})
            parts.append((column, one, np.arange(rows, rows + many)))
            rows += many
    empty = np.zeros(0, np.int64)
    names = Strata.__dataclass_fields__
    return Strata(**{name: np.concatenate([empty, *(one[name] for one in counts)]) for name in names}), parts


def _looks(samples: list[Sample]) -> Relabels:
    strata = np.concatenate([np.zeros(0, np.int64), *(one.strata[one.rows] for one in samples)])
    states = np.concatenate([np.zeros(0, np.int64), *(one.states for one in samples)])
    at_present, at_absent = strata == LOOK_PRESENT, strata == LOOK_ABSENT
    sure = states != 0
    return Relabels(
        int((at_present & sure).sum()),
        int((at_present & (states == ABSENT)).sum()),
        int((at_absent & sure).sum()),
        int((at_absent & (states == PRESENT)).sum()),
    )


def _labels(db: Database, class_ids: np.ndarray, states: np.ndarray, filled: np.ndarray, looks: Relabels) -> Labels:
    column_of = {class_id: column for column, class_id in enumerate(class_ids.tolist())}
    disagreed_present, disagreed_absent = np.zeros((2, len(class_ids)), np.int64)
    guaranteed, expected, in_all = np.zeros(len(class_ids)), np.full(len(class_ids), np.nan), 1.0
    kept = guarantee.chosen(db)
    for one in auto_accepted.acceptances(db):
        if one.state == PRESENT and one.cells and one.class_id in column_of:
            column, in_all = column_of[one.class_id], min(in_all, one.precision)
            expected[column] = 1 - one.wrong / max(one.audited, 1)
            # A promise for all classes together says nothing of a single one.
            guaranteed[column] = 0.0 if kept is None or kept.together else one.precision
    for (class_id, state), many in audits.disagreement_counts(db).items():
        if class_id in column_of and state in (PRESENT, ABSENT):
            (disagreed_present if state == PRESENT else disagreed_absent)[column_of[class_id]] = many
    open_ = (states != PRESENT) & (states != ABSENT)
    return Labels(
        present=(states == PRESENT).sum(0),
        accepted=(filled & open_).sum(0),
        guaranteed=guaranteed,
        expected=expected,
        disagreed_present=disagreed_present,
        disagreed_absent=disagreed_absent,
        guaranteed_in_all=in_all,
        looked=looks.present,
        mistaken=looks.mistaken,
    )


def _tiles(
    db: Database,
    image_ids: np.ndarray,
    class_ids: np.ndarray,
    open_: np.ndarray,
    strata: Strata,
    parts: list[tuple[int, _Here, np.ndarray]],
    told: Certified,
) -> np.ndarray:
    """(C,) how many tiles a grid shows until FOUND of the missing ones are found; nan where nobody can tell.

    parts    column, drawing, and the rows of `strata` (h,) that it gave

    The missing ones of a stratum are spread over its open cells as the current run's probabilities are; the likeliest
    cells come first.
    """
    result = np.full(len(class_ids), np.nan)
    scores = drawings.scores_of(read_predictions(db), image_ids, class_ids)
    hidden: dict[int, np.ndarray] = {}  # column -> what is expected of each open cell, summed over drawings
    for column, here, rows in parts:
        if here.audit is None:
            continue
        cells = np.flatnonzero(open_[:, column])
        expected = np.zeros(256)
        expected[strata.code[rows]] = told.in_strata[rows]
        code = np.where(np.isin(here.strata[cells], strata.code[rows]), here.strata[cells], OUTSIDE)
        chances = np.nan_to_num(scores[cells, column].astype(np.float64)) + 1e-4
        shares = expected[code] * chances / np.maximum(np.bincount(code, chances, minlength=256)[code], 1e-12)
        hidden[column] = hidden.get(column, 0) + shares
    for column, shares in hidden.items():
        grown = np.cumsum(np.sort(shares)[::-1])
        result[column] = 0 if not len(grown) or grown[-1] <= 0 else 1 + np.searchsorted(grown, FOUND * grown[-1])
    return result


def _rows(
    every: list[Class],
    states: np.ndarray,
    filled: np.ndarray,
    strata: Strata,
    told: Certified,
    waiting: Counter[int],
    seconds: np.ndarray,
) -> list[Row]:
    """One of each class, and at the end the one of all of them."""
    open_ = (states != PRESENT) & (states != ABSENT)
    people, accepted, unknown = (states == PRESENT).sum(0), (filled & open_).sum(0), open_.sum(0)
    audited = np.bincount(strata.of_class, strata.drawn, minlength=len(every)) if len(every) else np.zeros(0)
    waits = np.array([waiting[one.id] for one in every], np.int64)
    all_seconds = float(np.nansum(seconds)) if len(every) and not np.isnan(seconds).any() else np.nan
    people, accepted, unknown, audited, waits = (
        np.append(count, count.sum()) for count in (people, accepted, unknown, audited, waits)
    )
    named = [(one.id, one.name) for one in every] + [(None, "all classes")]
    return [
        Row(
            class_id,
            name,
            int(people[place]),
            int(accepted[place]),
            int(unknown[place]),
            int(audited[place]),
            int(waits[place]),
            _interval(told.recall, place, 4),
            _interval(told.precision, place, 4),
            _interval(told.missing, place, 1),
            _number(np.append(seconds, all_seconds)[place], 1),
        )
        for place, (class_id, name) in enumerate(named)
    ]


def _with_reasons(row: Row, looks: Relabels) -> Row:
    labeled = row.people + row.accepted
    recall = recall_reason(row.recall, labeled, row.unknown, row.audited)
    precision = precision_reason(row.precision, row.people, row.accepted, row.audited, looks.present)
    missing = missing_reason(row.missing, row.recall, labeled, row.unknown, row.audited)
    return replace(
        row,
        recall=replace(row.recall, reason=recall),
        precision=replace(row.precision, reason=precision),
        missing=replace(row.missing, reason=missing),
        seconds=None if missing else row.seconds,
    )


def _interval(bounds: Bounds, place: int, digits: int) -> Interval:
    # Rounded away from the truth, so that an interval never becomes smaller by being written down.
    scale = 10**digits
    low, high = np.floor(bounds.low[place] * scale) / scale, np.ceil(bounds.high[place] * scale) / scale
    return Interval(_number(bounds.estimate[place], digits), float(low), float(high))


def _number(value: float, digits: int) -> float | None:
    return None if np.isnan(value) else round(float(value), digits)
