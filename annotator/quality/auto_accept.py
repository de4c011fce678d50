"""Auto-accept: model labels where an audit sample guarantees their precision.

Audits keep the scores of their drawing, so no model judges a cell whose answer it has learned. The sample bounds the
errors among *all* cells above a threshold. Corrected errors are subtracted, and the others must be few enough for the
unanswered cells' precision. Grid answers never count, because grids are not random samples.
"""

import uuid
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.quality import guarantee, rule_out
from annotator.quality.auto_accept_sample import AcceptancePool, AnsweredAudit
from annotator.quality.guarantee import DEFAULT_PRECISION, GUARANTEE_SETTING, Guarantee
from annotator.records import PRESENT
from annotator.roles import Right
from annotator.snapshot.run_predictions import Probabilities, read_predictions
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.labels import audits, auto_accepted
from annotator.store.labels.auto_accepted import NewAcceptance
from spmll.statistics.sequential_bound import CANDIDATE_THRESHOLDS, CONFIDENCE, Verdict, find_lowest_threshold


@dataclass(frozen=True)
class AcceptanceOutcome:
    """The result of checking the auto-accept guarantee for one state (present or absent) of one class.

    `class_id` is None for all classes together. `reason` explains why no cell is accepted.
    """

    class_id: int | None
    state: int
    cells: int
    audited: int
    wrong: int
    threshold: float | None
    reason: str


def set_guarantee(db: Database, wanted: Guarantee | None) -> list[AcceptanceOutcome]:
    """Turn auto-accept on under this guarantee, checked after every training, or (None) off, which releases all cells.

    Raises AnnotatorError for a precision outside [0.5, 1), or without a state.
    """
    if wanted is not None and not 0.5 <= wanted.precision < 1:
        raise AnnotatorError(
            f"A precision of {wanted.precision} cannot be guaranteed: it must lie between 0.5 and 1, such as "
            f"{DEFAULT_PRECISION}."
        )
    if wanted is not None and not wanted.states:
        raise AnnotatorError("Neither present nor absent answers are to be auto-accepted. Choose one, or turn it off.")
    db.set_setting(GUARANTEE_SETTING, asdict(wanted) if wanted else None, Right.REVIEW)
    outcomes = recheck(db)
    jobs.request_training(db)  # the rankings of Grid and Review leave out accepted cells from the next run on
    return outcomes


def undo(db: Database, batch: str) -> int:
    """Release the auto-accepted cells of a batch, and return its number of (class, state) pairs.

    Also turns auto-accept off, unless the batch is a class marked absent everywhere. Raises AnnotatorError for an
    inactive batch.
    """
    if batch in {ruling.batch for ruling in rule_out.load_rulings(db)}:
        rule_out.undo(db, batch)
        return 1
    with db.writing(right=Right.REVIEW):
        if withdrawn := auto_accepted.withdraw_batch(db, batch, "undone"):
            db.set_setting(GUARANTEE_SETTING, None, Right.REVIEW)
            jobs.request_training(db)
            return withdrawn
    holding = sorted({acceptance.batch for acceptance in (*_load_current_acceptances(db), *rule_out.load_rulings(db))})
    raise AnnotatorError(f"There is no auto-accepted batch {batch!r}. There is: {', '.join(holding) or 'none'}.")


