"""The choice of Autopilot's next action: what brings most labels and saves most of the closing plan per second.

Single clicks on representative images come first, then also random whole images while the model is unsure. Later
RANDOM_SHARE of the actions and of their seconds are random, which keeps probabilities calibrated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from annotator.quality import audit_sampling
from annotator.queues import query_order
from annotator.queues.autopilot import acquisition, action_texts, complete_project, relabel
from annotator.queues.autopilot.acquisition import Candidate, PositivePrior
from annotator.queues.autopilot.actions import Action, ActionLeaser
from annotator.queues.event_tiles import EventTiles, EventTilesFactory
from annotator.queues.image_queue import LeasedWork, build_work
from annotator.records import Class, WantedActions
from annotator.settings import MIN_IMAGES_FOR_FIRST_RUN
from annotator.snapshot.closing import closing_plan
from annotator.snapshot.closing.account import load_account
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.snapshot.time_model import TimeModel, load_time_model
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.images import images
from annotator.store.images.stages import LABELED, UNTOUCHED
from annotator.store.labels import (
    answer_times,
    auto_accepted,
    image_overlap,
    label_cells,
    prediction_outcomes,
    project_counts,
)
from annotator.store.people import assignment, leases, reference_answers
from annotator.store.relations import declared_relations
from annotator.store.runs import runs
from spmll.query_strategies.representative import REPRESENTATIVE

RANDOM_SHARE = 0.05  # share of the actions that are sampled at random
# images that get a single click first: share of all, least, most
EXPLORATION_CLICK_LIMITS = (0.05, MIN_IMAGES_FOR_FIRST_RUN, 500)
EXPLORATION_ORDER = REPRESENTATIVE.name  # the query order of these images
MAX_EXPLORED_IMAGES = 20  # images without a known positive that are then answered in every class
# from 50 images a class on only 8 of these, as grids then teach absence in less time
MANY_IMAGES_PER_CLASS, MAX_EXPLORED_OF_MANY = (50, 8)
# exploration beyond the least goes on while the model's sharpness (acquisition.sharpness) is below this
MIN_SHARPNESS = 0.3
# seconds of such an image; where all its classes take longer, exploration is by clicks alone
MAX_EXPLORATION_SECONDS = 30.0
READING_SHARE = 0.2  # share of the actions that are blind answers, while there are some
AUDIT_TILES = 24
# actions that a page has at once, as in autopilot.js: each leaves room for the leases of the others
ACTIONS_PER_PAGE = 3
MAX_IMAGES_TRIED = 200  # images tried to find one that is free and has an open class
# decisions read for the newest images that were asked about, and how many count
MAX_ASKED_DECISIONS, MAX_ASKED_IMAGES = (5000, 200)
MAX_EXPLORED_DECISIONS = 20_000  # newest decisions among which images answered in every class are counted
OVERDRAW_FACTOR = 4  # times as many images are read as a grid of random ones takes
# images read to find ones without a known positive, and how many are evaluated
UNLABELED_SAMPLE_IMAGES, MAX_UNLABELED_IMAGES = (5000, 64)
EXPECTED_POSITIVES = 1.5  # of an image, before there is a model


def lease_next_actions(db: Database, wanted: WantedActions) -> LeasedWork:
    """Lease up to `want` actions to this page, best first, and return them with the page's context."""
    if wanted.instead:
        leases.take_over(db, wanted.holder, wanted.instead)
    leases.renew_cells(db, wanted.holder, wanted.annotator, wanted.have)
    run, counts, all_classes = (
        runs.load_current_run(db),
        project_counts.count_images_by_stage(db),
        classes.load_active_classes(db),
    )
    actions: list[Action] = []
    if wanted.want and all_classes and counts["all"]:
        planner = _Planner(db, wanted, all_classes, counts["all"])
        while len(actions) < wanted.want and (action := planner.lease_next()):
            actions.append(action)
    empty = "" if actions or not wanted.want else action_texts.explain_empty(db, wanted, counts, bool(all_classes), run)
    return build_work(db, wanted, actions, empty, counts, run, ("certificate", "review", "annotate"))


