"""Audit samples of only those cells that the current model would auto-accept, so that guarantees need fewer answers."""

from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import find_positions
from annotator.quality import audit_sampling, guarantee
from annotator.quality.guarantee import MAX_SAMPLE_SHARE, Guarantee
from annotator.records import ABSENT, PRESENT
from annotator.snapshot import merged_ranking
from annotator.snapshot.run_predictions import Predictions, Probabilities, read_predictions
from annotator.store.classes import classes
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.labels import audits
from annotator.store.labels.audits import OPEN, Audit
from spmll.statistics.sequential_bound import CANDIDATE_THRESHOLDS, StratifiedSample, compute_sample_size
from spmll.statistics.stratified_sampling import NO_STRATUM, RELABEL_STRATA, find_usable_cells

ONE_CLASS_STRATA = {PRESENT: 40, ABSENT: 41}  # strata of an audit for auto-accept: acceptable cells of one class
ALL_CLASSES_STRATA = {PRESENT: 42, ABSENT: 43}  # the same, sampled from all classes as one
PRECISION_SLACK = 0.02  # the model's own expected precision may lie this far below the guarantee
# suggested where the precision asked for is out of reach
FALLBACK_PRECISIONS = (0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6)


def draw_audit(db: Database, wanted: Guarantee) -> Audit:
    """Draw an audit that can prove a guarantee, from the cells that the current model would accept.

    Raises AnnotatorError without a model or enough likely cells.
    """
    run = read_predictions(db)
    if run is None:
        raise AnnotatorError("There is no model yet whose predictions could be accepted. Label some images first.")
    with db.reading():  # labels are read class by class, as of one moment
        newest = get_newest_decision_id(db.sql)
        strata, drawn = _draw_cells(_RunCells(db, run), wanted)
    cells = [
        (int(run.class_ids[column]), int(run.image_ids[row]), stratum, place)
        for place, (row, column, stratum) in enumerate(drawn)
    ]
    audit_id = audits.publish(db, run, strata, run.probabilities, cells, run.run.id, newest)
    return next(published for published in audits.load_audits(db) if published.id == audit_id)


