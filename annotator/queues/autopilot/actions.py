"""Actions: what a page shows of a candidate once its image or its cells are leased to that page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import time_ns
from typing import Any

import numpy as np

from annotator.quality import rule_out
from annotator.queues import annotate, grid
from annotator.queues.annotate import WorkItem
from annotator.queues.autopilot import acquisition, wording
from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.autopilot.wording import Evidence
from annotator.queues.grid import Grid, Out
from annotator.records import WantedActions, WantedGrids
from annotator.roles import Right
from annotator.snapshot.guesses import guessed_from
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import TimeModel
from annotator.store.database import authorization, versions
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import auto_accepted, cells
from annotator.store.labels import blind_tallies as apart
from annotator.store.labels import counts as overview
from annotator.store.labels.overlap import SOURCE
from annotator.store.people import blindness, leases
from annotator.store.people.assignment import Taken
from annotator.store.runs.prediction_evidence import in_words

SOURCES = {
    ("image", ""): "suggestion",
    ("image", "random"): "random",
    ("image", "exploration"): "exploration",
    ("image", "leftover"): "exploration",
    ("search", "random"): "sample",
}
"""Source of the decisions by kind and reason of the candidate; of all others it is the kind."""

_number = count(time_ns() // 1_000_000)


@dataclass(frozen=True)
class RulingOut:
    """The offer to rule out a class without an example (quality/rule_out.py).

    Attributes:
        class_id: The class.
        name: Its name.
        absent: Random images that were answered absent.
        images: How many images would count as absent.
        at_most: The share of images that show it, at most, in percent, in words.
    """

    class_id: int
    name: str
    absent: int
    images: int
    at_most: str


@dataclass(frozen=True)
class Action:
    """One task for a person, leased to their page.

    Attributes:
        kind: grid, audit (a grid of audit cells), image (every open class of it), click (one class of it), or reading
            (every class of an image that others answer as well; nothing that is known of it is shown).
        source: Of the decisions that answer it: records.SOURCES.
        line: What it asks, what it brings and how long it takes, in words.
        labels: Expected new positives; decided: cells settled; seconds: expected time of this annotator.
        preset: Image: the classes that start as present.
        scores: Image and click: class id and probability of each open class, logged with the answer.
        models: Image: of the classes that start as present, what models from elsewhere say: class id, name, score.
        others: What the other kinds would have brought, one line each.
        ruling_out: Of a search: what ruling out its class would do; None where that is not offered.
        reason: Why it comes next, in words.
    """

    id: str
    kind: str
    source: str
    line: str
    labels: float
    decided: int
    seconds: float
    grid: Grid | None = None
    item: WorkItem | None = None
    preset: tuple[int, ...] = ()
    scores: tuple[tuple[int, float], ...] = ()
    models: tuple[tuple[int, str, float], ...] = ()
    others: tuple[str, ...] = ()
    ruling_out: RulingOut | None = None
    reason: str = ""


class Leasing:
    """The maker of actions for one request; what it leases for one candidate is not free for the next.

    Attributes:
        out: Cells of grids that are not free.
        images_out: Images that are not free.
        guessed_from: From this probability on a class of an image starts as present; None: none does.
        account: What promises were worth so far.
        rates: Class id -> share of the images expected to show it, of the classes without an example.
    """

    def __init__(
        self,
        db: Database,
        wanted: WantedActions,
        snapshot: Snapshot | None,
        time_model: TimeModel,
        rates: Mapping[int, float],
        evidence: Evidence,
    ):
        self.db, self.wanted, self.snapshot, self.time_model = db, wanted, snapshot, time_model
        self.rates, self.evidence, self.names, self.account = rates, evidence, evidence.names, evidence.account
        self.grids = WantedGrids(
            wanted.holder, wanted.annotator, None, acquisition.SIZES[-1], wanted.have, 1, wanted.passed
        )
        self.out = Out.for_request(db, self.grids)
        self.guessed_from = guessed_from(db)
        self.passed = {image_id for image_id, _ in (*wanted.have, *wanted.passed)}
        self.images_out = Taken(self.passed | self.out.whole, self.out.aside)

    def action(self, candidate: Candidate, others: tuple[str, ...] = ()) -> Action | None:
        """Lease what a candidate needs and return its action; None when another page holds it."""
        if candidate.kind == "relabel":
            return self._relabel(candidate, others)
        if candidate.kind in ("grid", "search"):
            return self._grid(candidate, others)
        return self._image(candidate, others)

    def audit(self, class_id: int, image_ids: Sequence[int]) -> Action | None:
        """Lease these images and return an audit grid of them; None when another page holds them."""
        tiles = self._tiles(class_id, [(image_id, None) for image_id in image_ids], hide_predictions=True)
        if tiles is None:
            return None
        size = len(tiles.tiles)
        seconds = self.time_model.grid(size, 1)
        line = wording.audit_line(size, self.names[class_id], seconds)
        return Action(tiles.id, "audit", "audit", line, 0.0, size, seconds, grid=tiles)

    def reading(self, image_id: int, source: str = SOURCE) -> Action | None:
        """Lease an image and return the action of answering all its classes blind.

        None when another page holds the image, or when its file cannot be read.
        """
        if not leases.take_reading(self.db, self.wanted.holder, self.wanted.annotator, image_id):
            return None
        self.passed.add(image_id)
        if cells.unreadable(self.db, [image_id]):
            return None
        shown = images.images(self.db, [image_id])[image_id]
        item = WorkItem(shown, [], [], class_version=versions.class_version(self.db))
        seconds = self.time_model.image(len(self.names), 1)
        line = wording.reading_line(seconds)
        number = f"r{image_id}-{next(_number)}"
        return Action(number, "reading", source, line, 0.0, len(self.names), seconds, item=item, reason=wording.BLIND)

    def open_classes(self, image_id: int) -> dict[int, float]:
        """Return the open classes of an image: class id -> probability, 0 without a model."""
        if self.snapshot and (open_cells := list(acquisition.open_cells(self.db, self.snapshot, [image_id]))):
            return open_cells[0][1]
        answered = cells.answered(self.db, [image_id]).get(image_id, {})
        accepted = auto_accepted.accepted_class_ids(self.db, [image_id]).get(image_id, set())
        return {class_id: 0.0 for class_id in self.names if class_id not in answered and class_id not in accepted}

    def worth(self, of_images: Sequence[dict[int, float]]) -> list[dict[int, float]]:
        """Return what the probabilities of each image's open classes are worth; of a class without a model, its rate.

        Args:
            of_images: Class id -> probability, for each image. All are looked up at once, as there are hundreds.
        """
        class_ids = [class_id for open_classes in of_images for class_id in open_classes]
        known = np.array([probability for open_classes in of_images for probability in open_classes.values()])
        values = iter(self.account.worth_on_image(class_ids, known).tolist())
        return [
            {class_id: self.rates.get(class_id, next(values)) for class_id in open_classes}
            for open_classes in of_images
        ]

    def _relabel(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        tiles = self._tiles(candidate.class_id, candidate.cells, hide_predictions=True)
        if tiles is None:
            return None
        if not apart.sees_all(self.db):  # the state it starts with would tell what was answered
            blindness.show(self.db, self.wanted.annotator, [tile.image.id for tile in tiles.tiles])
        tiles = replace(tiles, start="yes" if candidate.start_present else "no")
        return self._described(tiles.id, candidate, others, grid=tiles)

    def _grid(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        tiles = self._tiles(candidate.class_id, candidate.cells, others=candidate.others)
        if tiles is None:
            return None
        held = sum(1 + len(tile.others) for tile in tiles.tiles)
        if candidate.kind == "grid" and held < candidate.decided:  # another page leased some first
            left = [(tile.image.id, tile.probability or 0.0) for tile in tiles.tiles]
            behind = {tile.image.id: [other[:2] for other in tile.others] for tile in tiles.tiles if tile.others}
            more = (self.time_model, 0.0, self.account, behind)
            candidate = acquisition.grid_candidate(candidate.class_id, left, *more)
        if candidate.kind == "grid":  # not as the model's own probabilities say, or it would take needless presses
            worth = self.account.worth_in_grid(candidate.class_id, np.array([chance for _, chance in candidate.cells]))
            tiles = replace(tiles, start="yes" if float(worth.sum()) >= grid.EVEN * len(worth) else "no")
        return self._described(tiles.id, candidate, others, grid=tiles)

    def _image(self, candidate: Candidate, others: tuple[str, ...]) -> Action | None:
        image_id = candidate.cells[0][0]
        if not leases.take(self.db, self.wanted.holder, self.wanted.annotator, [image_id], 1):
            return None
        self.images_out.ids.add(image_id)
        self.out.whole.add(image_id)
        open_classes = self.open_classes(image_id)
        if not open_classes or cells.unreadable(self.db, [image_id]):
            return None
        if not apart.sees_all(self.db) and blindness.show(self.db, self.wanted.annotator, [image_id]):
            return None
        item = annotate.items(self.db, [image_id])[0]
        # A random or leftover image starts with nothing preset, which keeps the estimates from it unbiased.
        presets = candidate.kind == "image" and candidate.reason in ("", "exploration")
        least = self.guessed_from if presets and self.guessed_from is not None else float("inf")
        preset = tuple(class_id for class_id, chance in self.worth([open_classes])[0].items() if chance >= least)
        scores = (
            tuple((class_id, round(chance, 4)) for class_id, chance in open_classes.items()) if self.snapshot else ()
        )
        said = in_words(self.db, [image_id] * len(preset), preset)
        models = tuple((class_id, *one) for class_id, every in zip(preset, said, strict=True) for one in every)
        action_id = f"i{image_id}-{next(_number)}"
        return self._described(action_id, candidate, others, item=item, preset=preset, scores=scores, models=models)

    def _described(self, action_id: str, candidate: Candidate, others: tuple[str, ...], **content: Any) -> Action:
        kind = "grid" if candidate.kind in ("relabel", "search") else candidate.kind
        source = SOURCES.get((candidate.kind, candidate.reason), candidate.kind)
        line = wording.candidate_line(candidate, self.evidence)
        numbers = (candidate.positives, candidate.decided, candidate.seconds)
        offer = self._ruling_out(candidate.class_id) if candidate.kind == "search" else None
        reason = wording.candidate_reason(candidate, self.evidence)
        words = {"others": others, "ruling_out": offer, "reason": reason}
        return Action(action_id, kind, source, line, *numbers, **words, **content)

    def _ruling_out(self, class_id: int) -> RulingOut | None:
        """Return the offer to rule out a class; None of too few random images, and for whoever may not review."""
        absent = self.evidence.absent.get(class_id, 0)
        if absent < rule_out.ENOUGH or authorization.problem(self.db.sql, Right.REVIEW):
            return None
        open_ = overview.count_unanswered(self.db, class_id)
        return RulingOut(class_id, self.names[class_id], absent, open_, f"{100 * rule_out.at_most(absent):.1f} %")

    def _tiles(
        self,
        class_id: int,
        wanted: Sequence[tuple[int, float | None]],
        *,
        hide_predictions: bool = False,
        others: acquisition.Others | None = None,
    ) -> Grid | None:
        """Lease tiles and return a grid of them; None when no tile is free.

        Args:
            class_id: The class of the grid.
            wanted: The image ids with their probability of the class, None without a model.
            hide_predictions: As in records.WantedGrids.
            others: As in Candidate.
        """
        asked = replace(self.grids, size=len(wanted), hide_predictions=hide_predictions)
        tiles = grid.take_tiles(self.db, asked, class_id, wanted)
        if others:
            tiles = grid.with_others(self.db, asked, class_id, others, tiles)
        behind = {other[0] for tile in tiles for other in tile.others}
        self.out.cells.setdefault(class_id, set()).update(behind, (image_id for image_id, _ in wanted))
        self.images_out.ids.update(behind, (tile.image.id for tile in tiles))
        run = self.snapshot.run.id if self.snapshot and not hide_predictions else None
        return grid.grid_of(class_id, run, tiles) if tiles else None
