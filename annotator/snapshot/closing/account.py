"""Autopilot's account of expected and found positives, which corrects later expectations.

Training calibrates all classes together, which fails for rare ones. So promised and found positives are compared per
class c and probability band b, and probabilities multiplied by rho:

    rho(c, b) = (found(c, b) + CLASS_PRIOR_POSITIVES g(b) k(c)) / (promised(c, b) + CLASS_PRIOR_POSITIVES)
    k(c) = (found(c) + CLASS_PRIOR_POSITIVES) / (sum over b of g(b) promised(c, b) + CLASS_PRIOR_POSITIVES)
    g(b) = (found(b) + OVERALL_PRIOR_POSITIVES) / (promised(b) + OVERALL_PRIOR_POSITIVES)

These are Gamma-Poisson posterior means (Gelman et al., Bayesian Data Analysis, 3rd ed., sec. 2.6).
Selecting maxima biases estimates upward (winner's curse), so the account's own are corrected again.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from annotator.store.database.database import Database
from annotator.store.labels import prediction_outcomes
from annotator.store.labels.prediction_outcomes import OutcomesSince, ScoredAnswers

BAND_BOUNDS = np.array([0.05, 0.2, 0.5])  # bounds between bands of the probability: how deep in the ranking a cell lies
# promised positives that the prior weighs as much as: of a class, and of all
CLASS_PRIOR_POSITIVES, OVERALL_PRIOR_POSITIVES = (4.0, 16.0)
# positives promised of a class since an answer, after which it counts half; of all, four times that
HALF_LIFE_POSITIVES = 10.0
MAX_CORRECTED_PROBABILITY = 0.99  # a corrected probability is at most this, or the model's own
PROMISE_HALF_LIFE_POSITIVES = 80.0  # positives that the account promised since an answer, after which it counts half
ANSWERS_PER_STEP = 500  # answers that are held against the same account when all are read anew
BAND_COUNT = BAND_BOUNDS.size + 1


@dataclass(frozen=True, eq=False)
class PromiseRecord:
    """Expected and found positives in one kind of action."""

    # promised, found: (B,) sums per probability band, in which older cells count less
    promised: np.ndarray
    found: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Return found / promised positives per band, (B,), shrunk toward 1 by OVERALL_PRIOR_POSITIVES."""
        return (self.found + OVERALL_PRIOR_POSITIVES) / (self.promised + OVERALL_PRIOR_POSITIVES)

    def with_later_cells(self, band: np.ndarray, worth: np.ndarray, present: np.ndarray) -> "PromiseRecord":
        """Return the record extended by n cells: their bands, corrected probabilities and answers, (n,) each."""
        fades = 0.5 ** (worth.sum() / PROMISE_HALF_LIFE_POSITIVES)
        promised, found = np.bincount(band, worth, BAND_COUNT), np.bincount(band, present, BAND_COUNT)
        return PromiseRecord(self.promised * fades + promised, self.found * fades + found)


EMPTY_RECORD = PromiseRecord(np.zeros(BAND_COUNT), np.zeros(BAND_COUNT))


