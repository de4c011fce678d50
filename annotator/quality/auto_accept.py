"""Letting the model fill in cells where a random sample shows that it is right often enough; off until somebody asks.

What is promised is the share of right ones among the cells that are filled in. A drawing of an audit keeps the scores
of its time: neither its answers nor any later training can change them, so a cell is never judged by a model that has
learned from its answer. The sample says how many of *all* cells above a threshold are wrong at most, whoever has
answered them since; what people have found is taken off, and the rest must be few enough for the cells that are left
(models/statistics/sequential_bound.py). Answers to grids, which show the likeliest cells first, are no random sample
and never count as
one. Cells of which the newest run thinks the opposite are not filled in.
"""

import uuid
from dataclasses import asdict, dataclass, replace

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import positions
from annotator.quality import audit
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.predictions import Probabilities, read_predictions
from annotator.store import audits, auto_accepted, classes, jobs, overview
from annotator.store.audits import OPEN, Population
from annotator.store.auto_accepted import NewAcceptance
from annotator.store.database import Database
from models.statistics.sequential_bound import (
    CANDIDATES,
    CONFIDENCE,
    Sample,
    Verdict,
    lowest_threshold,
    needed,
    possible_precision,
    sample_size,
)
from models.statistics.stratified_sampling import LOOK_ABSENT, LOOK_PRESENT, OUTSIDE, usable

SETTING = "acceptance"
PRECISION = 0.99
ZONES = {PRESENT: 40, ABSENT: 41}  # strata of a drawing that is made for this: cells that could be filled in
TOGETHER = {PRESENT: 42, ABSENT: 43}  # the same, drawn from all classes as one
SLACK = 0.02  # a drawing also asks about cells that are expected to be right a little less often than is promised
MANY = 100_000  # cells: of more, hardly more have to be asked about
FALLBACKS = (0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6)  # promised instead, when what was asked for cannot be
WORTH_IT = 0.5  # a sample of more than this share of the cells it is about saves too little


@dataclass(frozen=True)
class Guarantee:
    """What people want to be filled in. together: one promise for all classes, not one for each (a single sample of
    some 350 cells can be enough for all of them; a class may then be worse than promised, if others are better)."""

    precision: float = PRECISION
    present: bool = True
    absent: bool = False
    together: bool = False

    @property
    def states(self) -> list[int]:
        return [state for state, wanted in ((PRESENT, self.present), (ABSENT, self.absent)) if wanted]


@dataclass(frozen=True)
class Outcome:
    """What became of one class (class_id None: of all together) and state when the promise was looked at.

    cells      filled in now
    reason     why nothing is; "" when something is
    """

    class_id: int | None
    state: int
    cells: int
    audited: int
    wrong: int
    threshold: float | None
    reason: str


def guarantee(db: Database) -> Guarantee | None:
    """What is filled in automatically; None while this is off, and where the setting is no promise (`ignored`)."""
    kept = db.setting(SETTING)
    try:
        wanted = Guarantee(**kept) if kept else None
        return wanted if wanted and 0.5 <= wanted.precision < 1 else None
    except TypeError:
        return None


def ignored(db: Database) -> list[str]:
    """A setting that is no promise, in a sentence: nothing is filled in."""
    kept = db.setting(SETTING)
    return (
        [f"setting 'acceptance' {kept!r}: it is no promise, so nothing is filled in"]
        if kept and not guarantee(db)
        else []
    )


def outlook(db: Database, wanted: Guarantee) -> str:
    """What showing this promise takes here, or why it is impossible here and what would be possible, in sentences.

    By the number of images and classes alone, so that it costs a page nothing: a class can have as many cells to be
    filled in as there are images, at most. `draw` knows better.
    """
    images, of = overview.image_counts(db)["all"], len(classes.all_classes(db))
    cells, what = (images * of, "all classes together") if wanted.together else (images, "one class")
    if _in_reach(cells, wanted.precision):
        answers = needed(min(cells, MANY), wanted.precision)
        return (
            f"It takes about {answers:,} audit answers without a mistake to show {_share(wanted.precision)} of {what}, "
            "and more with some."
        )
    by_classes = f" x {of:,} classes" if wanted.together else ""
    return (
        f"{_share(wanted.precision)} cannot be shown of {what} here: it takes about {needed(MANY, wanted.precision):,} "
        f"audit answers without a mistake, and there are {images:,} images{by_classes}. "
    ) + _instead(cells, None if wanted.together else images * of, wanted.precision)


