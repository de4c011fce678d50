"""Grids: cells of one class on many images, leased together; and the class whose next grid brings most positives."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from annotator.errors import AnnotatorError
from annotator.queues import annotate, selection
from annotator.queues.annotate import BACK, NOT_ALL, Work, open_on_other_pages, with_surroundings
from annotator.queues.event_tiles import EVEN, EventTiles
from annotator.records import Image, Run, WantedGrids
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored as stored_events
from annotator.store.images import images, selections
from annotator.store.images.stages import LABELED, UNTOUCHED
from annotator.store.labels import auto_accepted, cells
from annotator.store.labels import blind_tallies as apart
from annotator.store.labels import counts as overview
from annotator.store.people import assignment, blindness, leases
from annotator.store.people.assignment import NOTHING, Aside, Taken
from annotator.store.runs import runs
from annotator.store.runs.prediction_evidence import ModelBox, boxes, in_words

DEPTH = 2  # to find the best class, this many grids of tiles are read of every class

_number = count(time.time_ns() // 1_000_000)  # unique also after a restart: pages may still hold older grids


@dataclass(frozen=True)
class Tile:
    """One image of a grid.

    Attributes:
        probability: None without a model.
        state, by: Its answer and who gave it, or None.
        models: What models from elsewhere say of it, (name, score).
        boxes: Where they saw it.
        others: The other images of its event that the tile stands for: id, probability, name (event_tiles.py).
    """

    image: Image
    probability: float | None
    state: int | None
    by: str | None = None
    models: tuple[tuple[str, float], ...] = ()
    boxes: tuple[ModelBox, ...] = ()
    others: tuple[tuple[int, float, str], ...] = ()


@dataclass(frozen=True)
class Grid:
    """Tiles of one class that are answered together.

    Attributes:
        share: Expected fraction of present tiles, by the model; None without a model.
        start: "yes" or "no", whichever is expected to need fewer changes.
        waiting: Of an audit: audited cells of all classes without an answer, this grid's included; else None.
    """

    id: str
    class_id: int
    run_id: int | None
    share: float | None
    start: str
    tiles: list[Tile]
    waiting: int | None = None


@dataclass(frozen=True)
class ClassCount:
    """The numbers of answers to one class.

    likely: positives expected among the unknown cells; None without a model.
    """

    class_id: int
    present: int
    absent: int
    unsure: int
    unknown: int
    likely: float | None


def next_grids(db: Database, wanted: WantedGrids) -> Work:
    """Return up to `want` grids of one class, leased to this page, with what the page shows around them.

    Tiles are unanswered: by falling probability for a class with a model, else in working order. A selection shows its
    answered images, too, after the unanswered ones.

    Raises:
        AnnotatorError: For an unknown class or a selection that was deleted.
    """
    run, counts, class_ids = renew_leases(db, wanted)
    grids: list[Grid] = []
    if wanted.want and class_ids:
        snapshot = read_snapshot(db)
        out = Out.for_request(db, wanted)
        for class_id in _classes_to_try(db, wanted, snapshot, out, class_ids):
            if class_id in out.classes_away:
                continue
            grids = _grids(db, wanted, snapshot, class_id, out)
            if grids:
                break
    empty = "" if grids or not wanted.want else _empty(db, wanted, counts, bool(class_ids), run)
    return with_surroundings(db, wanted, grids, empty, counts, run)


def class_counts(db: Database) -> list[ClassCount]:
    """Return the counts of every class, in the order of the classes."""
    snapshot, answers = read_snapshot(db), overview.class_counts(db)
    all_images = overview.image_counts(db)["all"]
    result = []
    for class_ in classes.all_classes(db):
        present, absent, unsure = answers.get(class_.id, (0, 0, 0))
        likely = _likely(snapshot, class_.id) if snapshot else None
        result.append(ClassCount(class_.id, present, absent, unsure, all_images - present - absent - unsure, likely))
    return result


def _likely(snapshot: Snapshot, class_id: int) -> float | None:
    """Return the number of positives the model expects among the unknown cells of a class.

    None where the class has no model.
    """
    column = snapshot.delta.column(class_id)
    if column is None:
        return None
    return max(0.0, float(snapshot.rankings.expected[column] - snapshot.delta.answered_probability[column]))


def best_class(db: Database, size: int = 24, annotator: str = "") -> int | None:
    """Return the class whose next grid is expected to bring most positives; None without classes.

    Without a model it is the class with fewest answers.
    """
    class_ids = [class_.id for class_ in classes.all_classes(db)]
    wanted = WantedGrids("", annotator, None, size, (), 1)
    out = Out(wanted, leases.leased_by_others(db, ""), assignment.assigned_to_others(db, annotator))
    return next(iter(_best_first(db, wanted, read_snapshot(db), out, class_ids)), None)


def renew_leases(db: Database, wanted: WantedGrids) -> tuple[Run | None, dict[str, int], list[int]]:
    """Renew the leases on what the page has in hand and release its others, whatever it asks for.

    Returns:
        The current run, the counts of overview.image_counts, and the ids of all classes.

    Raises:
        AnnotatorError: For an unknown class.
    """
    if wanted.instead:
        leases.take_over(db, wanted.holder, wanted.instead)
    run, counts = runs.current_run(db), overview.image_counts(db)
    leases.hold_cells(db, wanted.holder, wanted.annotator, wanted.have)
    class_ids = [class_.id for class_ in classes.all_classes(db)]
    if wanted.class_id is not None and wanted.class_id not in class_ids:
        raise AnnotatorError(f"There is no class {wanted.class_id} in this project.")
    return run, counts, class_ids


class Out:
    """The images and cells that a page is not given.

    These are what the page has or has answered, what is leased elsewhere, and what is not assigned to its person.

    Attributes:
        aside, classes_away: Images and classes that are not the person's (store/people/assignment.py).
    """

    def __init__(
        self,
        wanted: WantedGrids,
        held: Collection[tuple[int, int]],
        aside: Aside = NOTHING,
        classes_away: Collection[int] = (),
    ):
        self.aside, self.classes_away = aside, set(classes_away)
        self.whole = {image_id for image_id, class_id in held if not class_id}
        self.cells: dict[int, set[int]] = {}  # class id -> image ids
        for image_id, class_id in (*wanted.have, *wanted.passed, *held):
            self.cells.setdefault(class_id, set()).add(image_id)

    @classmethod
    def for_request(cls, db: Database, wanted: WantedGrids) -> "Out":
        """Return the Out of the page and person of a request."""
        own = assignment.assigned_to_others(db, wanted.annotator), assignment.classes_away(db, wanted.annotator)
        return cls(wanted, leases.leased_by_others(db, wanted.holder), *own)

    def images(self, class_id: int) -> Taken:
        """Return the images whose cell of this class the page is not given."""
        return Taken(self.whole | self.cells.get(class_id, set()), self.aside)


def _classes_to_try(
    db: Database, wanted: WantedGrids, snapshot: Snapshot | None, out: Out, class_ids: list[int]
) -> Iterator[int]:
    """Yield the wanted class alone; without one, the class in hand and then the others, best first."""
    if wanted.class_id is not None:
        yield wanted.class_id
        return
    in_hand = wanted.have[-1][1] if wanted.have else None
    if in_hand in class_ids and in_hand != wanted.but:
        yield in_hand
    for class_id in _best_first(db, wanted, snapshot, out, class_ids):
        if class_id not in (in_hand, wanted.but):
            yield class_id


def _best_first(
    db: Database, wanted: WantedGrids, snapshot: Snapshot | None, out: Out, class_ids: list[int]
) -> list[int]:
    """Return the classes by the positives expected in their next grid, most first.

    Without any model the classes with fewest answers come first.
    """
    finds = {}
    if snapshot and wanted.selection:
        finds = selection.expected_positives(db, snapshot.predictions, wanted.selection, wanted.size, out.aside)
    elif snapshot:
        finds = finds_of(snapshot, out, wanted.size)
    if not finds:
        answers = overview.class_counts(db)
        return sorted(class_ids, key=lambda class_id: (sum(answers.get(class_id, ())), class_id))
    return sorted(class_ids, key=lambda class_id: (-finds.get(class_id, 0.0), class_id))


def finds_of(snapshot: Snapshot, out: Out, size: int) -> dict[int, float]:
    """Return for each class with a model the expected number of positives among its next `size` tiles."""
    rankings, delta, predictions = snapshot.rankings, snapshot.delta, snapshot.predictions
    rows = rankings.by_class[:, : DEPTH * size]
    whole, known = predictions.rows(list(out.whole))
    is_out = np.zeros(len(predictions.image_ids), bool)
    is_out[whole[known]] = True
    is_out |= out.aside.among(predictions.image_ids)
    is_open = (rows >= 0) & ~is_out[rows]
    for column, place in np.argwhere(is_open & delta.changed[rows]).tolist():
        is_open[column, place] = delta.is_open(int(rows[column, place]), column)
    finds = {}
    for column, class_id in enumerate(predictions.class_ids.tolist()):
        if rows[column, 0] < 0 or class_id in out.classes_away:
            continue
        if single := out.cells.get(class_id):
            is_open[column] &= ~np.isin(predictions.image_ids[rows[column]], list(single))
        places = np.flatnonzero(is_open[column])[:size]
        if len(places) == size or rows[column, -1] < 0 or rows.shape[1] == rankings.by_class.shape[1]:
            finds[class_id] = float(rankings.scores[column, places].sum(dtype=np.float64))
        else:
            finds[class_id] = sum(chance for _, chance in islice(ranked(snapshot, column, out.images(class_id)), size))
    return finds


def _grids(db: Database, wanted: WantedGrids, snapshot: Snapshot | None, class_id: int, out: Out) -> list[Grid]:
    column = snapshot.delta.column(class_id) if snapshot else None
    excluded, grouped = out.images(class_id), None
    if wanted.selection:
        predictions = snapshot.predictions if snapshot else None
        source = selection.cells_of(db, predictions, wanted.selection, class_id, excluded)
    elif snapshot and column is not None:
        source = ranked(snapshot, column, excluded)
        if stored_events.are_some(db):
            room = leases.MOST_HELD - len(wanted.have)
            grouped = EventTiles(db, snapshot.predictions, class_id, excluded, room)
            source = grouped.first_of_events(source)
    else:
        source = _unranked(db, class_id, excluded, wanted.size * wanted.want)
    tiles = take_tiles(db, wanted, class_id, source)
    if grouped:
        if grouped.is_full and len(tiles) > wanted.size:  # full grids only, while more images wait
            tiles = tiles[: len(tiles) // wanted.size * wanted.size]
        tiles = with_others(db, wanted, class_id, grouped.others, tiles)
    run_id = snapshot.run.id if snapshot and column is not None else None
    return [
        grid_of(class_id, run_id, tiles[start : start + wanted.size]) for start in range(0, len(tiles), wanted.size)
    ]


def ranked(snapshot: Snapshot, column: int, out: Taken) -> Iterator[tuple[int, float]]:
    """Yield the ids of images with an open cell in a column, with its probability, likeliest first."""
    image_ids, rankings = snapshot.predictions.image_ids, snapshot.rankings
    rows, scores = rankings.by_class[column], rankings.scores[column]
    for start in range(0, len(rows), 512):
        block = rows[start : start + 512]
        changed, aside = snapshot.delta.changed[block], out.aside.among(image_ids[block])
        for place, (row, image_id) in enumerate(zip(block.tolist(), image_ids[block].tolist(), strict=True)):
            if row < 0:
                return
            if (
                not aside[place]
                and image_id not in out.ids
                and not (changed[place] and not snapshot.delta.is_open(row, column))
            ):
                yield image_id, float(scores[start + place])


def _unranked(db: Database, class_id: int, out: Taken, want: int) -> Iterator[tuple[int, None]]:
    """Yield the ids of images with an open cell of a class, in working order, with None as the probability."""
    if out.aside.own is not None:
        yield from ((id_, None) for id_ in cells.open_among(db, class_id, out.aside.own.tolist()) if id_ not in out)
        return
    limit, seen = len(out.ids) + want, set(out.ids)
    least = LABELED if out.aside.holds_untouched else UNTOUCHED
    while True:
        # Each query is read to its end: one left open would keep this connection from writing.
        image_ids = cells.open_images(db, class_id, limit, least)
        yield from ((image_id, None) for image_id in image_ids if image_id not in seen and image_id not in out.aside)
        if len(image_ids) < limit:
            return
        seen.update(image_ids)
        limit *= 2


def take_tiles(
    db: Database, wanted: WantedGrids, class_id: int, source: Iterable[tuple[int, float | None]]
) -> list[Tile]:
    """Lease the first tiles that nobody else has leased, and return them.

    Args:
        db: The project's database.
        wanted: The request of the page, with the size and number of grids.
        class_id: The class of the grid.
        source: Image ids with a probability of the class, None without a model.
    """
    need, tiles, source = wanted.size * wanted.want, [], iter(source)
    with_answered = bool(wanted.selection) or wanted.hide_predictions
    while len(tiles) < need and (probabilities := dict(islice(source, need - len(tiles)))):
        asked = [(image_id, class_id) for image_id in probabilities]
        image_ids = [
            image_id for image_id, _ in leases.take_cells(db, wanted.holder, wanted.annotator, asked, len(asked))
        ]
        # Read after leasing: from now on nobody else can answer them.
        answers = cells.labels_with_annotators(db, [(image_id, class_id) for image_id in image_ids])
        excluded = cells.unreadable(db, image_ids)
        if wanted.selection and not apart.sees_all(db):
            excluded |= blindness.show(db, wanted.annotator, image_ids)
        if not with_answered:
            accepted = auto_accepted.accepted_class_ids(db, image_ids)
            excluded |= {image_id for image_id, class_ids in accepted.items() if class_id in class_ids}
            excluded |= {image_id for image_id, _ in answers}
        records = images.images(db, image_ids)
        models, seen = [()] * len(image_ids), [()] * len(image_ids)
        if not wanted.hide_predictions:
            models = in_words(db, image_ids, [class_id] * len(image_ids))
            seen = boxes(db, image_ids, [class_id] * len(image_ids))
        for image_id, of_others, drawn in zip(image_ids, models, seen, strict=True):
            if image_id not in excluded:
                probability = probabilities[image_id]
                state, by = answers.get((image_id, class_id), (None, None))
                if wanted.hide_predictions:
                    state, by = None, None
                rounded = None if probability is None else round(probability, 4)
                tiles.append(Tile(records[image_id], rounded, state, by, of_others, drawn))
    return tiles


def with_others(
    db: Database,
    wanted: WantedGrids,
    class_id: int,
    others: Mapping[int, Sequence[tuple[int, float | None]]],
    tiles: Sequence[Tile],
) -> list[Tile]:
    """Return the tiles with the other images that they stand for, leased.

    Args:
        db: The project's database.
        wanted: The request of the page.
        class_id: The class of the grid.
        others: As of EventTiles.
        tiles: The tiles, leased.
    """
    asked = [(image_id, class_id) for tile in tiles for image_id, _ in others.get(tile.image.id, ())]
    granted = set(leases.take_cells(db, wanted.holder, wanted.annotator, asked, len(asked)))
    names = images.images(db, [image_id for image_id, _ in granted])
    answered = cells.states(db, class_id, list(names))  # since their events were looked up
    stands_for = {
        first: tuple(
            (image_id, round(chance or 0.0, 4), names[image_id].name)
            for image_id, chance in pairs
            if image_id in names and image_id not in answered
        )
        for first, pairs in others.items()
    }
    return [replace(tile, others=given) if (given := stands_for.get(tile.image.id)) else tile for tile in tiles]


def grid_of(class_id: int, run_id: int | None, tiles: list[Tile]) -> Grid:
    """Return a grid of these tiles, which starts with the answer expected of most of them."""
    chances = [tile.probability for tile in tiles if tile.probability is not None]
    share = sum(chances) / len(chances) if chances else None
    start = "yes" if share is not None and share >= EVEN else "no"
    name = f"g{tiles[0].image.id}-{class_id}-{next(_number)}"
    return Grid(name, class_id, run_id, None if share is None else round(share, 4), start, tiles)


_ALL_SHOWN = "Every image of this selection has been shown."


def _open_elsewhere(db: Database, wanted: WantedGrids) -> int:
    """Return how many of the images that other pages have leased would be tiles here if they were free."""
    leased = leases.leased_by_others(db, wanted.holder)
    ids = {image_id for image_id, class_id in leased if class_id in (0, wanted.class_id)}
    ids -= {image_id for image_id, class_id in wanted.passed if class_id == wanted.class_id}
    aside = assignment.assigned_to_others(db, wanted.annotator)
    ids = {image_id for image_id in ids if image_id not in aside}
    if wanted.selection:
        return len(ids & set(selections.load(db, wanted.selection).tolist()))
    if wanted.class_id is not None:
        ids -= cells.states(db, wanted.class_id, list(ids)).keys()
    return len(ids)


def _empty(db: Database, wanted: WantedGrids, counts: dict[str, int], has_classes: bool, run: Run | None) -> str:
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page."
    if not has_classes:
        return "No classes yet. Add some on the Classes page."
    if wanted.class_id in assignment.classes_away(db, wanted.annotator):
        return "Other people are asked about this class. Choose another class."
    leased = _open_elsewhere(db, wanted)
    come = f"{open_on_other_pages(leased)}. {BACK}"
    if wanted.selection:
        shown = f"Every other image of this selection has been shown. {come}" if leased else _ALL_SHOWN
        return f"{shown} Choose another class, or leave the selection."
    if counts["complete"] == counts["all"]:
        return annotate.COMPLETE
    if leased:
        return f"Nothing else to answer for this class. {come} Another class may have more."
    more = " The next training may bring more." if run else ""
    if assignment.is_limited(db, wanted.annotator):
        more = f" {NOT_ALL}{more}"
    return f"Nothing left to answer for this class.{more} Choose another class."