class _Planner:
    """The planner that selects the actions of one request."""

    def __init__(self, db: Database, wanted: WantedActions, all_classes: list[Class], image_count: int):
        self.db, self.image_count = db, image_count
        self.class_count, self.tiles = len(all_classes), wanted.tiles
        self.images_to_explore = (
            MAX_EXPLORED_IMAGES
            if image_count < MANY_IMAGES_PER_CLASS * self.class_count
            else min(MAX_EXPLORED_IMAGES, MAX_EXPLORED_OF_MANY)
        )
        self.snapshot: Snapshot | None = read_snapshot(db)
        self.time_model: TimeModel = load_time_model(db, wanted.annotator)
        names = {class_.id: class_.name for class_ in all_classes}
        self.counts, self.account = project_counts.count_labels_by_class(db), load_account(db)
        delta = self.snapshot and self.snapshot.delta
        self.plan = closing_plan.load_plan(db, self.snapshot, self.account, wanted.tiles)
        self.rates = closing_plan.estimate_class_rates(
            self.counts,
            lambda class_id: delta is not None and delta.find_column(class_id) is not None,
            auto_accepted.find_ruled_out_classes(db),
        )
        searched, drawn = prediction_outcomes.count_absent_by_source(db, list(self.rates))
        present = {class_id: count[0] for class_id, count in self.counts.items()}
        self.found_classes = {class_id for class_id, images_present in present.items() if images_present}
        evidence = action_texts.CandidateEvidence(names, self.account, drawn, searched, self.found_classes)
        self.leaser = ActionLeaser(db, wanted, self.snapshot, self.time_model, self.plan, self.rates, evidence)
        # Set for a person with a share of the images: drawing from all images would seldom meet one of theirs.
        self.own_image_ids = self.leaser.unavailable_cells.withheld_images.own
        self.whole_images = not assignment.has_assigned_classes(db, wanted.annotator)
        chosen, self.annotator = image_overlap.load_overlap(db), wanted.annotator
        self.reading_share = 0.0 if chosen is None else 1.0 if chosen.share == 1 else READING_SHARE
        self.known_share = reference_answers.get_share(db)
        if not self.whole_images:
            self.reading_share = self.known_share = 0.0
        self.answered_cells = sum(map(sum, self.counts.values()))
        sources = project_counts.count_decisions_by_source(db)
        # "done" counts as well: an image without anything to name was answered, too.
        self.clicked_images = sum(sources.get(source, 0) for source in ("click", "import", "done"))
        together = answer_times.load_whole_image_answers(db, MAX_EXPLORED_DECISIONS)
        # Exploration asks the open classes: an image counts although grids had ruled out some of its classes before.
        self.explored_images = sum(2 * cells_answered >= self.class_count for cells_answered, _ in together)
        self.prior = PositivePrior(
            answer_times.load_positive_flags(db, self.class_count, MAX_ASKED_DECISIONS, MAX_ASKED_IMAGES), present
        )
        self.is_finished = complete_project.has_no_open_pair(db, wanted.have)
        self.extras = wanted.extras if self.is_finished else complete_project.EXTRA_KINDS
        self.rng = np.random.default_rng([self.answered_cells, len(wanted.have), len(wanted.passed)])

    def lease_next(self) -> Action | None:
        if not self.extras:
            return self._lease_reading()
        if self.known_share and self.rng.random() < self.known_share and (action := self._lease_reference_image()):
            return action
        if self.reading_share and self.rng.random() < self.reading_share and (action := self._lease_reading()):
            return action
        if (kind := self._choose_exploration_kind()) and (action := self._lease_exploration(kind)):
            return action
        if self.snapshot is None:
            return self._lease_audit() or self._lease_random_image() or self._lease_leftover() or self._lease_reading()
        drawn = float(self.rng.random())
        candidates = self._rank_candidates()
        if candidates and drawn < RANDOM_SHARE and (action := self._lease_random(candidates[0].seconds, drawn)):
            return action
        return self._lease_best(candidates) or self._lease_leftover() or self._lease_audit() or self._lease_reading()

    def _lease_reference_image(self) -> Action | None:
        """Lease a reference image (known answers) that this annotator has not answered. It looks like blind work."""
        for image_id in reference_answers.find_next_images(
            self.db, self.annotator, self.leaser.passed, MAX_IMAGES_TRIED
        ):
            if action := self.leaser.lease_reading(image_id, reference_answers.REFERENCE_SOURCE):
                return action
        return None

    def _lease_reading(self) -> Action | None:
        """Lease an image that several annotators answer blind, or return None if none is left."""
        if not self.reading_share:
            return None
        for image_id in image_overlap.find_next_images(self.db, self.annotator, self.leaser.passed, MAX_IMAGES_TRIED):
            if action := self.leaser.lease_reading(image_id):
                return action
        return None

    def _choose_exploration_kind(self) -> str:
        """Return "click" while examples are few, "image" while the model is unsure, else ""."""
        if not self.whole_images:
            return ""
        sharp = (
            self.snapshot is not None
            and self._is_proven
            and acquisition.compute_sharpness(self.snapshot) >= MIN_SHARPNESS
        )
        share, least, most = EXPLORATION_CLICK_LIMITS
        if self.clicked_images < (least if sharp else min(max(share * self.image_count, least), most)):
            return "click"
        if self.snapshot is None or sharp or self.explored_images >= self.images_to_explore:
            return ""
        long = self.time_model.estimate_image_seconds(self.class_count, EXPECTED_POSITIVES) > MAX_EXPLORATION_SECONDS
        return "" if long else "image"

    @cached_property
    def _is_proven(self) -> bool:
        """Return whether the current model was trained on labels, not only on external predictions."""
        run = self.snapshot and self.snapshot.run
        return run is not None and (run.calibration is not None or not runs.load_source_versions(self.db, run.id))

    @cached_property
    def _event_tiles_factory(self) -> EventTilesFactory | None:
        if self.snapshot is None or not stored_events.has_multi_image_events(self.db):
            return None
        predictions = self.snapshot.predictions
        return lambda class_id, out: EventTiles(
            self.db, predictions, class_id, out, leases.MAX_LEASES_PER_PAGE // ACTIONS_PER_PAGE
        )

    @cached_property
    def _implied_counter(self) -> acquisition.ImpliedCounter | None:
        declared = declared_relations.load_relations(self.db)
        if not declared.parents:
            return None

        def count_implied(class_id: int, image_ids: Sequence[int]) -> np.ndarray:
            counts = np.zeros(len(image_ids))
            for above in declared.find_ancestors(class_id):
                counts += np.isin(image_ids, label_cells.filter_open_images(self.db, above, image_ids))
            return counts

        return count_implied

    def _rank_candidates(self) -> list[Candidate]:
        """Rank candidates by value per second."""
        if self.snapshot is None:
            return []
        out, images_out, found = self.leaser.unavailable_cells, self.leaser.unavailable_images, self.found_classes
        of_image = (
            *(images_out, self.plan, self._unlabeled_ids),
            *(self.prior, self.leaser.correct_probabilities, self.leaser.preset_threshold),
        )
        of_search = (self.rates, self._draw_images, self.leaser.evidence.unusual_absent, self.time_model)
        of_grid = (out, self.plan, self.account, self.tiles, self._event_tiles_factory, self._implied_counter)
        candidates = [
            *acquisition.propose_grids(self.snapshot, self.time_model, *of_grid),
            *acquisition.propose_searches(*of_search, self.plan, found, self.tiles),
        ]
        if "relabel" in self.extras:
            of_relabel = (self.snapshot, self.time_model, out, self.account, self.tiles)
            candidates += relabel.propose_grids(self.db, *of_relabel, ask_once=self.is_finished)
        if self.whole_images:
            in_events = stored_events.has_multi_image_events(self.db)
            candidates += acquisition.propose_images(
                self.db, self.snapshot, self.time_model, *of_image, in_events=in_events
            )
        return sorted(candidates, key=lambda candidate: -candidate.value_per_second)

    def _lease_best(self, candidates: Sequence[Candidate]) -> Action | None:
        best = {candidate.kind: candidate for candidate in reversed(candidates)}
        evidence = self.leaser.evidence
        lines = {kind: action_texts.format_candidate_line(best[kind], evidence, "another image") for kind in best}
        for candidate in candidates:
            others = tuple(line for kind, line in lines.items() if kind != candidate.kind)
            if action := self.leaser.lease_action(candidate, others):
                return action
        return None

    def _draw_images(self, class_id: int, max_images: int, is_random: bool) -> list[int]:
        """Return free images on which a class is unanswered: random, or unusual first."""
        if class_id in self.leaser.unavailable_cells.withheld_classes:
            return []
        taken, found = self.leaser.unavailable_cells.get_unavailable_images(class_id), []
        looked_at = max(MAX_IMAGES_TRIED, OVERDRAW_FACTOR * max_images)
        if not is_random:
            ordered = query_order.load(self.db, query_order.SEARCH_ORDER)
            if self.own_image_ids is not None:
                ordered = ordered[np.isin(ordered, self.own_image_ids)]
            for start in range(0, len(ordered), looked_at):
                some = label_cells.filter_open_images(self.db, class_id, ordered[start : start + looked_at].tolist())
                found += [image_id for image_id in some if image_id not in taken]
                if len(found) >= max_images:
                    return found[:max_images]
        drawn = self._draw_own_images(looked_at) if self.own_image_ids is not None else None
        drawn = drawn or images.load_ids_from_hash(self.db, self.rng.bytes(8).hex(), looked_at)
        some = label_cells.filter_open_images(self.db, class_id, drawn)
        return [*found, *(image_id for image_id in some if image_id not in taken and image_id not in found)][
            :max_images
        ]

    @cached_property
    def _unlabeled_ids(self) -> list[int]:
        """Return images without a known positive, drawn once per request."""
        if self.own_image_ids is not None:
            return label_cells.filter_without_positive(
                self.db, self._draw_own_images(UNLABELED_SAMPLE_IMAGES), MAX_UNLABELED_IMAGES
            )
        return label_cells.find_unlabeled_images(
            self.db, self.rng.bytes(8).hex(), UNLABELED_SAMPLE_IMAGES, MAX_UNLABELED_IMAGES
        )

    def _find_representative_images(self) -> list[int]:
        ordered = query_order.load(self.db, EXPLORATION_ORDER)
        if self.own_image_ids is not None:
            ordered = ordered[np.isin(ordered, self.own_image_ids)]
        return label_cells.filter_without_positive(
            self.db, ordered[:UNLABELED_SAMPLE_IMAGES].tolist(), MAX_UNLABELED_IMAGES
        )

    def _draw_own_images(self, max_images: int) -> list[int]:
        assert self.own_image_ids is not None
        return self.rng.permutation(self.own_image_ids)[:max_images].tolist()

    def _lease_random(self, best_seconds: float, drawn: float) -> Action | None:
        """Lease an open audit, or else random cells in the cheaper form: a grid of one class, or a whole image.

        `drawn`, uniform below RANDOM_SHARE, leaves out actions longer than the best one, so that both shares hold.
        """
        if action := self._lease_audit():
            return action
        grid, image_seconds = self._draw_random_grid(), 0.0
        if self.whole_images:
            open_classes = max(1.0, self.plan.open_share * self.class_count)
            image_seconds = self.time_model.estimate_image_seconds(round(open_classes), EXPECTED_POSITIVES)
            if grid is None and open_classes < 2:  # the last cells come soon anyway
                return None
            if grid is None or image_seconds / open_classes < grid.seconds / len(grid.cells):
                return self._lease_random_image() if drawn * image_seconds < RANDOM_SHARE * best_seconds else None
        if grid is None or drawn * grid.seconds >= RANDOM_SHARE * best_seconds:
            return None
        return self.leaser.lease_action(grid)

    def _draw_random_grid(self) -> Candidate | None:
        """Return a grid of random open cells of one class, which is drawn by its number of open cells, or None."""
        if not self.plan.cells:
            return None
        class_id = int(self.rng.choice(self.plan.class_ids, p=self.plan.open_cells / self.plan.cells))
        tiles = AUDIT_TILES if self.tiles is None else min(AUDIT_TILES, self.tiles)
        drawn = self._draw_images(class_id, tiles, True)
        return self._build_search(class_id, drawn, "random") if len(drawn) == tiles else None

    def _build_search(self, class_id: int, image_ids: Sequence[int], reason: str) -> Candidate:
        place = self.plan.class_ids.tolist().index(class_id)
        rate = float(self.plan.positives[place] / max(1, self.plan.open_cells[place]))
        of_class = (self.time_model, self.plan)
        candidate = acquisition.build_search_candidate(
            class_id, image_ids, rate, *of_class, is_found=class_id in self.found_classes
        )
        return replace(candidate, reason=reason)

    def _lease_audit(self) -> Action | None:
        if "audit" not in self.extras:
            return None
        waiting: dict[int, list[int]] = {}
        for cell in audit_sampling.load_open_cells_for(self.db, self.annotator):
            if cell.image_id not in self.leaser.unavailable_cells.get_unavailable_images(cell.class_id):
                waiting.setdefault(cell.class_id, []).append(cell.image_id)
        for class_id in sorted(waiting, key=lambda class_id: (-len(waiting[class_id]), class_id)):
            tiles = AUDIT_TILES if self.tiles is None else min(AUDIT_TILES, self.tiles)
            if action := self.leaser.lease_audit(class_id, waiting[class_id][:tiles]):
                return action
        return None

    def _lease_random_image(self) -> Action | None:
        drawn = self._draw_own_images(MAX_IMAGES_TRIED) if self.own_image_ids is not None else None
        for image_id in drawn or images.load_ids_from_hash(self.db, self.rng.bytes(8).hex(), MAX_IMAGES_TRIED):
            if action := self._lease_whole_image(image_id, "random"):
                return action
        return None

    def _lease_leftover(self) -> Action | None:
        """Lease cells that no model ranks: a grid of the class with most of them, or an image that closes as many."""
        for place in np.argsort(-self.plan.open_cells, kind="stable").tolist():
            class_id = int(self.plan.class_ids[place])
            if not self.plan.open_cells[place] or class_id in self.leaser.unavailable_cells.withheld_classes:
                continue
            taken = self.leaser.unavailable_cells.get_unavailable_images(class_id)
            free = [image_id for image_id in self._find_open_images(class_id) if image_id not in taken]
            largest = max(acquisition.choose_sizes(self.tiles))
            if len(free) > 1 and (
                action := self.leaser.lease_action(self._build_search(class_id, free[:largest], "leftover"))
            ):
                return action
            for image_id in free:
                if action := self._lease_whole_image(image_id, "leftover"):
                    return action
        return None

    def _find_open_images(self, class_id: int) -> list[int]:
        if self.own_image_ids is not None:
            return label_cells.filter_open_images(self.db, class_id, self.own_image_ids.tolist())[:MAX_IMAGES_TRIED]
        least = LABELED if self.leaser.unavailable_cells.withheld_images.holds_untouched else UNTOUCHED
        return label_cells.find_open_images(self.db, class_id, MAX_IMAGES_TRIED, least)

    def _lease_whole_image(self, image_id: int, reason: str) -> Action | None:
        """Lease all unanswered classes of an image, none preset, or return None if it is not free."""
        if not self.whole_images or image_id in self.leaser.unavailable_images:
            return None
        if not (open_classes := self.leaser.load_open_classes(image_id)):
            return None
        least = 0.0 if self.snapshot else EXPECTED_POSITIVES
        of_image = (image_id, open_classes, self.time_model, self.plan)
        candidate = acquisition.build_image_candidate(*of_image, min_positives=least)
        return self.leaser.lease_action(replace(candidate, reason=reason))

    def _iterate_unexplored(self, kind: str) -> Iterator[int]:
        if kind == "click":
            yield from self._find_representative_images()
        yield from self._unlabeled_ids

    def _lease_exploration(self, kind: str) -> Action | None:
        """Lease an image without a known positive: a representative one for a "click", a random one for an "image"."""
        for image_id in self._iterate_unexplored(kind):
            if image_id in self.leaser.unavailable_images or not (
                open_classes := self.leaser.load_open_classes(image_id)
            ):
                continue
            least = self.prior.compute_any_probability(open_classes) if self.snapshot else 1.0
            if kind == "click":
                candidate = acquisition.build_click_candidate(
                    image_id, open_classes, self.time_model, self.plan, min_positives=least
                )
            else:
                more = {"min_positives": least, "preset_threshold": self.leaser.preset_threshold}
                candidate = acquisition.build_image_candidate(
                    image_id, open_classes, self.time_model, self.plan, **more
                )
            if action := self.leaser.lease_action(replace(candidate, reason="exploration")):
                self.clicked_images, self.explored_images = (
                    self.clicked_images + (kind == "click"),
                    self.explored_images + (kind == "image"),
                )
                return action
        return None