def _instead(cells: int, together: int | None, precision: float) -> str:
    """What can be promised of a population of cells, and of all classes together (None: that was asked for)."""
    said = []
    if possible := possible_precision(min(cells, MANY), WORTH_IT):
        said.append(f"{_share(possible)} (about {needed(min(cells, MANY), possible):,} answers)")
    if together and _in_reach(together, precision):
        answers = needed(min(together, MANY), precision)
        said.append(f"{_share(precision)} of all classes together (about {answers:,} answers)")
    elif together and (possible := possible_precision(min(together, MANY), WORTH_IT)):
        answers = needed(min(together, MANY), possible)
        said.append(f"{_share(possible)} of all classes together (about {answers:,} answers)")
    return f"Possible at most: {', or '.join(said)}." if said else "There are too few images to promise anything."


def _in_reach(cells: int, precision: float) -> bool:
    """A sample of at most WORTH_IT of so many cells can show this."""
    return 0 < sample_size(min(cells, MANY), precision) <= WORTH_IT * cells


def _share(share: float) -> str:
    return f"{100 * share:g} %"


def choose(db: Database, wanted: Guarantee | None) -> list[Outcome]:
    """Fill in cells under this promise from now on, after every run anew; None: give all of them back and stop.

    Raises AnnotatorError for a precision that is no share, or when neither present nor absent ones are wanted.
    """
    if wanted is not None and not 0.5 <= wanted.precision < 1:
        raise AnnotatorError(
            f"A precision of {wanted.precision} cannot be promised: it must lie between 0.5 and 1, such as {PRECISION}."
        )
    if wanted is not None and not wanted.states:
        raise AnnotatorError("Neither present nor absent cells are to be filled in. Choose one, or turn it off.")
    db.set_setting(SETTING, asdict(wanted) if wanted else None)
    outcomes = recheck(db)
    jobs.ask_training(db)  # the orders of the grid and of Review leave out what is filled in from the next run on
    return outcomes


def undo(db: Database, batch: str) -> int:
    """Give back the cells of a batch, and stop filling in, or the next run would do it again; returns how many classes
    and states that were. Raises AnnotatorError for a batch that holds no more, listing those that do."""
    db.set_setting(SETTING, None)
    if gone := auto_accepted.withdraw(db, batch, "taken back"):
        jobs.ask_training(db)
        return gone
    held = sorted({one.batch for one in auto_accepted.acceptances(db) if not one.withdrawn})
    raise AnnotatorError(f"No batch {batch!r} is filled in. There is: {', '.join(held) or 'none'}.")


def recheck(db: Database, newest: Probabilities | None = None) -> list[Outcome]:
    """Look at the promise anew: fill in more where it holds, and give back where it does not hold any more.

    newest     what the newest run says, before it is published; None: what the current one says
    returns    one for each class and state that is wanted; [] while nothing is
    """
    wanted, batch = guarantee(db), f"a{uuid.uuid4().hex[:8]}"
    newest = newest or read_predictions(db)
    outcomes, filled, reasons = [], set(), {}
    drawings = [_Drawing(db, one, newest) for one in audits.audits(db) if one.run_id] if wanted else []
    for state in wanted.states if wanted else ():
        for class_id in [None] if wanted.together else [one.id for one in classes.all_classes(db)]:
            pools = [pool for one in drawings if (pool := one.pool(state, class_id))]
            outcome, now_filled = _settle(db, wanted, state, class_id, pools, batch)
            outcomes.append(outcome)
            filled |= now_filled
            reasons[class_id, state] = outcome.reason
    for one in auto_accepted.acceptances(db):
        if not one.withdrawn and (one.class_id, one.state) not in filled:
            key = (None if wanted and wanted.together else one.class_id, one.state)
            auto_accepted.give_back(db, one.class_id, one.state, reasons.get(key) or "it is not wanted any more")
    return outcomes


