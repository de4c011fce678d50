"""The end of Autopilot, when every label is answered: it offers label checks and audits."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from annotator.quality import audit_sampling
from annotator.queues.autopilot import relabel
from annotator.queues.grid_queue import UnavailableCells
from annotator.records import WantedActions, WantedGrids
from annotator.snapshot.closing.account import load_account
from annotator.snapshot.project_progress import Progress, load_progress
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import TimeModel, load_time_model
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, image_overlap, label_cells, project_counts

EXTRA_KINDS = ("relabel", "audit")
AUDIT_GRID_TILES = 24  # of a grid of an audit


@dataclass(frozen=True)
class PairOffer:
    """An offered task: the number of cells to answer, the estimated seconds and, for checks, the expected changes."""

    pairs: int
    seconds: float
    changes: float = 0.0


@dataclass(frozen=True)
class CompleteProject:
    """A project in which every label is answered, with offers of further work.

    Attributes:
        progress: Auto-accepted and unreadable labels count as unanswered.
        labels: (class, images labeled present), most frequent first.
        doubted_answers: Check of labels that the model contradicts, each once. None without model.
        audit_finds: "missing" labels, or "wrong" ones if every label is answered.
    """

    progress: Progress
    labels: tuple[tuple[str, int], ...]
    doubted_answers: PairOffer | None
    open_audit: PairOffer
    new_audit: PairOffer
    audit_finds: str


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
    states = project_counts.count_labels_by_state(db)
    accepted = sum(auto_accepted.count_accepted(db).values()) + auto_accepted.count_ruled_out(db)
    asked = Counter(cell.class_id for cell in audit_sampling.load_open_cells(db))
    size = audit_sampling.estimate_size(db, states["present"], states["absent"], accepted)
    per_class = [(size + place) // len(present) for place in range(len(present))]
    return CompleteProject(
        progress=load_progress(db, wanted.annotator, counts),
        labels=tuple(labels),
        doubted_answers=_offer_doubted_answers(db, wanted, time_model),
        open_audit=_build_offer(_split_into_grids(asked.values()), time_model),
        new_audit=_build_offer(_split_into_grids(per_class), time_model),
        audit_finds="missing" if accepted else "wrong",
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


def _offer_doubted_answers(db: Database, wanted: WantedActions, time_model: TimeModel) -> PairOffer | None:
    snapshot = read_snapshot(db)
    if snapshot is None:
        return None
    page = WantedGrids(wanted.holder, wanted.annotator, None, relabel.GRID_TILES, (), 1)
    checks = relabel.list_checks(db, snapshot, UnavailableCells.for_request(db, page), load_account(db))
    offer = _build_offer([tiles for tiles, _ in checks], time_model)
    return replace(offer, changes=sum(changes for _, changes in checks))


def _split_into_grids(pairs_of_classes: Iterable[int]) -> list[int]:
    return [
        min(AUDIT_GRID_TILES, pairs - start)
        for pairs in pairs_of_classes
        for start in range(0, pairs, AUDIT_GRID_TILES)
    ]


def _build_offer(grids: list[int], time_model: TimeModel) -> PairOffer:
    return PairOffer(sum(grids), sum(time_model.estimate_grid_seconds(tiles, 1) for tiles in grids))