@dataclass(frozen=True, eq=False)
class Account:
    """Expected and found positives of a project up to one decision. Immutable."""

    # last included decision
    newest: int
    answers: ScoredAnswers
    # (K + 1, B) found / promised for K classes and B probability bands, with all classes in the last row
    ratios: np.ndarray
    row_by_class: Mapping[int, int]
    grids: PromiseRecord
    images: PromiseRecord
    # class id -> number of newest grid tiles in a row without a positive
    tiles_without_positive: Mapping[int, int]
    # class id -> number of answered grid tiles
    answered_tiles: Mapping[int, int]
    # earlier state -> (number of relabels, number of changes)
    relabels: Mapping[int, tuple[int, int]]
    # the same two numbers of answers that audits asked again
    audited: tuple[int, int] = (0, 0)

    @classmethod
    def build(cls, answers: ScoredAnswers, since: OutcomesSince | None = None) -> "Account":
        """Return the account of all these answers, and of later outcomes."""
        account = cls._compute(ScoredAnswers.from_rows([]), 0, {}, EMPTY_RECORD, EMPTY_RECORD)
        for start in range(0, len(answers.score), ANSWERS_PER_STEP):
            part = ScoredAnswers(
                **{name: values[start : start + ANSWERS_PER_STEP] for name, values in vars(answers).items()}
            )
            account = account.with_later_answers(OutcomesSince(0, part, {}))
        return (
            account
            if since is None
            else account.with_later_answers(replace(since, answers=ScoredAnswers.from_rows([])))
        )

    def with_later_answers(self, since: OutcomesSince) -> "Account":
        later = since.answers
        kept: dict[str, PromiseRecord] = {}
        band, worth = (
            np.searchsorted(BAND_BOUNDS, later.score, side="right"),
            self._correct(later.class_id.tolist(), later.score),
        )
        for name, before, rows in (("grids", self.grids, later.in_grid), ("images", self.images, ~later.in_grid)):
            kept[name] = before.with_later_cells(band[rows], worth[rows], later.present[rows])
        relabels = _add_relabels(self.relabels, since.relabels)
        audited = (self.audited[0] + since.audited[0], self.audited[1] + since.audited[1])
        return replace(self._compute(self.answers.extend_with(later), since.newest, relabels, **kept), audited=audited)

    @classmethod
    def _compute(
        cls,
        answers: ScoredAnswers,
        newest: int,
        relabels: Mapping[int, tuple[int, int]],
        grids: PromiseRecord,
        images: PromiseRecord,
    ) -> "Account":
        rows = np.flatnonzero(answers.in_grid)
        rows = rows[np.argsort(answers.class_id[rows], kind="stable")]  # class by class, oldest first
        class_ids, starts, asked = np.unique(answers.class_id[rows], return_index=True, return_counts=True)
        score, present = answers.score[rows], answers.present[rows]
        band, place = np.searchsorted(BAND_BOUNDS, score, side="right"), np.repeat(np.arange(len(class_ids)), asked)
        cell = place * BAND_COUNT + band
        so_far = score.cumsum()
        fades = 0.5 ** ((so_far[starts + asked - 1][place] - so_far) / HALF_LIFE_POSITIVES)
        promised = np.bincount(cell, fades * score, len(class_ids) * BAND_COUNT).reshape(-1, BAND_COUNT)
        found = np.bincount(cell, fades * present, len(class_ids) * BAND_COUNT).reshape(-1, BAND_COUNT)
        of_all = _compute_overall_ratios(answers)
        of_own = (found.sum(1) + CLASS_PRIOR_POSITIVES) / ((of_all * promised).sum(1) + CLASS_PRIOR_POSITIVES)
        of_class = (found + CLASS_PRIOR_POSITIVES * of_all * of_own[:, None]) / (promised + CLASS_PRIOR_POSITIVES)
        last = np.full(len(class_ids), -1)
        np.maximum.at(last, place[present], np.flatnonzero(present))
        barren = np.minimum(starts + asked - 1 - last, asked)
        known = {class_id: number for number, class_id in enumerate(class_ids.tolist())}
        return cls(
            newest, answers, np.vstack([of_class, of_all]), known, grids, images,
            dict(zip(known, barren.tolist(), strict=True)), dict(zip(known, asked.tolist(), strict=True)), relabels,
        )  # fmt: skip

    def correct_for_grid(self, class_id: int, probabilities: np.ndarray) -> np.ndarray:
        """Return corrected probabilities (n,) of cells of one class in a grid."""
        return self._correct([class_id], probabilities, self.grids)

    def correct_for_image(self, class_ids: Sequence[int], probabilities: np.ndarray) -> np.ndarray:
        """Return corrected probabilities (n,) of n classes that are answered together on one image. nan counts as 0."""
        return self._correct(class_ids, probabilities, self.images)

    def compute_factors(self, class_ids: Sequence[int]) -> np.ndarray:
        """Return the factors on grid probabilities per class and band, (n, B)."""
        rows = np.array([self.row_by_class.get(class_id, -1) for class_id in class_ids], np.intp)
        return self.ratios[rows] * self.grids.ratios

    def _correct(
        self, class_ids: Sequence[int], probabilities: np.ndarray, record: PromiseRecord | None = None
    ) -> np.ndarray:
        rows = np.array([self.row_by_class.get(class_id, -1) for class_id in class_ids], np.intp)
        known = np.nan_to_num(np.asarray(probabilities, np.float64))
        band = np.searchsorted(BAND_BOUNDS, known, side="right")
        worth = known * self.ratios[rows, band] * (1.0 if record is None else record.ratios[band])
        return np.minimum(worth, np.maximum(MAX_CORRECTED_PROBABILITY, known))


class _NewestAccount:
    """A cached account of a project, updated under its lock."""

    def __init__(self):
        self.lock, self.account = threading.Lock(), Account.build(ScoredAnswers.from_rows([]))


def load_account(db: Database) -> Account:
    newest = db.caches.get("account", "", _NewestAccount, 1)
    with newest.lock:
        known = newest.account
        since = prediction_outcomes.load_since(db, known.newest)
        if since.taken_back:
            since = prediction_outcomes.load_since(db, 0)
            newest.account = Account.build(since.answers, since)
        elif since.newest > known.newest:
            newest.account = known.with_later_answers(since) if known.newest else Account.build(since.answers, since)
        return newest.account


def _add_relabels(
    some: Mapping[int, tuple[int, int]], others: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    result = dict(some)
    for state, (relabels, changed) in others.items():
        before = result.get(state, (0, 0))
        result[state] = (before[0] + relabels, before[1] + changed)
    return result


def _compute_overall_ratios(answers: ScoredAnswers) -> np.ndarray:
    score, present = answers.score[answers.in_grid], answers.present[answers.in_grid]
    band, so_far = np.searchsorted(BAND_BOUNDS, score, side="right"), score.cumsum()
    fades = 0.5 ** ((score.sum() - so_far) / (4 * HALF_LIFE_POSITIVES))
    return (np.bincount(band, fades * present, BAND_COUNT) + OVERALL_PRIOR_POSITIVES) / (
        np.bincount(band, fades * score, BAND_COUNT) + OVERALL_PRIOR_POSITIVES
    )