class _RunCells:
    """A reader of a model's cells, class by class. `counts` has the unanswered cells per class and score."""

    def __init__(self, db: Database, run: Predictions):
        self._db, self._run, self.shape = db, run, run.probabilities.shape
        self._readable = np.isin(run.image_ids, audits.load_readable_image_ids(db))
        self._first, self._some = 0, np.zeros((0, 0), np.float16)
        self.counts = np.zeros((self.shape[1], merged_ranking.KEY_COUNT), np.int64)
        for column in range(self.shape[1]):
            probabilities, is_open = self.read_class(column)
            self.counts[column] = merged_ranking.count_keys(merged_ranking.to_keys(probabilities[is_open]))

    def read_class(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return one class's probabilities, (N,) float16, and which of its cells are unanswered, (N,) bool."""
        place = column - self._first
        if not 0 <= place < self._some.shape[1]:
            place, self._first = 0, column
            self._some = np.array(self._run.probabilities[:, column : column + audit_sampling.COLUMNS_PER_READ])
        probabilities = self._some[:, place]
        states = audits.load_class_labels(self._db, int(self._run.class_ids[column]), self._run.image_ids)
        return probabilities, (states == OPEN) & self._readable & ~np.isnan(probabilities)


def _draw_cells(cells: _RunCells, wanted: Guarantee) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Return the stratum of each cell, (N, C), and a sample of cells as (row, column, stratum) in random order."""
    strata = np.full(cells.shape, NO_STRATUM, np.uint8, order="F")  # written, and read, class by class
    rng = np.random.default_rng()
    drawn: list[tuple[int, int, int]] = []
    columns = np.arange(cells.shape[1])
    for state in wanted.states:
        stratum = (ALL_CLASSES_STRATA if wanted.together else ONE_CLASS_STRATA)[state]
        for group in [columns] if wanted.together else columns[:, None]:
            threshold, sizes = _find_acceptance_threshold(cells.counts[group], state, wanted.precision)
            acceptable = int(sizes.sum())
            size = compute_sample_size(acceptable, wanted.precision)
            if 0 < size <= MAX_SAMPLE_SHARE * acceptable:
                numbers = rng.choice(acceptable, size, replace=False)  # of the acceptable cells, class by class
                of_sample = np.zeros((size, 2), np.int64)
                for column, count, end in zip(group.tolist(), sizes.tolist(), np.cumsum(sizes).tolist(), strict=True):
                    probabilities, is_open = cells.read_class(column)
                    rows = np.flatnonzero(is_open & (_compute_confidence(probabilities, state) >= threshold))
                    strata[rows, column] = stratum
                    places = np.flatnonzero((numbers >= end - count) & (numbers < end))
                    of_sample[places] = np.stack(
                        [rows[numbers[places] - (end - count)], np.full(len(places), column)], 1
                    )
                drawn += [(row, column, stratum) for row, column in of_sample.tolist()]
    if not drawn:
        raise AnnotatorError(
            f"{'There are not' if wanted.together else 'No class has'} enough likely pairs for a guarantee of "
            f"{guarantee.format_precision(wanted.precision)} to save work: more than half of them would have to be "
            "answered.\n    " + _describe_alternatives(cells.counts, wanted)
        )
    return strata, drawn


@dataclass(frozen=True, eq=False)
class AcceptancePool:
    """The N cells whose `state` one audit can guarantee, with the audit's sample of them."""

    audit: Audit
    run_id: int
    # sampled cells, with the model's confidence when the audit was drawn
    sample: StratifiedSample
    image_ids: np.ndarray
    class_ids: np.ndarray
    # (N,) bool, unanswered cells that the newest model does not contradict
    open: np.ndarray
    # (N,) bool, cells labeled the opposite
    known_wrong: np.ndarray


class AnsweredAudit:
    """One audit with its answers. Builds the acceptance pools, one at a time to save memory."""

    def __init__(self, db: Database, drawn: Audit, run_id: int, newest: Probabilities | None):
        self.run_id = run_id
        self.audit, self.population, self.cells = (
            drawn,
            audits.load_population(db, drawn.id),
            audits.load_cells(db, drawn),
        )
        self.samples = {sample.class_id: sample for sample in audit_sampling.load_samples(db, drawn, self.cells)}
        self.class_ids = [class_.id for class_ in classes.load_active_classes(db)]
        self._db, self._newest = db, newest

    def build_pool(self, state: int, class_id: int | None) -> AcceptancePool | None:
        """Return the pool of one class, or of all classes together for None. None if the audit has no sample for it."""
        if class_id is None:
            return self._build_all_classes_pool(state)
        if class_id not in self.samples or np.isnan(self.samples[class_id].scores).all():
            return None
        sample = self.samples[class_id]
        strata = np.asarray(sample.strata)
        inside = np.flatnonzero(~np.isin(strata, (NO_STRATUM, *RELABEL_STRATA)) & ~np.isnan(sample.scores))
        counted = np.isin(sample.rows, inside)
        sampled, _ = find_positions(sample.rows[counted], inside)
        columns, _ = self.population.find_columns(np.full(len(inside), class_id))
        return self._build_pool(state, inside, columns, strata[inside], sampled, sample.states[counted])

    def _build_all_classes_pool(self, state: int) -> AcceptancePool | None:
        active = np.isin(self.population.class_ids, self.class_ids)
        rows, columns = np.nonzero((np.asarray(self.population.strata) == ALL_CLASSES_STRATA[state]) & active)
        drawn = np.flatnonzero((self.cells.stratum == ALL_CLASSES_STRATA[state]) & self.cells.shown)
        if not len(drawn):
            return None
        drawn = drawn[
            find_usable_cells(self.cells.place[drawn], self.cells.state[drawn] != OPEN, self.cells.in_audit[drawn])
        ]
        drawn = drawn[np.argsort(self.cells.place[drawn])]
        shape = self.population.strata.shape
        sampled_cells = self.population.find_cells(self.cells.image_id[drawn], self.cells.class_id[drawn])[:2]
        sampled, _ = find_positions(
            np.ravel_multi_index(sampled_cells, shape), np.ravel_multi_index((rows, columns), shape)
        )
        return self._build_pool(state, rows, columns, np.zeros(len(rows), int), sampled, self.cells.state[drawn])

    def _build_pool(
        self,
        state: int,
        rows: np.ndarray,
        columns: np.ndarray,
        strata: np.ndarray,
        sampled: np.ndarray,
        states: np.ndarray,
    ) -> AcceptancePool:
        labels, newest = self._load_labels(rows, columns), self._get_probabilities(rows, columns)
        opposite = newest < 0.5 if state == PRESENT else newest >= 0.5  # False where the newest run has no model
        confidence = _compute_confidence(np.asarray(self.population.scores)[rows, columns], state)
        return AcceptancePool(
            self.audit,
            self.run_id,
            StratifiedSample(confidence, strata, sampled, states != state),  # "unsure" counts as wrong
            self.population.image_ids[rows],
            self.population.class_ids[columns],
            (labels == OPEN) & ~opposite,
            labels == -state,
        )

    def _load_labels(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        labels = np.full(len(rows), OPEN, np.int8)
        for column in np.unique(columns).tolist():
            of_class = audits.load_class_labels(
                self._db, int(self.population.class_ids[column]), self.population.image_ids
            )
            places = columns == column
            labels[places] = of_class[rows[places]]
        return labels

    def _get_probabilities(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        values = np.full(len(rows), np.nan, np.float16)
        if self._newest is not None:
            image_ids, class_ids = self.population.image_ids[rows], self.population.class_ids[columns]
            at_rows, at_columns, known = self._newest.find_cells(image_ids, class_ids)
            values[known] = self._newest.probabilities[at_rows[known], at_columns[known]]
        return values


def _describe_alternatives(counts: np.ndarray, wanted: Guarantee) -> str:
    columns = np.arange(len(counts))
    possible: dict[bool, float] = {}  # together -> highest precision
    for precision in [fallback for fallback in FALLBACK_PRECISIONS if fallback <= wanted.precision]:
        for together in (False, True):
            if together in possible or (together and wanted.together and precision == wanted.precision):
                continue
            for group in [columns] if together else columns[:, None]:
                sizes = [
                    int(_find_acceptance_threshold(counts[group], state, precision)[1].sum()) for state in wanted.states
                ]
                if any(guarantee.is_in_reach(size, precision) for size in sizes):
                    possible[together] = precision
                    break
    options = [
        f"{guarantee.format_precision(possible[together])} {words}"
        for together, words in ((False, "class by class"), (True, "for all classes together"))
        if together in possible
    ]
    if not options:
        return "Nothing can be guaranteed until the model is more certain."
    return f"Possible here: {', or '.join(options)}."


def _compute_confidence(probabilities: np.ndarray, state: int) -> np.ndarray:
    wide = np.asarray(probabilities, np.float32)
    return wide if state == PRESENT else np.where(wide < 0.5, 1 - wide, 0)


def _find_acceptance_threshold(counts: np.ndarray, state: int, precision: float) -> tuple[float, np.ndarray]:
    """Return the lowest threshold with this expected precision (else inf), and how many cells reach it per class."""
    confidence = _compute_confidence(
        merged_ranking.to_probabilities(np.arange(merged_ranking.KEY_COUNT, dtype=np.uint16)), state
    )
    for threshold in CANDIDATE_THRESHOLDS:
        above = counts[:, confidence >= threshold]
        cells = int(above.sum())
        if cells and float(above.sum(0) @ confidence[confidence >= threshold]) / cells >= precision - PRECISION_SLACK:
            return float(threshold), above.sum(1)
    return np.inf, np.zeros(len(counts), np.int64)
