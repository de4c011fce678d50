"""The next best action: which grid, image or click brings the most finished labels for a second of a person's time.

One action in BLIND is drawn at random instead of chosen: cells that nobody would have picked keep the estimates honest
(calibration, certificate) and find what the model does not expect. Before there is a model, all are. And where it is
sure of little that is left, a lesson comes first: an image nothing is known of, all of it.
"""

from dataclasses import dataclass, replace
from itertools import count
from time import time_ns

import numpy as np

from annotator.quality import audit
from annotator.queues import annotate, grid
from annotator.queues.annotate import Work, WorkItem, elsewhere, with_surroundings
from annotator.queues.autopilot import acquisition, relabel
from annotator.queues.autopilot.acquisition import LIKELY, Anything, Offer
from annotator.queues.grid import Grid, Out
from annotator.records import Class, Run, WantedActions, WantedGrids
from annotator.snapshot import suggestions
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.snapshot.time_model import Tempo, tempo_of
from annotator.store import answer_times as tempo_store
from annotator.store import cells, classes, images, leases, overview, runs
from annotator.store.database import Database

BLIND = 0.05  # share of the actions that are drawn at random
SEEDS = 20  # images answered whole before the model chooses anything
CLICKS = (0.01, 100)  # then so many, as a share of all and at most, get a single click: the cheapest lesson
LESSONS = (0.05, 500)  # and so many more that nothing is known of are answered whole,
SHARP = 0.3  # while less than this share of what the model expects lies in cells that it is sure of
LONGEST = 30.0  # seconds of such an image; where all its classes would take longer, one of them is named
AUDIT_TILES = 24
TRIED = 200  # images looked at for one that is free and has an open class
WHOLE = 20_000  # decisions among which images are looked for that were answered whole; older lessons are forgotten
LOOKED_AT, BARE = 5000, 64  # images among which some are looked for that nothing is known of, and how many are weighed
IMAGE_SOURCES = {"": "suggestion", "blind": "random", "lesson": "exploration", "rest": "exploration"}  # by Offer.drawn
SOURCES_OF = {"doubt": "relabel"}  # where it is not the name of the kind
GUESSED = 1.5  # labels expected on an image before there is a model