def recheck(db: Database, newest: Probabilities | None = None) -> list[AcceptanceOutcome]:
    """Check the guarantee again: accept more cells where it holds, and release cells where it fails.

    Returns one outcome per class and guaranteed state. `newest` are unpublished probabilities, None for current ones.
    """
    wanted, batch = guarantee.get_guarantee(db), f"a{uuid.uuid4().hex[:8]}"
    outcomes: list[AcceptanceOutcome] = []
    accepted: set[tuple[int, int]] = set()
    reasons: dict[tuple[int | None, int], str] = {}
    if wanted:
        newest = newest or read_predictions(db)
        answered = [
            AnsweredAudit(db, drawn, drawn.run_id, newest)
            for drawn in audits.load_audits(db)
            if drawn.run_id and not drawn.by_event
        ]
        ruled = auto_accepted.find_ruled_out_classes(db)
        class_ids = [None] if wanted.together else [class_.id for class_ in classes.load_active_classes(db)]
        for state, class_id in product(wanted.states, class_ids):
            if class_id in ruled:
                continue
            pools = [_close_ruled_out(ruled, pool) for audit in answered if (pool := audit.build_pool(state, class_id))]
            outcome, now_accepted = _accept_cells(db, wanted, state, class_id, pools, batch)
            outcomes.append(outcome)
            accepted |= now_accepted
            reasons[class_id, state] = outcome.reason
    for acceptance in _load_current_acceptances(db):
        if (acceptance.class_id, acceptance.state) not in accepted:
            class_id = None if wanted and wanted.together else acceptance.class_id
            reason = reasons.get((class_id, acceptance.state)) or "no longer asked for"
            auto_accepted.withdraw_class(db, acceptance.class_id, acceptance.state, reason)
    return outcomes


def _load_current_acceptances(db: Database) -> list[auto_accepted.Acceptance]:
    return [made for made in auto_accepted.load_acceptances(db) if not (made.withdrawn or made.annotator)]


def _close_ruled_out(ruled: set[int], pool: AcceptancePool) -> AcceptancePool:
    return replace(pool, open=pool.open & ~np.isin(pool.class_ids, list(ruled))) if ruled else pool


def _accept_cells(
    db: Database, wanted: Guarantee, state: int, class_id: int | None, pools: list[AcceptancePool], batch: str
) -> tuple[AcceptanceOutcome, set[tuple[int, int]]]:
    nothing = AcceptanceOutcome(class_id, state, 0, 0, 0, None, "no audit answers yet")
    best: tuple[AcceptancePool, Verdict] | None = None
    for pool in pools:
        verdict = find_lowest_threshold(
            pool.sample,
            pool.open,
            pool.known_wrong,
            wanted.precision,
            np.array(CANDIDATE_THRESHOLDS),
            seed=pool.audit.id,
        )
        best = best if best and not verdict.tested else (pool, verdict)
        if verdict.tested:
            break
    if best is None:
        return nothing, set()
    pool, verdict = best
    outcome = replace(nothing, audited=verdict.audited, wrong=verdict.wrong, threshold=verdict.threshold)
    if verdict.threshold is None:
        return replace(outcome, reason=_explain_refusal(verdict, wanted.precision)), set()
    chosen = pool.open & (pool.sample.scores >= verdict.threshold)
    accepted_ids = np.unique(pool.class_ids[chosen]).tolist()
    for accepted_id in accepted_ids:
        of_class = np.flatnonzero(chosen & (pool.class_ids == accepted_id))
        confidence = pool.sample.scores[of_class].astype(np.float64)
        present = state == PRESENT
        acceptance = NewAcceptance(
            class_id=accepted_id,
            state=state,
            run_id=pool.run_id,
            threshold=verdict.threshold if present else 1 - verdict.threshold,
            precision=wanted.precision,
            confidence=CONFIDENCE,
            audited=verdict.audited,
            wrong=verdict.wrong,
            image_ids=pool.image_ids[of_class],
            scores=np.round(confidence if present else 1 - confidence, 4),
        )
        auto_accepted.accept(db, batch, acceptance)
    reason = "" if accepted_ids else "people have answered all of them"
    return replace(outcome, cells=int(chosen.sum()), reason=reason), {(accepted, state) for accepted in accepted_ids}


def _explain_refusal(verdict: Verdict, precision: float) -> str:
    share = guarantee.format_precision(precision)
    if not verdict.tested:
        return f"{format_count(verdict.audited, 'audit answer')}: too few to show {share}, even without a mistake"
    return (
        f"{verdict.wrong:,} of {format_count(verdict.audited, 'audit answer')} wrong: up to {verdict.at_most:,} of all "
        f"such pairs may be, too many to guarantee {share} of the rest"
    )