def draw(db: Database, wanted: Guarantee) -> audits.Audit:
    """Draw cells whose answers would show whether the promise can be kept, of those the current run would fill in.

    They are answered like those of any audit. Raises AnnotatorError without a run, and where no class has so many
    likely cells that asking about a sample of them would save work.
    """
    found = read_predictions(db)
    if found is None:
        raise AnnotatorError("There is no run yet whose suggestions could be accepted. Label some images first.")
    states, newest = audits.label_matrix(db, found.image_ids, found.class_ids)
    scores = np.array(found.probabilities, np.float16)
    open_ = (states == OPEN) & np.isin(found.image_ids, audits.readable_images(db))[:, None] & ~np.isnan(scores)
    strata = np.full(scores.shape, OUTSIDE, np.uint8)
    rng = np.random.default_rng()
    drawn: list[tuple[int, int, int]] = []  # row, column, stratum
    columns = np.arange(scores.shape[1])
    for state in wanted.states:
        sure, code = _sure(scores, state), (TOGETHER if wanted.together else ZONES)[state]
        for group in [columns] if wanted.together else columns[:, None]:
            rows, places = np.nonzero(_zone(sure[:, group], open_[:, group], wanted.precision))
            many = sample_size(len(rows), wanted.precision)
            if 0 < many <= WORTH_IT * len(rows):
                strata[rows, group[places]] = code
                some = rng.permutation(len(rows))[:many]
                drawn += [(row, column, code) for row, column in zip(rows[some], group[places[some]], strict=True)]
    if not drawn:
        raise AnnotatorError(
            f"{'There are not' if wanted.together else 'No class has'} so many likely pairs that a promise of "
            f"{_share(wanted.precision)} saves work: keeping it would take answers to more than half of them.\n    "
            + _possible_here(scores, open_, wanted)
        )
    cells = [
        (int(found.class_ids[column]), int(found.image_ids[row]), code, place)
        for place, (row, column, code) in enumerate(drawn)
    ]
    population = Population(found.image_ids, found.class_ids, strata, scores)
    audit_id = audits.publish(db, population, cells, found.run.id, newest)
    return next(one for one in audits.audits(db) if one.id == audit_id)


def _possible_here(scores: np.ndarray, open_: np.ndarray, wanted: Guarantee) -> str:
    """What could be promised of the cells that the current run would fill in, in a sentence."""
    columns = np.arange(scores.shape[1])
    found: dict[bool, float] = {}
    for precision in [one for one in FALLBACKS if one <= wanted.precision]:
        for together in (False, True):
            if together in found or (together and wanted.together and precision == wanted.precision):
                continue
            for group in [columns] if together else columns[:, None]:
                sure = (_sure(scores[:, group], state) for state in wanted.states)
                sizes = [int(_zone(one, open_[:, group], precision).sum()) for one in sure]
                if any(_in_reach(size, precision) for size in sizes):
                    found[together] = precision
                    break
    said = [
        f"{_share(found[together])} {words}"
        for together, words in ((False, "class by class"), (True, "of all classes together"))
        if together in found
    ]
    return f"Possible here: {', or '.join(said)}." if said else "Nothing can be promised here until the model is surer."


@dataclass(frozen=True, eq=False)
class _Pool:
    """What one promise is about: a sample, and for every cell of its population (N,) where it is and what is known."""

    audit: audits.Audit
    sample: Sample
    image_ids: np.ndarray
    class_ids: np.ndarray
    open: np.ndarray
    known_wrong: np.ndarray


class _Drawing:
    """One drawing, with the labels as they are now and what the newest run says."""

    def __init__(self, db: Database, one: audits.Audit, newest: Probabilities | None):
        self.audit, self.where, self.cells = one, audits.population(db, one.id), audits.cells_of(db, one)
        self.samples = {sample.class_id: sample for sample in audit.samples_of(db, one, self.cells)}
        self.labels = audits.label_matrix(db, self.where.image_ids, self.where.class_ids)[0]
        if newest is None:
            self.newest = np.full(self.where.strata.shape, np.nan, np.float16)
        else:
            self.newest = newest.aligned(newest.probabilities, self.where.image_ids, self.where.class_ids)

    def pool(self, state: int, class_id: int | None) -> _Pool | None:
        """Of one class, or of all as one; None where nothing was drawn for that."""
        if class_id is None:
            return self._of_all(state)
        if class_id not in self.samples or np.isnan(self.samples[class_id].scores).all():
            return None
        one = self.samples[class_id]
        strata = np.asarray(one.strata)
        inside = np.flatnonzero(~np.isin(strata, (OUTSIDE, LOOK_PRESENT, LOOK_ABSENT)) & ~np.isnan(one.scores))
        counted = np.isin(one.rows, inside)
        rows, _ = positions(one.rows[counted], inside)
        columns, _ = self.where.columns(np.full(len(inside), class_id))
        return self._pool(state, inside, columns, strata[inside], rows, one.states[counted])

    def _of_all(self, state: int) -> _Pool | None:
        rows, columns = np.nonzero(np.asarray(self.where.strata) == TOGETHER[state])
        mine = np.flatnonzero((self.cells.stratum == TOGETHER[state]) & self.cells.shown)
        if not len(mine):
            return None
        said = self.cells.state[mine]
        mine = mine[usable(self.cells.place[mine], said != OPEN, self.cells.in_audit[mine])]
        mine = mine[np.argsort(self.cells.place[mine])]
        shape, asked = self.where.strata.shape, self.where.cells(self.cells.image_id[mine], self.cells.class_id[mine])
        sampled, _ = positions(np.ravel_multi_index(asked[:2], shape), np.ravel_multi_index((rows, columns), shape))
        return self._pool(state, rows, columns, np.zeros(len(rows), int), sampled, self.cells.state[mine])

    def _pool(self, state, rows, columns, strata, sampled, states) -> _Pool:
        """The cells (rows, columns) (N,) as a population, `sampled` (n,) of which were answered with `states` (n,)."""
        labels, newest = self.labels[rows, columns], self.newest[rows, columns]
        opposite = newest < 0.5 if state == PRESENT else newest >= 0.5  # never where the newest run says nothing
        sure = _sure(np.asarray(self.where.scores)[rows, columns], state)
        return _Pool(
            self.audit,
            Sample(sure, strata, sampled, states != state),  # "unsure" is no confirmation
            self.where.image_ids[rows],
            self.where.class_ids[columns],
            (labels == OPEN) & ~opposite,
            labels == -state,
        )


