"""The end of Autopilot, when every label is answered: it offers label checks and audits."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from annotator.quality import audit_sampling
from annotator.quality.audit_sampling import OpenAuditCell
from annotator.quality.certificate_records import describe_repeats
from annotator.quality.certificate_strata import count_relabels
from annotator.queues.autopilot import relabel
from annotator.queues.grid_queue import UnavailableCells
from annotator.records import PRESENT, WantedActions, WantedGrids
from annotator.snapshot.closing.account import load_account
from annotator.snapshot.project_progress import Progress, load_progress
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import MAX_ANSWERS, MAX_DECISIONS_READ, TimeModel, load_time_model
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import answer_times, audits, auto_accepted, image_overlap, label_cells, project_counts
from annotator.store.labels.audits import OPEN

EXTRA_KINDS = ("relabel", "audit")
AUDIT_GRID_TILES = 24  # of a grid of an audit
PRIOR_REANSWER_SECONDS = 30.0  # seconds of second answers that the usual times weigh as much as


@dataclass(frozen=True)
class PairOffer:
    """An offered task: the number of cells to answer, the estimated seconds and, for checks, the expected changes."""

    pairs: int
    seconds: float
    changes: float = 0.0


@dataclass(frozen=True)
class CompleteProject:
    """A project in which every label is answered, with offers of further work."""

    # auto-accepted and unreadable labels count as unanswered
    progress: Progress
    # (class, images labeled present), most frequent first
    labels: tuple[tuple[str, int], ...]
    # check of labels that the model contradicts, each once. None without model
    doubted_answers: PairOffer | None
    open_audit: PairOffer
    new_audit: PairOffer
    # "missing" labels, or "wrong" ones if every label is answered
    audit_finds: str
    # what the newest audit found, or ""
    findings: str


def has_no_open_pair(db: Database, have: Collection[tuple[int, int]] = ()) -> bool:
    """Return whether every class is answered on every image, except the (image id, class id) pairs in `have`."""
    open_pairs = project_counts.count_open_cells(db)
    if open_pairs <= 0 or open_pairs > len(have) * classes.count_classes(db):
        return open_pairs <= 0
    return open_pairs <= _count_open_among(db, have)


def load_complete_project(db: Database, wanted: WantedActions) -> CompleteProject | None:
    """Return the complete project, or None while a label or a blind answer is missing."""
    counts = project_counts.count_images_by_stage(db)
    present = project_counts.list_label_counts_by_class(db)
    if not counts["all"] or not present or not has_no_open_pair(db):
        return None
    if image_overlap.load_overlap(db) and image_overlap.load_progress(db).waiting:
        return None
    labels = sorted(((row["class"], row["present"]) for row in present), key=lambda label: (-label[1], label[0]))
    time_model = load_time_model(db, wanted.annotator)
    ratio = _estimate_reanswer_ratio(db, wanted.annotator, time_model)
    accepted = sum(auto_accepted.count_accepted(db).values()) + auto_accepted.count_ruled_out(db)
    open_cells = audit_sampling.load_open_cells_for(db, wanted.annotator)
    new_cells = audit_sampling.estimate_cells(
        db, np.array([[row["present"], row["absent"]] for row in present]), accepted
    )
    tiles = AUDIT_GRID_TILES if wanted.tiles is None else max(1, min(AUDIT_GRID_TILES, wanted.tiles))
    return CompleteProject(
        progress=load_progress(db, wanted.annotator, counts),
        labels=tuple(labels),
        doubted_answers=_offer_doubted_answers(db, wanted, time_model, ratio),
        open_audit=_offer_audit(_count_open_cells(db, open_cells), time_model, ratio, tiles),
        new_audit=_offer_audit(np.column_stack([new_cells.sum(1), new_cells[:, 0]]), time_model, ratio, tiles),
        audit_finds="missing" if accepted else "wrong",
        findings=_describe_newest_audit(db),
    )


def _count_open_among(db: Database, have: Collection[tuple[int, int]]) -> int:
    """Count the unanswered cells among these (image id, class id). Class 0 means all classes of the image."""
    image_ids = list({image_id for image_id, _ in have})
    answered = label_cells.load_answered_cells(db, image_ids)
    accepted = auto_accepted.load_accepted_class_ids(db, image_ids)
    class_ids = list(project_counts.count_labels_by_class(db))
    pairs = {(image_id, one) for image_id, class_id in have for one in ([class_id] if class_id else class_ids)}
    return sum(
        class_id not in answered.get(image_id, {}) and class_id not in accepted.get(image_id, set())
        for image_id, class_id in pairs
    )


def _offer_doubted_answers(
    db: Database, wanted: WantedActions, time_model: TimeModel, ratio: float
) -> PairOffer | None:
    snapshot = read_snapshot(db)
    if snapshot is None:
        return None
    page = WantedGrids(wanted.holder, wanted.annotator, None, relabel.GRID_TILES, (), 1)
    checks = relabel.list_checks(db, snapshot, UnavailableCells.for_request(db, page), load_account(db))
    seconds = ratio * sum(time_model.estimate_grid_seconds(tiles, changes) for tiles, changes in checks)
    return PairOffer(sum(tiles for tiles, _ in checks), seconds, sum(changes for _, changes in checks))


def _count_open_cells(db: Database, cells: Sequence[OpenAuditCell]) -> np.ndarray:
    """Return (tiles, expected presses) per class, (C, 2): one press per present tile."""
    labels = label_cells.load_labels_with_annotators(db, [(cell.image_id, cell.class_id) for cell in cells])
    counts: dict[int, list[float]] = {}
    for cell in cells:
        of_class = counts.setdefault(cell.class_id, [0.0, 0.0])
        label = labels.get((cell.image_id, cell.class_id))
        of_class[0] += 1
        of_class[1] += cell.score or 0.0 if label is None else label[0] == PRESENT
    return np.array(list(counts.values())).reshape(-1, 2)


def _offer_audit(tiles_and_presses: np.ndarray, time_model: TimeModel, ratio: float, max_tiles: int) -> PairOffer:
    """Return the offer of an audit with these expected (tiles, presses) per class, (C, 2)."""
    seconds = 0.0
    for tiles, presses in tiles_and_presses.tolist():
        grids = math.ceil(tiles / max_tiles) if tiles >= 1 else 1 - math.exp(-tiles)  # a class may draw no tile
        overhead = time_model.estimate_grid_seconds(0, 0.0)
        seconds += grids * overhead + time_model.estimate_grid_seconds(tiles, presses) - overhead
    return PairOffer(round(float(tiles_and_presses[:, 0].sum())), ratio * seconds)


def _estimate_reanswer_ratio(db: Database, annotator: str, time_model: TimeModel) -> float:
    """Return the time of this annotator's second answers as a multiple of that of other grids."""
    answers = answer_times.load_newest_answers(
        db, annotator, MAX_DECISIONS_READ, MAX_ANSWERS, sources=("audit", "relabel")
    )
    expected = sum(time_model.estimate_grid_seconds(answer.cells, answer.changes) for answer in answers)
    return (sum(answer.seconds for answer in answers) + PRIOR_REANSWER_SECONDS) / (expected + PRIOR_REANSWER_SECONDS)


def _describe_newest_audit(db: Database) -> str:
    """Return what the newest audit found among labeled cells, or "" before it is answered."""
    newest = audits.load_audits(db, 1)
    if not newest or newest[0].by_event:
        return ""

    def describe() -> str:
        cells = audits.load_cells(db, newest[0])
        if ((cells.state == OPEN) & cells.shown).any():
            return ""
        return describe_repeats(count_relabels(audit_sampling.load_samples(db, newest[0], cells)))

    return db.caches.get("audit_findings", (newest[0].id, versions.get_label_version(db)), describe, 1)
