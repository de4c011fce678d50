"""The end of Autopilot: what there is once no pair is open, and what may be asked about answered pairs.

Answers that may be wrong and audits are offers by then: each begins when a person asks for it (WantedActions.extras).
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from annotator.quality import audit
from annotator.queues.autopilot import relabel
from annotator.queues.grid import Out
from annotator.records import WantedActions, WantedGrids
from annotator.snapshot.progress import Progress, progress_of
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import TimeModel, time_model_of
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, cells
from annotator.store.labels import counts as overview
from annotator.store.labels import overlap as readings

EXTRAS = ("relabel", "audit")
TILES = 24  # of a grid of an audit


@dataclass(frozen=True)
class Offer:
    """Pairs that may be asked about, 0 for none, and the seconds that this takes the person."""

    pairs: int
    seconds: float


@dataclass(frozen=True)
class Complete:
    """The project without an open pair.

    Attributes:
        progress: Its progress; accepted pairs and those of unreadable images have no answer.
        labels: Name of each class, and on how many images people have labeled it present, the most frequent first.
        doubted: The answers that the model contradicts, each asked again once; None without a model.
        audit_in_hand: The cells of audits that are not answered yet.
        audit: A new audit of the usual size.
        audit_finds: What its answers estimate: "missing" labels, or "wrong" answers where people answered every pair.
    """

    progress: Progress
    labels: tuple[tuple[str, int], ...]
    doubted: Offer | None
    audit_in_hand: Offer
    audit: Offer
    audit_finds: str


def nothing_open(db: Database, have: Collection[tuple[int, int]] = ()) -> bool:
    """Return whether no pair is open, those left out that the page has in hand (as WantedActions.have)."""
    open_pairs = overview.count_open(db)
    if open_pairs <= 0 or open_pairs > len(have) * classes.count_classes(db):
        return open_pairs <= 0
    return open_pairs <= _open_among(db, have)


def complete(db: Database, wanted: WantedActions) -> Complete | None:
    """Return what a project holds that has no open pair; None while there is one, or a blind answer is missing."""
    counts = overview.image_counts(db)
    present = overview.labels_by_class(db)
    if not counts["all"] or not present or not nothing_open(db):
        return None
    if readings.overlap(db) and readings.readings(db).waiting:
        return None
    labels = sorted(((row["class"], row["present"]) for row in present), key=lambda label: (-label[1], label[0]))
    time_model = time_model_of(db, wanted.annotator)
    states = overview.labels_by_state(db)
    accepted = sum(auto_accepted.counts(db).values()) + auto_accepted.count_ruled_out(db)
    asked = Counter(cell.class_id for cell in audit.open_cells(db))
    size = audit.expected_size(db, states["present"], states["absent"], accepted)
    per_class = [(size + place) // len(present) for place in range(len(present))]
    return Complete(
        progress=progress_of(db, wanted.annotator, counts),
        labels=tuple(labels),
        doubted=_doubted(db, wanted, time_model),
        audit_in_hand=_offer(_grids(asked.values()), time_model),
        audit=_offer(_grids(per_class), time_model),
        audit_finds="missing" if accepted else "wrong",
    )


def _open_among(db: Database, have: Collection[tuple[int, int]]) -> int:
    """Count the open pairs among these cells; class 0: all of the image."""
    image_ids = list({image_id for image_id, _ in have})
    answered = cells.answered(db, image_ids)
    accepted = auto_accepted.accepted_class_ids(db, image_ids)
    class_ids = list(overview.class_counts(db))
    pairs = {(image_id, one) for image_id, class_id in have for one in ([class_id] if class_id else class_ids)}
    return sum(
        class_id not in answered.get(image_id, {}) and class_id not in accepted.get(image_id, set())
        for image_id, class_id in pairs
    )


def _doubted(db: Database, wanted: WantedActions, time_model: TimeModel) -> Offer | None:
    snapshot = read_snapshot(db)
    if snapshot is None:
        return None
    page = WantedGrids(wanted.holder, wanted.annotator, None, relabel.SIZE, (), 1)
    return _offer(relabel.grid_sizes(db, snapshot, Out.for_request(db, page)), time_model)


def _grids(pairs_of_classes: Iterable[int]) -> list[int]:
    """Return the sizes of the grids that ask about so many pairs of each class."""
    return [min(TILES, pairs - start) for pairs in pairs_of_classes for start in range(0, pairs, TILES)]


def _offer(grids: list[int], time_model: TimeModel) -> Offer:
    return Offer(sum(grids), sum(time_model.grid(tiles, 1) for tiles in grids))
