"""Actions of Autopilot: candidates whose image or cells are leased to a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import time_ns
from typing import Any

import numpy as np

from annotator.quality import rule_out
from annotator.queues import grid_queue, image_queue
from annotator.queues.autopilot import acquisition, action_texts
from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.autopilot.action_texts import CandidateEvidence
from annotator.queues.grid_queue import Grid, UnavailableCells
from annotator.queues.image_queue import WorkItem
from annotator.records import WantedActions, WantedGrids
from annotator.roles import Right
from annotator.snapshot.closing.closing_plan import ClosingPlan
from annotator.snapshot.preset_threshold import find_preset_threshold
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import TimeModel
from annotator.store.database import authorization, versions
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import auto_accepted, blind_visibility, label_cells, project_counts
from annotator.store.labels.image_overlap import OVERLAP_SOURCE
from annotator.store.people import blindness, leases
from annotator.store.people.assignment import UnavailableImages
from annotator.store.runs.prediction_evidence import load_score_texts

SOURCE_BY_CANDIDATE = {
    ("image", ""): "suggestion",
    ("image", "random"): "random",
    ("image", "exploration"): "exploration",
    ("image", "leftover"): "exploration",
    ("search", "random"): "sample",
}
"""Source of the decisions by kind and reason of the candidate; of all others it is the kind."""

_action_numbers = count(time_ns() // 1_000_000)


@dataclass(frozen=True)
class RuleOutOffer:
    """The offer to mark a class without an example absent everywhere."""

    class_id: int
    name: str
    absent_answers: int
    # images that would become absent
    images: int
    max_share_text: str


@dataclass(frozen=True)
class Action:
    """One task for an annotator, leased to a page."""

    id: str
    # grid, audit, image (all open classes), click (one class) or reading (all classes, blind)
    kind: str
    source: str
    # question, gain and duration in words
    line: str
    expected_positives: float
    decided_cells: int
    seconds: float
    grid: Grid | None = None
    item: WorkItem | None = None
    # image classes that start present
    preset: tuple[int, ...] = ()
    # (class id, probability) per open class, logged with the answer
    scores: tuple[tuple[int, float], ...] = ()
    # (class id, name, score) of external predictions
    models: tuple[tuple[int, str, float], ...] = ()
    # line per other kind of action available
    alternatives: tuple[str, ...] = ()
    ruling_out: RuleOutOffer | None = None
    reason: str = ""


class ActionLeaser:
    """The builder of the actions for one page request, which never offers a leased cell twice.

    Attributes:
        preset_threshold: Image classes from this probability on start present. None disables.
        rates: Class id -> expected share of images, for classes without a model.
    """

    def __init__(
        self,
        db: Database,
        wanted: WantedActions,
        snapshot: Snapshot | None,
        time_model: TimeModel,
        plan: ClosingPlan,
        rates: Mapping[int, float],
        evidence: CandidateEvidence,
    ):
        self.db, self.wanted, self.snapshot, self.time_model, self.plan = db, wanted, snapshot, time_model, plan
        self.rates, self.evidence, self.names, self.account = rates, evidence, evidence.names, evidence.account
        self.grids = WantedGrids(
            wanted.holder, wanted.annotator, None, acquisition.GRID_SIZES[-1], wanted.have, 1, wanted.passed
        )
        self.unavailable_cells = UnavailableCells.for_request(db, self.grids)
        self.preset_threshold = find_preset_threshold(db)
        self.passed = {image_id for image_id, _ in (*wanted.have, *wanted.passed)}
        self.unavailable_images = UnavailableImages(
            self.passed | self.unavailable_cells.leased_image_ids, self.unavailable_cells.withheld_images
        )

    def lease_action(self, candidate: Candidate, alternatives: tuple[str, ...] = ()) -> Action | None:
        """Lease a candidate's cells and return it as an action, or None if another page holds them."""
        if candidate.kind == "relabel":
            return self._lease_relabel(candidate, alternatives)
        if candidate.kind in ("grid", "search"):
            return self._lease_grid(candidate, alternatives)
        return self._lease_image(candidate, alternatives)

    def lease_audit(self, class_id: int, image_ids: Sequence[int]) -> Action | None:
        """Lease an audit grid of these images, or return None if another page holds them."""
        tiles = self._lease_tiles(class_id, [(image_id, None) for image_id in image_ids], hide_predictions=True)
        if tiles is None:
            return None
        size = len(tiles.tiles)
        seconds = self.time_model.estimate_grid_seconds(size, 1)
        line = action_texts.format_audit_line(size, self.names[class_id], seconds)
        return Action(tiles.id, "audit", "audit", line, 0.0, size, seconds, grid=tiles)

    def lease_reading(self, image_id: int, source: str = OVERLAP_SOURCE) -> Action | None:
        """Lease an image for blind answers in all classes. Returns None if it is leased or unreadable."""
        if not leases.lease_overlap_image(self.db, self.wanted.holder, self.wanted.annotator, image_id):
            return None
        self.passed.add(image_id)
        if label_cells.find_unaskable_images(self.db, [image_id]):
            return None
        shown = images.load_images(self.db, [image_id])[image_id]
        item = WorkItem(shown, [], [], class_version=versions.get_class_version(self.db))
        seconds = self.time_model.estimate_image_seconds(len(self.names), 1)
        line = action_texts.format_reading_line(seconds)
        number = f"r{image_id}-{next(_action_numbers)}"
        return Action(
            number, "reading", source, line, 0.0, len(self.names), seconds, item=item, reason=action_texts.BLIND_REASON
        )

    def load_open_classes(self, image_id: int) -> dict[int, float]:
        """Return an image's unanswered classes as class id -> probability, 0 without a model."""
        if self.snapshot and (open_cells := list(acquisition.iterate_open_cells(self.db, self.snapshot, [image_id]))):
            return open_cells[0][1]
        answered = label_cells.load_answered_cells(self.db, [image_id]).get(image_id, {})
        accepted = auto_accepted.load_accepted_class_ids(self.db, [image_id]).get(image_id, set())
        return {class_id: 0.0 for class_id in self.names if class_id not in answered and class_id not in accepted}

    def correct_probabilities(self, of_images: Sequence[dict[int, float]]) -> list[dict[int, float]]:
        """Return corrected probabilities per image: class id -> probability, or without a model its rate."""
        class_ids = [class_id for open_classes in of_images for class_id in open_classes]
        known = np.array([probability for open_classes in of_images for probability in open_classes.values()])
        values = iter(self.account.correct_for_image(class_ids, known).tolist())
        return [
            {class_id: self.rates.get(class_id, next(values)) for class_id in open_classes}
            for open_classes in of_images
        ]

    def _lease_relabel(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        tiles = self._lease_tiles(candidate.class_id, candidate.cells, hide_predictions=True)
        if tiles is None:
            return None
        if not blind_visibility.can_see_all(self.db):  # the state it starts with would tell what was answered
            blindness.reveal_visible_images(self.db, self.wanted.annotator, [tile.image.id for tile in tiles.tiles])
        tiles = replace(tiles, start="yes" if candidate.start_present else "no")
        return self._build_action(tiles.id, candidate, others, grid=tiles)

    def _lease_grid(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        tiles = self._lease_tiles(candidate.class_id, candidate.cells, event_images=candidate.event_images)
        if tiles is None:
            return None
        held = sum(1 + len(tile.others) for tile in tiles.tiles)
        if candidate.kind == "grid" and held < candidate.decided_cells:  # another page leased some first
            left = [(tile.image.id, tile.probability or 0.0) for tile in tiles.tiles]
            behind = {tile.image.id: [other[:2] for other in tile.others] for tile in tiles.tiles if tile.others}
            more = (self.time_model, self.plan, self.account, behind)
            candidate = acquisition.build_grid_candidate(candidate.class_id, left, *more)
        if candidate.kind == "grid":  # not as the model's own probabilities say, or it would take needless presses
            worth = self.account.correct_for_grid(
                candidate.class_id, np.array([chance for _, chance in candidate.cells])
            )
            tiles = replace(
                tiles, start="yes" if float(worth.sum()) >= grid_queue.EVEN_PROBABILITY * len(worth) else "no"
            )
        return self._build_action(tiles.id, candidate, others, grid=tiles)

    def _lease_image(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        image_id = candidate.cells[0][0]
        if not leases.lease_images(self.db, self.wanted.holder, self.wanted.annotator, [image_id], 1):
            return None
        self.unavailable_images.ids.add(image_id)
        self.unavailable_cells.leased_image_ids.add(image_id)
        open_classes = self.load_open_classes(image_id)
        if not open_classes or label_cells.find_unaskable_images(self.db, [image_id]):
            return None
        if not blind_visibility.can_see_all(self.db) and blindness.reveal_visible_images(
            self.db, self.wanted.annotator, [image_id]
        ):
            return None
        item = image_queue.load_items(self.db, [image_id])[0]
        # A random or leftover image starts with nothing preset, which keeps the estimates from it unbiased.
        presets = candidate.kind == "image" and candidate.reason in ("", "exploration")
        least = self.preset_threshold if presets and self.preset_threshold is not None else float("inf")
        preset = tuple(
            class_id for class_id, chance in self.correct_probabilities([open_classes])[0].items() if chance >= least
        )
        scores = (
            tuple((class_id, round(chance, 4)) for class_id, chance in open_classes.items()) if self.snapshot else ()
        )
        said = load_score_texts(self.db, [image_id] * len(preset), preset)
        models = tuple((class_id, *one) for class_id, every in zip(preset, said, strict=True) for one in every)
        action_id = f"i{image_id}-{next(_action_numbers)}"
        return self._build_action(action_id, candidate, others, item=item, preset=preset, scores=scores, models=models)

    def _build_action(self, action_id: str, candidate: Candidate, others: tuple[str, ...], **content: Any) -> Action:
        kind = "grid" if candidate.kind in ("relabel", "search") else candidate.kind
        source = SOURCE_BY_CANDIDATE.get((candidate.kind, candidate.reason), candidate.kind)
        line = action_texts.format_candidate_line(candidate, self.evidence)
        numbers = (candidate.expected_positives, candidate.decided_cells, candidate.seconds)
        is_search = candidate.kind == "search" and candidate.class_id not in self.evidence.found
        offer = self._build_rule_out_offer(candidate.class_id) if is_search else None
        reason = action_texts.format_candidate_reason(candidate, self.evidence)
        words = {"alternatives": others, "ruling_out": offer, "reason": reason}
        return Action(action_id, kind, source, line, *numbers, **words, **content)

    def _build_rule_out_offer(self, class_id: int) -> RuleOutOffer | None:
        absent = self.evidence.random_absent.get(class_id, 0)
        if absent < rule_out.MIN_RANDOM_ABSENT or authorization.explain_denial(self.db.sql, Right.REVIEW):
            return None
        open_ = project_counts.count_unanswered_images(self.db, class_id)
        return RuleOutOffer(
            class_id, self.names[class_id], absent, open_, f"{100 * rule_out.compute_max_share(absent):.1f} %"
        )

    def _lease_tiles(
        self,
        class_id: int,
        wanted: Sequence[tuple[int, float | None]],
        *,
        hide_predictions: bool = False,
        event_images: acquisition.EventImages | None = None,
    ) -> Grid | None:
        """Lease images (id, probability or None) as a grid of one class, or return None if none is free."""
        asked = replace(self.grids, size=len(wanted), hide_predictions=hide_predictions)
        tiles = grid_queue.lease_tiles(self.db, asked, class_id, wanted)
        if event_images:
            tiles = grid_queue.add_event_images(self.db, asked, class_id, event_images, tiles)
        behind = {other[0] for tile in tiles for other in tile.others}
        self.unavailable_cells.image_ids_by_class.setdefault(class_id, set()).update(
            behind, (image_id for image_id, _ in wanted)
        )
        self.unavailable_images.ids.update(behind, (tile.image.id for tile in tiles))
        run = self.snapshot.run.id if self.snapshot and not hide_predictions else None
        return grid_queue.build_grid(class_id, run, tiles) if tiles else None