def _settle(
    db: Database, wanted: Guarantee, state: int, class_id: int | None, pools: list[_Pool], batch: str
) -> tuple[Outcome, set[tuple[int, int]]]:
    """Fill in by the newest drawing that is large enough to show something; what came of it, and what is filled in."""
    nothing = Outcome(class_id, state, 0, 0, 0, None, "nothing has been audited that it could rest on")
    best = None
    for pool in pools:
        verdict = lowest_threshold(
            pool.sample, pool.open, pool.known_wrong, wanted.precision, CANDIDATES, seed=pool.audit.id
        )
        best = best if best and not verdict.tested else (pool, verdict)
        if verdict.tested:
            break
    if best is None:
        return nothing, set()
    pool, verdict = best
    facts = {"audited": verdict.audited, "wrong": verdict.wrong, "threshold": verdict.threshold}
    if verdict.threshold is None:
        return replace(nothing, **facts, reason=_reason(verdict, wanted.precision)), set()
    chosen = pool.open & (pool.sample.scores >= verdict.threshold)
    for one in np.unique(pool.class_ids[chosen]).tolist():
        mine = np.flatnonzero(chosen & (pool.class_ids == one))
        sure = pool.sample.scores[mine].astype(np.float64)
        threshold, scores = (verdict.threshold, sure) if state == PRESENT else (1 - verdict.threshold, 1 - sure)
        told = (one, state, pool.audit.run_id, threshold, wanted.precision, CONFIDENCE, verdict.audited, verdict.wrong)
        auto_accepted.accept(db, batch, NewAcceptance(*told, pool.image_ids[mine], np.round(scores, 4)))
    filled = {(one, state) for one in np.unique(pool.class_ids[chosen]).tolist()}
    reason = "" if filled else "people have answered every cell that could be"
    return replace(nothing, **facts, cells=int(chosen.sum()), reason=reason), filled


def _reason(verdict: Verdict, precision: float) -> str:
    if not verdict.tested:
        return f"{verdict.audited:,} audited cells are too few to show {_share(precision)}, had none of them been wrong"
    return (
        f"{verdict.wrong:,} of {verdict.audited:,} audited cells were wrong: up to {verdict.at_most:,} of all such "
        f"cells may be, which is too many to promise {_share(precision)} of those that are left"
    )


def _sure(scores: np.ndarray, state: int) -> np.ndarray:
    """How sure a model is of a state, as float32 of the shape of its scores."""
    wide = np.asarray(scores, np.float32)
    return wide if state == PRESENT else np.where(wide < 0.5, 1 - wide, 0)


def _zone(sure: np.ndarray, open_: np.ndarray, precision: float) -> np.ndarray:
    """Which open cells could be filled in, bool: above the lowest threshold that the model itself expects to do."""
    for threshold in CANDIDATES:
        zone = open_ & (sure >= threshold)
        if zone.any() and sure[zone].mean(dtype=np.float64) >= precision - SLACK:
            return zone
    return np.zeros(sure.shape, bool)