_number = count(time_ns() // 1_000_000)


@dataclass(frozen=True)
class Action:
    """One thing for a person to do, leased to their page.

    kind       grid, audit (a grid that is answered blind), image (every open class of it), click (one class of it)
    source     of the decisions that answer it: records.SOURCES
    line       what it is, what it will bring and how long it takes, in words
    labels     expected new positives; decided: cells settled; seconds: this person's expected time
    preset     image: the classes that start as present
    scores     image and click: what the model says of each open class, to be logged with the answer
    others     what the other kinds would have brought, one line each
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
    others: tuple[str, ...] = ()


def next_actions(db: Database, wanted: WantedActions) -> Work:
    """Up to `want` actions, the best first, each leased to this page, with everything around them."""
    if wanted.instead:
        leases.take_over(db, wanted.holder, wanted.instead)
    leases.hold_cells(db, wanted.holder, wanted.annotator, wanted.have)
    run, counts, every = runs.current_run(db), overview.image_counts(db), classes.all_classes(db)
    found: list[Action] = []
    if wanted.want and every and counts["all"]:
        pilot = _Pilot(db, wanted, every, counts["all"])
        while len(found) < wanted.want and (action := pilot.next()):
            found.append(action)
    empty = "" if found or not wanted.want else _empty(db, wanted, counts, bool(every), run)
    return with_surroundings(db, wanted, found, empty, counts, run, ("certificate", "review", "annotate"))


class _Pilot:
    """Chooses for one request: what it gave counts as out at once."""

    def __init__(self, db: Database, wanted: WantedActions, every: list[Class], all_images: int):
        self.db, self.wanted, self.all_images = db, wanted, all_images
        self.names = {one.id: one.name for one in every}
        self.snapshot: Snapshot | None = read_snapshot(db)
        self.tempo: Tempo = tempo_of(db, wanted.annotator)
        self.grids = WantedGrids(
            wanted.holder, wanted.annotator, None, acquisition.SIZES[-1], wanted.have, 1, wanted.passed
        )
        self.out = Out(self.grids, leases.held(db, wanted.holder))
        self.images_out = {image_id for image_id, _ in (*wanted.have, *wanted.passed)} | self.out.whole
        self.counts = overview.class_counts(db)
        self.answered = sum(map(sum, self.counts.values()))
        self.all_cells = max(1, self.all_images * len(every))
        sources = overview.decisions_by_source(db)
        # Where nothing was to be named, an answer was given, too.
        self.clicked = sum(sources.get(one, 0) for one in ("click", "import", "done"))
        together = tempo_store.answered_together(db, WHOLE)
        # A lesson asks what was still open: an image that grids had ruled some classes out of is one all the same.
        self.whole = sum(2 * many >= len(every) for many, _ in together)
        there = [there for many, there in together if many >= len(every)]
        present = {class_id: count[0] for class_id, count in self.counts.items()}
        self.anything = Anything(len(there), sum(there), present)
        self.chance = np.random.default_rng([self.answered, len(wanted.have), len(wanted.passed)])

    def next(self) -> Action | None:
        """The next action; None when nothing is left that is free."""
        if self.answered < SEEDS * len(self.names):
            return self._blind() or self._best()
        if (kind := self._lesson_that_pays()) and (action := self._lesson(kind)):
            return action
        # A class without a model has to be met by chance: grids cannot find it.
        if self.snapshot is None or self.chance.random() < BLIND:
            return self._blind() or self._best() or self._left_over()
        return self._best() or self._blind() or self._left_over()

    def _lesson_that_pays(self) -> str:
        """Which kind of lesson pays now, a "click" or a whole "image"; "" for none.

        One pays while the model has hardly begun, or is sure of little that is left and may still learn much; clicks
        alone where there are so many classes that a whole image takes long.
        """
        if self.snapshot is None:
            return ""
        if self.clicked < self._share(CLICKS):
            return "click"
        if acquisition.sharpness(self.snapshot) >= SHARP:
            return ""
        if self.tempo.image(len(self.names), GUESSED) > LONGEST:
            return "click" if self.clicked < self._share(LESSONS) else ""
        return "image" if self.whole < self._share(LESSONS) else ""

    def _share(self, of_images: tuple[float, int]) -> float:
        share, most = of_images
        return min(share * self.all_images, most)

    def _best(self) -> Action | None:
        if self.snapshot is None:
            return None
        early = 1 - self.answered / self.all_cells
        found = [
            *acquisition.grids(self.snapshot, self.tempo, self.out, early),
            *relabel.offers(self.db, self.snapshot, self.tempo, self.out),
            *acquisition.images(
                self.db, self.snapshot, self.tempo, self.images_out, early, self._bare(), self.anything
            ),
        ]
        found.sort(key=lambda one: -one.rate)
        for offer in found:
            best = {one.kind: one for one in reversed(found)}
            others = tuple(self._line(one) for kind, one in best.items() if kind != offer.kind)
            if action := self._make(offer, others):
                return action
        return None

    def _bare(self) -> list[int]:
        return cells.bare_images(self.db, self.chance.bytes(8).hex(), LOOKED_AT, BARE)

    def _blind(self) -> Action | None:
        return self._audit() or self._random_image()

    def _audit(self) -> Action | None:
        """Cells of a drawing that wait for an answer, as a grid of one class."""
        waiting: dict[int, list[int]] = {}
        for cell in audit.open_cells(self.db):
            if cell.image_id not in self.out.images(cell.class_id):
                waiting.setdefault(cell.class_id, []).append(cell.image_id)
        for class_id in sorted(waiting, key=lambda one: (-len(waiting[one]), one)):
            wanted = [(image_id, None) for image_id in waiting[class_id][:AUDIT_TILES]]
            made = self._tiles(class_id, wanted, hide_predictions=True)
            if made is None:
                continue
            seconds = self.tempo.grid(len(made.tiles), 1)
            line = f"Audit: which of {len(made.tiles)} random images show '{self.names[class_id]}'? {_seconds(seconds)}"
            return Action(made.id, "audit", "audit", line, 0.0, len(made.tiles), seconds, grid=made)
        return None

    def _random_image(self) -> Action | None:
        for image_id in images.from_place(self.db, self.chance.bytes(8).hex(), TRIED):
            if action := self._whole(image_id):
                return action
        return None

    def _left_over(self) -> Action | None:
        """An image with an open class that no model knows and chance has not met."""
        for class_id, counts in self.counts.items():
            if sum(counts) < self.all_images:
                for image_id in cells.open_images(self.db, class_id, TRIED):
                    if action := self._whole(image_id, "rest"):
                        return action
        return None

    def _whole(self, image_id: int, drawn: str = "blind") -> Action | None:
        """All open classes of an image, with nothing chosen beforehand.

        drawn    "blind": the image was drawn at random; "rest": it is one of the last with an open class
        """
        if image_id in self.images_out or not (chances := self._chances(image_id)):
            return None
        least = 0.0 if self.snapshot else GUESSED
        offer = acquisition.image_offer(image_id, chances, self.tempo, least=least)
        return self._make(replace(offer, drawn=drawn), ())

    def _lesson(self, kind: str) -> Action | None:
        """An image on which nothing is known yet: all its classes, or one click."""
        for image_id in self._bare():
            if image_id not in self.images_out and (chances := self._chances(image_id)):
                least = self.anything.among(chances)
                if kind == "click":
                    offer = acquisition.click_offer(image_id, chances, self.tempo, 0.0, least=least)
                else:
                    offer = acquisition.image_offer(image_id, chances, self.tempo, least=least)
                if action := self._make(replace(offer, drawn="lesson"), ()):
                    self.clicked, self.whole = self.clicked + (kind == "click"), self.whole + (kind == "image")
                    return action
        return None

    def _chances(self, image_id: int) -> dict[int, float]:
        """The open classes of an image, with their probabilities; 0 where there is no model."""
        if self.snapshot and (weighed := list(acquisition.weigh(self.db, self.snapshot, [image_id]))):
            return weighed[0][1]
        answered = cells.answered(self.db, [image_id]).get(image_id, {})
        return {class_id: 0.0 for class_id in self.names if class_id not in answered}

    def _make(self, offer: Offer, others: tuple[str, ...]) -> Action | None:
        """The action of an offer, leased; None when somebody else has it."""
        if offer.kind == "doubt":
            made = self._tiles(offer.class_id, offer.cells, hide_predictions=True)
            if made is None:
                return None
            return self._told(made.id, offer, others, grid=replace(made, start="yes" if offer.start else "no"))
        if offer.kind == "grid":
            made = self._tiles(offer.class_id, offer.cells)
            if made is None:
                return None
            if len(made.tiles) < len(offer.cells):  # somebody was quicker with some of them
                chances = [(tile.image.id, tile.probability or 0.0) for tile in made.tiles]
                offer = acquisition.grid_offer(offer.class_id, chances, self.tempo, 0.0)
            return self._told(made.id, offer, others, grid=made)
        image_id = offer.cells[0][0]
        if not leases.take(self.db, self.wanted.holder, self.wanted.annotator, [image_id], 1):
            return None
        self.images_out.add(image_id)
        self.out.whole.add(image_id)
        chances = self._chances(image_id)
        if not chances or cells.unreadable(self.db, [image_id]):
            return None
        item = annotate.items(self.db, [image_id])[0]
        # What is drawn to keep the estimates honest starts with nothing chosen.
        starts = offer.kind == "image" and offer.drawn not in ("blind", "rest")
        preset = tuple(one for one, chance in chances.items() if starts and chance >= LIKELY)
        scores = tuple((one, round(chance, 4)) for one, chance in chances.items()) if self.snapshot else ()
        name = f"i{image_id}-{next(_number)}"
        return self._told(name, offer, others, item=item, preset=preset, scores=scores)

    def _told(self, name: str, offer: Offer, others: tuple[str, ...], **more) -> Action:
        kind = "grid" if offer.kind == "doubt" else offer.kind
        source = IMAGE_SOURCES[offer.drawn] if offer.kind == "image" else SOURCES_OF.get(offer.kind, offer.kind)
        return Action(
            name, kind, source, self._line(offer), offer.found, offer.decided, offer.seconds, others=others, **more
        )

    def _tiles(
        self, class_id: int, wanted: list[tuple[int, float | None]], *, hide_predictions: bool = False
    ) -> Grid | None:
        """A grid of leased tiles; hide_predictions as in records.WantedGrids."""
        asked = replace(self.grids, size=len(wanted), hide_predictions=hide_predictions)
        tiles = grid.take_tiles(self.db, asked, class_id, wanted)
        self.out.cells.setdefault(class_id, set()).update(image_id for image_id, _ in wanted)
        self.images_out.update(tile.image.id for tile in tiles)
        run = self.snapshot.run.id if self.snapshot and not hide_predictions else None
        return grid.grid_of(class_id, run, tiles) if tiles else None

    def _line(self, offer: Offer) -> str:
        """One line of words."""
        time = _seconds(offer.seconds)
        if offer.kind == "grid":
            name, tiles = self.names[offer.class_id], len(offer.cells)
            if offer.found >= tiles / 2:
                return f"{tiles} likely '{name}': about {offer.found:.0f} to confirm, {time}"
            return f"{tiles} possible '{name}': about {_few(offer.found)} to find, {time}"
        if offer.kind == "doubt":
            name, said = self.names[offer.class_id], "there" if offer.start else "not there"
            return f"{len(offer.cells)} answers to look at again: '{name}' was said to be {said}, {time}"
        asked = "name one class" if offer.kind == "click" else "all its classes"
        if offer.drawn == "lesson":
            return f"One image on which nothing is known yet, for the model to learn from: {asked}, {time}"
        if offer.kind == "click":
            return f"One image on which nothing is known yet: {asked}, {time}"
        if offer.drawn == "rest":
            return f"One of the last images with an open class: {asked}, {time}"
        if offer.drawn:
            return f"One image drawn at random, which keeps the estimates honest: {asked}, {time}"
        return f"One image with probably {_few(offer.found)} more: {asked}, {time}"


def _few(number: float) -> str:
    return f"{number:.0f}" if number >= 1.5 else "1" if number >= 0.75 else "none or 1"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _empty(db: Database, wanted: WantedActions, counts: dict[str, int], has_classes: bool, run: Run | None) -> str:
    if not counts["all"]:
        return f"There are no images yet. Add some: annotator init {db.paths.project} --images FOLDER"
    if not has_classes:
        return "There are no classes yet. Add some on the Settings page."
    if still := leases.held_by_others(db, wanted.holder):
        return f"Nothing is free: {elsewhere(still)}. What is not answered there comes here within three minutes."
    if run is None:
        missing = suggestions.labels_until_first_run(counts["without_decision"], counts["all"])
        if missing:
            return f"No image is left to show here. The model starts when {missing:,} more are labeled."
    return "Every class of every image has been answered. The Certificate page says how sure that is."
