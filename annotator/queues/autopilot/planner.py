"""The next best action: the grid, image or click that finishes most labels per second of this annotator.

It begins with single clicks on images that represent many others, at least as many as the first training needs: a
label takes one press and a few seconds that way, and there is a model after a minute. While that model is sure of few
of the positives it expects, exploration comes first: more such clicks, then a few random images without a known
positive, answered in every class. After that a fraction RANDOM_SHARE of the actions is sampled at random: these
answers keep probabilities calibrated, answers to audits support the certificate, and both find what the model does not
expect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from annotator.quality import audit
from annotator.queues import query_order
from annotator.queues.annotate import Work, with_surroundings
from annotator.queues.autopilot import acquisition, finishing, relabel, wording
from annotator.queues.autopilot.account import account_of
from annotator.queues.autopilot.acquisition import Candidate, PositivePrior
from annotator.queues.autopilot.actions import Action, Leasing
from annotator.queues.event_tiles import EventTiles, EventTilesOf
from annotator.records import Class, WantedActions
from annotator.settings import FIRST_RUN_AT
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.snapshot.time_model import TimeModel, time_model_of
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored as stored_events
from annotator.store.images import images
from annotator.store.images.stages import LABELED, UNTOUCHED
from annotator.store.labels import answer_times, auto_accepted, cells, promises
from annotator.store.labels import counts as overview
from annotator.store.labels import overlap as readings
from annotator.store.people import assignment, known_answers, leases
from annotator.store.relations import relations
from annotator.store.runs import runs
from models.query_strategies.representative import REPRESENTATIVE

RANDOM_SHARE = 0.05  # share of the actions that are sampled at random
EXPLORATION_CLICKS = (0.05, FIRST_RUN_AT, 500)  # images that get a single click first: share of all, least, most
CLICKED_FIRST = REPRESENTATIVE.name  # the query order of these images
EXPLORED = 20  # images without a known positive that are then answered in every class
MANY, EXPLORED_OF_MANY = 50, 8  # from 50 images a class on only 8 of these, as grids then teach absence in less time
SHARP = 0.3  # exploration beyond the least goes on while the model's sharpness (acquisition.sharpness) is below this
LONGEST = 30.0  # seconds of such an image; where all its classes take longer, exploration is by clicks alone
YIELDS, YIELDS_AMONG = 100, 5000  # actions whose yield is held against what was promised, and decisions read for them
KEEPS = 0.95  # of the positives a second that the best kind of action keeps, Autopilot brings at least
READING_SHARE = 0.2  # share of the actions that are blind answers, while there are some
AUDIT_TILES = 24
IN_HAND = 3  # actions that a page has at once, as in autopilot.js: each leaves room for the leases of the others
IMAGES_TRIED = 200  # images tried to find one that is free and has an open class
ASKED_AMONG, ASKED = 5000, 200  # decisions read for the newest images that were asked about, and how many count
EXPLORED_AMONG = 20_000  # newest decisions among which images answered in every class are counted
DRAWN_OF = 4  # times as many images are read as a grid of random ones takes
UNLABELED_AMONG, UNLABELED = 5000, 64  # images read to find ones without a known positive, and how many are evaluated
EXPECTED_POSITIVES = 1.5  # of an image, before there is a model


def next_actions(db: Database, wanted: WantedActions) -> Work:
    """Return up to `want` actions, the best first, each leased to this page, with what the page shows around them."""
    if wanted.instead:
        leases.take_over(db, wanted.holder, wanted.instead)
    leases.hold_cells(db, wanted.holder, wanted.annotator, wanted.have)
    run, counts, all_classes = runs.current_run(db), overview.image_counts(db), classes.all_classes(db)
    actions: list[Action] = []
    if wanted.want and all_classes and counts["all"]:
        planner = _Planner(db, wanted, all_classes, counts["all"])
        while len(actions) < wanted.want and (action := planner.next()):
            actions.append(action)
    empty = "" if actions or not wanted.want else wording.empty(db, wanted, counts, bool(all_classes), run)
    return with_surroundings(db, wanted, actions, empty, counts, run, ("certificate", "review", "annotate"))


class _Planner:
    """The chooser of the actions of one request."""

    def __init__(self, db: Database, wanted: WantedActions, all_classes: list[Class], image_count: int):
        self.db, self.image_count = db, image_count
        self.class_count, self.tiles = len(all_classes), wanted.tiles
        self.to_explore = EXPLORED if image_count < MANY * self.class_count else min(EXPLORED, EXPLORED_OF_MANY)
        self.snapshot: Snapshot | None = read_snapshot(db)
        self.time_model: TimeModel = time_model_of(db, wanted.annotator)
        names = {class_.id: class_.name for class_ in all_classes}
        self.counts, self.account = overview.class_counts(db), account_of(db)
        delta = self.snapshot and self.snapshot.delta
        self.rates = acquisition.unseen_rates(
            self.counts,
            lambda class_id: delta is not None and delta.column(class_id) is not None,
            auto_accepted.ruled_out(db),
        )
        searched, drawn = promises.absent_by_source(db, list(self.rates))
        evidence = wording.Evidence(names, self.account, drawn, searched)
        self.leasing = Leasing(db, wanted, self.snapshot, self.time_model, self.rates, evidence)
        # Set for a person with a share of the images: drawing from all images would seldom meet one of theirs.
        self.own = self.leasing.out.aside.own
        self.whole_images = not assignment.has_classes(db, wanted.annotator)
        chosen, self.annotator = readings.overlap(db), wanted.annotator
        self.reading_share = 0.0 if chosen is None else 1.0 if chosen.share == 1 else READING_SHARE
        self.known_share = known_answers.share(db)
        if not self.whole_images:
            self.reading_share = self.known_share = 0.0
        self.answered = sum(map(sum, self.counts.values()))
        sources = overview.decisions_by_source(db)
        # "done" counts as well: an image without anything to name was answered, too.
        self.clicked = sum(sources.get(source, 0) for source in ("click", "import", "done"))
        together = answer_times.image_answers(db, EXPLORED_AMONG)
        # Exploration asks the open classes: an image counts although grids had ruled out some of its classes before.
        self.explored = sum(2 * cells_answered >= self.class_count for cells_answered, _ in together)
        present = {class_id: count[0] for class_id, count in self.counts.items()}
        self.prior = PositivePrior(answer_times.had_positive(db, self.class_count, ASKED_AMONG, ASKED), present)
        self.is_behind = False
        self.is_finished = finishing.nothing_open(db, wanted.have)
        self.extras = wanted.extras if self.is_finished else finishing.EXTRAS
        self.rng = np.random.default_rng([self.answered, len(wanted.have), len(wanted.passed)])

    def next(self) -> Action | None:
        """Return the next action; None when nothing is free, or all that is left is offered (finishing.py)."""
        if not self.extras:
            return self._reading()
        if self.known_share and self.rng.random() < self.known_share and (action := self._known()):
            return action
        if self.reading_share and self.rng.random() < self.reading_share and (action := self._reading()):
            return action
        if (kind := self._exploration_kind()) and (action := self._explore(kind)):
            return action
        drawn = float(self.rng.random())
        candidates = self._candidates()
        if self._is_random(candidates, drawn):
            return self._unbiased() or self._best(candidates) or self._leftover() or self._reading()
        return self._best(candidates) or self._unbiased() or self._leftover() or self._reading()

    def _is_random(self, candidates: Sequence[Candidate], drawn: float) -> bool:
        """Return whether the next action is sampled at random: at most RANDOM_SHARE of the actions and of the time.

        Args:
            candidates: All that are not, the best first.
            drawn: A random number in [0, 1).
        """
        if self.snapshot is None or not candidates:
            return True
        if self.is_behind:
            return False
        of_time = candidates[0].seconds / max(self.time_model.image(self.class_count, 0.0), 1e-9)
        return drawn < RANDOM_SHARE * min(1.0, of_time)

    def _known(self) -> Action | None:
        """Return an image with known answers that this person has not answered; it looks like a blind answer."""
        for image_id in known_answers.next_for(self.db, self.annotator, self.leasing.passed, IMAGES_TRIED):
            if action := self.leasing.reading(image_id, known_answers.SOURCE):
                return action
        return None

    def _reading(self) -> Action | None:
        """Return an image that several people answer, blind to each other; None when this person has none left."""
        if not self.reading_share:
            return None
        for image_id in readings.next_for(self.db, self.annotator, self.leasing.passed, IMAGES_TRIED):
            if action := self.leasing.reading(image_id):
                return action
        return None

    def _exploration_kind(self) -> str:
        """Return how to explore: "click", "image" (all its classes), or "" for not at all.

        Exploration pays while the model has few examples, or while its sharpness is low. Clicks come first: a second
        of a person brings most labels that way. All exploration is by clicks where a whole image takes longer than
        LONGEST. What predictions of other models say counts as sharp only once answers have calibrated it.
        """
        if not self.whole_images:
            return ""
        sharp = self.snapshot is not None and self._is_proven and acquisition.sharpness(self.snapshot) >= SHARP
        share, least, most = EXPLORATION_CLICKS
        if self.clicked < (least if sharp else min(max(share * self.image_count, least), most)):
            return "click"
        if self.snapshot is None or sharp or self.explored >= self.to_explore:
            return ""
        long = self.time_model.image(self.class_count, EXPECTED_POSITIVES) > LONGEST
        return "" if long else "image"

    @cached_property
    def _is_proven(self) -> bool:
        """Return whether the current run rests on people's answers, and not on the word of other models alone."""
        run = self.snapshot and self.snapshot.run
        return run is not None and (run.calibration is not None or not runs.sources_of(self.db, run.id))

    @cached_property
    def _event_tiles(self) -> EventTilesOf | None:
        """Return how tiles stand for events; None in a project without events."""
        if self.snapshot is None or not stored_events.are_some(self.db):
            return None
        predictions = self.snapshot.predictions
        return lambda class_id, out: EventTiles(self.db, predictions, class_id, out, leases.MOST_HELD // IN_HAND)

    @cached_property
    def _implied(self) -> acquisition.Implied | None:
        """Return how many open classes a positive settles beside its own; None in a project without "is a kind of"."""
        declared = relations.relations(self.db)
        if not declared.parents:
            return None

        def implied(class_id: int, image_ids: Sequence[int]) -> np.ndarray:
            counts = np.zeros(len(image_ids))
            for above in declared.ancestors(class_id):
                counts += np.isin(image_ids, cells.open_among(self.db, above, image_ids))
            return counts

        return implied

    @cached_property
    def _realised(self) -> float | None:
        """Return the positives a second that this person's last YIELDS actions brought; None of too few of them."""
        found, seconds, actions = answer_times.recent_yield(self.db, self.annotator, YIELDS_AMONG, YIELDS)
        return None if actions < YIELDS or not seconds else found / seconds

    def _candidates(self) -> list[Candidate]:
        """Return all candidates, the highest acquisition value per second first; none without a model.

        A guarantee: where the last YIELDS actions brought over 5 % less a second than the best candidate is worth by
        what its kind has kept so far, the most positives a second come first, and nothing is drawn at random.
        """
        if self.snapshot is None:
            return []
        open_share = 1 - self.answered / max(1, self.image_count * self.class_count)
        out, images_out = self.leasing.out, self.leasing.images_out
        of_image = (
            images_out,
            open_share,
            self._unlabeled,
            self.prior,
            self.leasing.worth,
            self.leasing.guessed_from,
        )
        answers = {class_id: sum(counts) for class_id, counts in self.counts.items()}
        of_search = (self.rates, self._drawn, self.leasing.evidence.searched)
        of_grid = (out, open_share, answers, self.account, self.tiles, self._event_tiles, self._implied)
        candidates = [
            *acquisition.grid_candidates(self.snapshot, self.time_model, *of_grid),
            *acquisition.search_candidates(*of_search, self.time_model, answers, self.tiles),
        ]
        if "relabel" in self.extras:
            of_relabel = (self.snapshot, self.time_model, out, self.account, self.tiles)
            candidates += relabel.candidates(self.db, *of_relabel, once=self.is_finished)
        if self.whole_images:
            in_events = stored_events.are_some(self.db)
            candidates += acquisition.image_candidates(
                self.db, self.snapshot, self.time_model, *of_image, in_events=in_events
            )
        best_rate = max((candidate.positives_per_second for candidate in candidates), default=0.0)
        self.is_behind = self._realised is not None and self._realised < KEEPS * best_rate
        if self.is_behind:
            return sorted(candidates, key=lambda candidate: -candidate.positives_per_second)
        return sorted(candidates, key=lambda candidate: -candidate.value_per_second)

    def _best(self, candidates: Sequence[Candidate]) -> Action | None:
        """Return the action of the first candidate that is free; None without one."""
        best = {candidate.kind: candidate for candidate in reversed(candidates)}
        evidence = self.leasing.evidence
        lines = {kind: wording.candidate_line(best[kind], evidence, "another image") for kind in best}
        for candidate in candidates:
            others = tuple(line for kind, line in lines.items() if kind != candidate.kind)
            if action := self.leasing.action(candidate, others):
                return action
        return None

    def _drawn(self, class_id: int, most: int, is_random: bool) -> list[int]:
        """Return up to `most` images whose cell of a class is open and free: random ones, or unusual ones first."""
        if class_id in self.leasing.out.classes_away:
            return []
        taken, found = self.leasing.out.images(class_id), []
        looked_at = max(IMAGES_TRIED, DRAWN_OF * most)
        if not is_random:
            ordered = query_order.load(self.db, query_order.SEARCH)
            if self.own is not None:
                ordered = ordered[np.isin(ordered, self.own)]
            for start in range(0, len(ordered), looked_at):
                some = cells.open_among(self.db, class_id, ordered[start : start + looked_at].tolist())
                found += [image_id for image_id in some if image_id not in taken]
                if len(found) >= most:
                    return found[:most]
        drawn = self._drawn_of_own(looked_at) if self.own is not None else None
        drawn = drawn or images.from_place(self.db, self.rng.bytes(8).hex(), looked_at)
        some = cells.open_among(self.db, class_id, drawn)
        return [*found, *(image_id for image_id in some if image_id not in taken and image_id not in found)][:most]

    @cached_property
    def _unlabeled(self) -> list[int]:
        """Return images without a known positive, drawn once for all actions of the request."""
        if self.own is not None:
            return cells.without_positive(self.db, self._drawn_of_own(UNLABELED_AMONG), UNLABELED)
        return cells.unlabeled_images(self.db, self.rng.bytes(8).hex(), UNLABELED_AMONG, UNLABELED)

    def _clicked_first(self) -> list[int]:
        ordered = query_order.load(self.db, CLICKED_FIRST)
        if self.own is not None:
            ordered = ordered[np.isin(ordered, self.own)]
        return cells.without_positive(self.db, ordered[:UNLABELED_AMONG].tolist(), UNLABELED)

    def _drawn_of_own(self, most: int) -> list[int]:
        assert self.own is not None
        return self.rng.permutation(self.own)[:most].tolist()

    def _unbiased(self) -> Action | None:
        return self._audit() or self._random_image()

    def _audit(self) -> Action | None:
        """Return a grid of open audit cells of one class, the class with most of them first; None when none is free."""
        if "audit" not in self.extras:
            return None
        waiting: dict[int, list[int]] = {}
        for cell in audit.open_cells(self.db):
            if cell.image_id not in self.leasing.out.images(cell.class_id):
                waiting.setdefault(cell.class_id, []).append(cell.image_id)
        for class_id in sorted(waiting, key=lambda class_id: (-len(waiting[class_id]), class_id)):
            tiles = AUDIT_TILES if self.tiles is None else min(AUDIT_TILES, self.tiles)
            if action := self.leasing.audit(class_id, waiting[class_id][:tiles]):
                return action
        return None

    def _random_image(self) -> Action | None:
        drawn = self._drawn_of_own(IMAGES_TRIED) if self.own is not None else None
        for image_id in drawn or images.from_place(self.db, self.rng.bytes(8).hex(), IMAGES_TRIED):
            if action := self._whole_image(image_id, "random"):
                return action
        return None

    def _leftover(self) -> Action | None:
        """Return an image with an open class that no model knows and no random image has covered; None without one."""
        for class_id, counts in self.counts.items():
            if sum(counts) < self.image_count:
                for image_id in self._open_images(class_id):
                    if action := self._whole_image(image_id, "leftover"):
                        return action
        return None

    def _open_images(self, class_id: int) -> list[int]:
        if self.own is not None:
            return cells.open_among(self.db, class_id, self.own.tolist())[:IMAGES_TRIED]
        least = LABELED if self.leasing.out.aside.holds_untouched else UNTOUCHED
        return cells.open_images(self.db, class_id, IMAGES_TRIED, least)

    def _whole_image(self, image_id: int, reason: str) -> Action | None:
        """Return the action of answering all open classes of an image, none preset; None when it is not free.

        Args:
            image_id: The id of the image.
            reason: As in Candidate.
        """
        if not self.whole_images or image_id in self.leasing.images_out:
            return None
        if not (open_classes := self.leasing.open_classes(image_id)):
            return None
        least = 0.0 if self.snapshot else EXPECTED_POSITIVES
        candidate = acquisition.image_candidate(image_id, open_classes, self.time_model, least=least)
        return self.leasing.action(replace(candidate, reason=reason))

    def _to_explore(self, kind: str) -> Iterator[int]:
        if kind == "click":
            yield from self._clicked_first()
        yield from self._unlabeled

    def _explore(self, kind: str) -> Action | None:
        """Return an image without a known positive to explore; None when none is free.

        "click": one click on the most representative image; "image": all classes of a random one.
        """
        for image_id in self._to_explore(kind):
            if image_id in self.leasing.images_out or not (open_classes := self.leasing.open_classes(image_id)):
                continue
            least = self.prior.any_of(open_classes) if self.snapshot else 1.0
            if kind == "click":
                candidate = acquisition.click_candidate(image_id, open_classes, self.time_model, 0.0, least=least)
            else:
                more = {"least": least, "guessed_from": self.leasing.guessed_from}
                candidate = acquisition.image_candidate(image_id, open_classes, self.time_model, **more)
            if action := self.leasing.action(replace(candidate, reason="exploration")):
                self.clicked, self.explored = self.clicked + (kind == "click"), self.explored + (kind == "image")
                return action
        return None
