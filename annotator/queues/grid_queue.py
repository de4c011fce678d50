"""Grids: cells of one class on many images, leased (reserved for one page) together."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from annotator.errors import AnnotatorError
from annotator.queues import image_queue, selection_cells
from annotator.queues.event_tiles import EVEN_PROBABILITY, EventTiles
from annotator.queues.image_queue import (
    COMING_BACK_MESSAGE,
    LIMITED_MESSAGE,
    LeasedWork,
    build_work,
    describe_open_elsewhere,
)
from annotator.records import Image, Run, WantedGrids
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.images import images, selections
from annotator.store.images.stages import LABELED, UNTOUCHED
from annotator.store.labels import auto_accepted, blind_visibility, label_cells, project_counts
from annotator.store.people import assignment, blindness, leases
from annotator.store.people.assignment import NOTHING_WITHHELD, UnavailableImages, WithheldImages
from annotator.store.runs import runs
from annotator.store.runs.prediction_evidence import ModelBox, load_cell_boxes, load_score_texts

GRIDS_READ_PER_CLASS = 2  # to find the best class, this many grids of tiles are read of every class

_grid_numbers = count(time.time_ns() // 1_000_000)  # unique also after a restart: pages may still hold older grids


@dataclass(frozen=True)
class Tile:
    """One image of a grid."""

    image: Image
    # None without a model
    probability: float | None
    # state, annotator: its label, None if unanswered
    state: int | None
    annotator: str | None = None
    # (name, score) of external predictions
    models: tuple[tuple[str, float], ...] = ()
    boxes: tuple[ModelBox, ...] = ()
    # (id, probability, name) of event images the tile stands for
    others: tuple[tuple[int, float, str], ...] = ()


@dataclass(frozen=True)
class Grid:
    """Tiles of one class that are answered together."""

    id: str
    class_id: int
    run_id: int | None
    # expected fraction of present tiles
    expected_share: float | None
    # initial answer of all tiles, "yes" or "no", for fewest changes
    start: str
    tiles: list[Tile]
    # unanswered audit cells, None outside audits
    waiting: int | None = None


@dataclass(frozen=True)
class ClassCount:
    """The number of answers to one class by state. `expected_positives` are those among its unanswered cells."""

    class_id: int
    present: int
    absent: int
    unsure: int
    unknown: int
    expected_positives: float | None


def lease_next_grids(db: Database, wanted: WantedGrids) -> LeasedWork:
    """Lease up to `want` grids of one class, and return them with the page's context.

    Unanswered tiles come most probable first, or in working order without a model, answered ones of selections last.
    Raises AnnotatorError for an unknown class or a deleted selection.
    """
    run, counts, class_ids = renew_leases(db, wanted)
    grids: list[Grid] = []
    if wanted.want and class_ids:
        snapshot = read_snapshot(db)
        out = UnavailableCells.for_request(db, wanted)
        for class_id in _iterate_classes(db, wanted, snapshot, out, class_ids):
            if class_id in out.withheld_classes:
                continue
            grids = _lease_grids(db, wanted, snapshot, class_id, out)
            if grids:
                break
    empty = "" if grids or not wanted.want else _explain_empty(db, wanted, counts, bool(class_ids), run)
    return build_work(db, wanted, grids, empty, counts, run)


def load_class_counts(db: Database) -> list[ClassCount]:
    snapshot, answers = read_snapshot(db), project_counts.count_labels_by_class(db)
    all_images = project_counts.count_images_by_stage(db)["all"]
    result = []
    for class_ in classes.load_active_classes(db):
        present, absent, unsure = answers.get(class_.id, (0, 0, 0))
        likely = _estimate_open_positives(snapshot, class_.id) if snapshot else None
        result.append(ClassCount(class_.id, present, absent, unsure, all_images - present - absent - unsure, likely))
    return result


def _estimate_open_positives(snapshot: Snapshot, class_id: int) -> float | None:
    column = snapshot.delta.find_column(class_id)
    if column is None:
        return None
    return max(0.0, float(snapshot.rankings.expected[column] - snapshot.delta.answered_probability[column]))


def find_best_class(db: Database, size: int = 24, annotator: str = "") -> int | None:
    """Return the class with most expected positives in its next grid, or without a model with fewest answers."""
    class_ids = [class_.id for class_ in classes.load_active_classes(db)]
    wanted = WantedGrids("", annotator, None, size, (), 1)
    out = UnavailableCells(wanted, leases.load_leases_of_others(db, ""), assignment.load_withheld_images(db, annotator))
    return next(iter(_rank_classes(db, wanted, read_snapshot(db), out, class_ids)), None)


def renew_leases(db: Database, wanted: WantedGrids) -> tuple[Run | None, dict[str, int], list[int]]:
    """Renew the leases of the page's current work, release its others, and check its class.

    Returns the current model, the number of images by stage, and all class ids. Raises AnnotatorError for an unknown
    class.
    """
    if wanted.instead:
        leases.take_over(db, wanted.holder, wanted.instead)
    run, counts = runs.load_current_run(db), project_counts.count_images_by_stage(db)
    leases.renew_cells(db, wanted.holder, wanted.annotator, wanted.have)
    class_ids = [class_.id for class_ in classes.load_active_classes(db)]
    if wanted.class_id is not None and wanted.class_id not in class_ids:
        raise AnnotatorError(f"There is no class {wanted.class_id} in this project.")
    return run, counts, class_ids


class UnavailableCells:
    """The images and cells that a page may not get: already shown, leased elsewhere, or not assigned to it."""

    def __init__(
        self,
        wanted: WantedGrids,
        held: Collection[tuple[int, int]],
        aside: WithheldImages = NOTHING_WITHHELD,
        classes_away: Collection[int] = (),
    ):
        self.withheld_images, self.withheld_classes = aside, set(classes_away)
        self.leased_image_ids = {image_id for image_id, class_id in held if not class_id}
        self.image_ids_by_class: dict[int, set[int]] = {}  # class id -> image ids
        for image_id, class_id in (*wanted.have, *wanted.passed, *held):
            self.image_ids_by_class.setdefault(class_id, set()).add(image_id)

    @classmethod
    def for_request(cls, db: Database, wanted: WantedGrids) -> "UnavailableCells":
        own = (
            assignment.load_withheld_images(db, wanted.annotator),
            assignment.load_withheld_classes(db, wanted.annotator),
        )
        return cls(wanted, leases.load_leases_of_others(db, wanted.holder), *own)

    def get_unavailable_images(self, class_id: int) -> UnavailableImages:
        return UnavailableImages(
            self.leased_image_ids | self.image_ids_by_class.get(class_id, set()), self.withheld_images
        )


def _iterate_classes(
    db: Database,
    wanted: WantedGrids,
    snapshot: Snapshot | None,
    unavailable_cells: UnavailableCells,
    class_ids: list[int],
) -> Iterator[int]:
    """Yield the classes to try for a grid: only the requested one, else the current one, then the best ones."""
    if wanted.class_id is not None:
        yield wanted.class_id
        return
    in_hand = wanted.have[-1][1] if wanted.have else None
    if in_hand in class_ids and in_hand != wanted.but:
        yield in_hand
    for class_id in _rank_classes(db, wanted, snapshot, unavailable_cells, class_ids):
        if class_id not in (in_hand, wanted.but):
            yield class_id


def _rank_classes(
    db: Database,
    wanted: WantedGrids,
    snapshot: Snapshot | None,
    unavailable_cells: UnavailableCells,
    class_ids: list[int],
) -> list[int]:
    finds = {}
    if snapshot and wanted.selection:
        finds = selection_cells.estimate_positives(
            db, snapshot.predictions, wanted.selection, wanted.size, unavailable_cells.withheld_images
        )
    elif snapshot:
        finds = estimate_positives(snapshot, unavailable_cells, wanted.size)
    if not finds:
        answers = project_counts.count_labels_by_class(db)
        return sorted(class_ids, key=lambda class_id: (sum(answers.get(class_id, ())), class_id))
    return sorted(class_ids, key=lambda class_id: (-finds.get(class_id, 0.0), class_id))


def estimate_positives(snapshot: Snapshot, unavailable_cells: UnavailableCells, size: int) -> dict[int, float]:
    """Return class id -> expected positives among its next `size` tiles."""
    rankings, delta, predictions = snapshot.rankings, snapshot.delta, snapshot.predictions
    rows = rankings.by_class[:, : GRIDS_READ_PER_CLASS * size]
    whole, known = predictions.find_rows(list(unavailable_cells.leased_image_ids))
    is_out = np.zeros(len(predictions.image_ids), bool)
    is_out[whole[known]] = True
    is_out |= unavailable_cells.withheld_images.get_mask(predictions.image_ids)
    is_open = (rows >= 0) & ~is_out[rows]
    for column, place in np.argwhere(is_open & delta.changed[rows]).tolist():
        is_open[column, place] = delta.is_open(int(rows[column, place]), column)
    finds = {}
    for column, class_id in enumerate(predictions.class_ids.tolist()):
        if rows[column, 0] < 0 or class_id in unavailable_cells.withheld_classes:
            continue
        if single := unavailable_cells.image_ids_by_class.get(class_id):
            is_open[column] &= ~np.isin(predictions.image_ids[rows[column]], list(single))
        places = np.flatnonzero(is_open[column])[:size]
        if len(places) == size or rows[column, -1] < 0 or rows.shape[1] == rankings.by_class.shape[1]:
            finds[class_id] = float(rankings.scores[column, places].sum(dtype=np.float64))
        else:
            finds[class_id] = sum(
                chance
                for _, chance in islice(
                    iterate_ranked_cells(snapshot, column, unavailable_cells.get_unavailable_images(class_id)), size
                )
            )
    return finds


def _lease_grids(
    db: Database, wanted: WantedGrids, snapshot: Snapshot | None, class_id: int, unavailable_cells: UnavailableCells
) -> list[Grid]:
    column = snapshot.delta.find_column(class_id) if snapshot else None
    excluded, grouped = unavailable_cells.get_unavailable_images(class_id), None
    if wanted.selection:
        predictions = snapshot.predictions if snapshot else None
        source = selection_cells.iterate_cells(db, predictions, wanted.selection, class_id, excluded)
    elif snapshot and column is not None:
        source = iterate_ranked_cells(snapshot, column, excluded)
        if stored_events.has_multi_image_events(db):
            room = leases.MAX_LEASES_PER_PAGE - len(wanted.have)
            grouped = EventTiles(db, snapshot.predictions, class_id, excluded, room)
            source = grouped.group_by_event(source)
    else:
        source = _iterate_unranked_cells(db, class_id, excluded, wanted.size * wanted.want)
    tiles = lease_tiles(db, wanted, class_id, source)
    if grouped:
        if grouped.is_full and len(tiles) > wanted.size:  # full grids only, while more images wait
            tiles = tiles[: len(tiles) // wanted.size * wanted.size]
        tiles = add_event_images(db, wanted, class_id, grouped.others, tiles)
    run_id = snapshot.run.id if snapshot and column is not None else None
    return [
        build_grid(class_id, run_id, tiles[start : start + wanted.size]) for start in range(0, len(tiles), wanted.size)
    ]


def iterate_ranked_cells(
    snapshot: Snapshot, column: int, unavailable: UnavailableImages
) -> Iterator[tuple[int, float]]:
    """Yield (image id, probability) of the unanswered cells of a column, likeliest first."""
    image_ids, rankings = snapshot.predictions.image_ids, snapshot.rankings
    rows, scores = rankings.by_class[column], rankings.scores[column]
    for start in range(0, len(rows), 512):
        block = rows[start : start + 512]
        changed, aside = snapshot.delta.changed[block], unavailable.aside.get_mask(image_ids[block])
        for place, (row, image_id) in enumerate(zip(block.tolist(), image_ids[block].tolist(), strict=True)):
            if row < 0:
                return
            if (
                not aside[place]
                and image_id not in unavailable.ids
                and not (changed[place] and not snapshot.delta.is_open(row, column))
            ):
                yield image_id, float(scores[start + place])


def _iterate_unranked_cells(
    db: Database, class_id: int, unavailable: UnavailableImages, want: int
) -> Iterator[tuple[int, None]]:
    if unavailable.aside.own is not None:
        yield from (
            (id_, None)
            for id_ in label_cells.filter_open_images(db, class_id, unavailable.aside.own.tolist())
            if id_ not in unavailable
        )
        return
    limit, seen = len(unavailable.ids) + want, set(unavailable.ids)
    least = LABELED if unavailable.aside.holds_untouched else UNTOUCHED
    while True:
        # Each query is read to its end: one left open would keep this connection from writing.
        image_ids = label_cells.find_open_images(db, class_id, limit, least)
        yield from (
            (image_id, None) for image_id in image_ids if image_id not in seen and image_id not in unavailable.aside
        )
        if len(image_ids) < limit:
            return
        seen.update(image_ids)
        limit *= 2


def lease_tiles(
    db: Database, wanted: WantedGrids, class_id: int, source: Iterable[tuple[int, float | None]]
) -> list[Tile]:
    """Lease and return the first free tiles of `source`, which yields (image id, probability or None)."""
    need, tiles, source = wanted.size * wanted.want, [], iter(source)
    with_answered = bool(wanted.selection) or wanted.hide_predictions
    while len(tiles) < need and (probabilities := dict(islice(source, need - len(tiles)))):
        asked = [(image_id, class_id) for image_id in probabilities]
        image_ids = [
            image_id for image_id, _ in leases.lease_cells(db, wanted.holder, wanted.annotator, asked, len(asked))
        ]
        # Read after leasing: from now on nobody else can answer them.
        answers = label_cells.load_labels_with_annotators(db, [(image_id, class_id) for image_id in image_ids])
        excluded = label_cells.find_unaskable_images(db, image_ids)
        if wanted.selection and not blind_visibility.can_see_all(db):
            excluded |= blindness.reveal_visible_images(db, wanted.annotator, image_ids)
        if not with_answered:
            accepted = auto_accepted.load_accepted_class_ids(db, image_ids)
            excluded |= {image_id for image_id, class_ids in accepted.items() if class_id in class_ids}
            excluded |= {image_id for image_id, _ in answers}
        records = images.load_images(db, image_ids)
        models, seen = [()] * len(image_ids), [()] * len(image_ids)
        if not wanted.hide_predictions:
            models = load_score_texts(db, image_ids, [class_id] * len(image_ids))
            seen = load_cell_boxes(db, image_ids, [class_id] * len(image_ids))
        for image_id, of_others, drawn in zip(image_ids, models, seen, strict=True):
            if image_id not in excluded:
                probability = probabilities[image_id]
                state, by = answers.get((image_id, class_id), (None, None))
                if wanted.hide_predictions:
                    state, by = None, None
                rounded = None if probability is None else round(probability, 4)
                tiles.append(Tile(records[image_id], rounded, state, by, of_others, drawn))
    return tiles


def add_event_images(
    db: Database,
    wanted: WantedGrids,
    class_id: int,
    others: Mapping[int, Sequence[tuple[int, float | None]]],
    tiles: Sequence[Tile],
) -> list[Tile]:
    """Lease the event images that tiles stand for (see `EventTiles.others`), and return the tiles with them."""
    asked = [(image_id, class_id) for tile in tiles for image_id, _ in others.get(tile.image.id, ())]
    granted = set(leases.lease_cells(db, wanted.holder, wanted.annotator, asked, len(asked)))
    names = images.load_images(db, [image_id for image_id, _ in granted])
    answered = label_cells.load_states(db, class_id, list(names))  # since their events were looked up
    stands_for = {
        first: tuple(
            (image_id, round(chance or 0.0, 4), names[image_id].name)
            for image_id, chance in pairs
            if image_id in names and image_id not in answered
        )
        for first, pairs in others.items()
    }
    return [replace(tile, others=given) if (given := stands_for.get(tile.image.id)) else tile for tile in tiles]


def build_grid(class_id: int, run_id: int | None, tiles: list[Tile]) -> Grid:
    """Return a grid that starts with the answer expected for most tiles."""
    chances = [tile.probability for tile in tiles if tile.probability is not None]
    share = sum(chances) / len(chances) if chances else None
    start = "yes" if share is not None and share >= EVEN_PROBABILITY else "no"
    name = f"g{tiles[0].image.id}-{class_id}-{next(_grid_numbers)}"
    return Grid(name, class_id, run_id, None if share is None else round(share, 4), start, tiles)


_ALL_SHOWN_MESSAGE = "Every image of this selection has been shown."


def _count_open_elsewhere(db: Database, wanted: WantedGrids) -> int:
    leased = leases.load_leases_of_others(db, wanted.holder)
    ids = {image_id for image_id, class_id in leased if class_id in (0, wanted.class_id)}
    ids -= {image_id for image_id, class_id in wanted.passed if class_id == wanted.class_id}
    aside = assignment.load_withheld_images(db, wanted.annotator)
    ids = {image_id for image_id in ids if image_id not in aside}
    if wanted.selection:
        return len(ids & set(selections.load(db, wanted.selection).tolist()))
    if wanted.class_id is not None:
        ids -= label_cells.load_states(db, wanted.class_id, list(ids)).keys()
    return len(ids)


def _explain_empty(
    db: Database, wanted: WantedGrids, counts: dict[str, int], has_classes: bool, run: Run | None
) -> str:
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page."
    if not has_classes:
        return "No classes yet. Add some on the Classes page."
    if wanted.class_id in assignment.load_withheld_classes(db, wanted.annotator):
        return "Other people are asked about this class. Choose another class."
    leased = _count_open_elsewhere(db, wanted)
    come = f"{describe_open_elsewhere(leased)}. {COMING_BACK_MESSAGE}"
    if wanted.selection:
        shown = f"Every other image of this selection has been shown. {come}" if leased else _ALL_SHOWN_MESSAGE
        return f"{shown} Choose another class, or leave the selection."
    if counts["complete"] == counts["all"]:
        return image_queue.ALL_COMPLETE_MESSAGE
    if leased:
        return f"Nothing else to answer for this class. {come} Another class may have more."
    more = " The next training may bring more." if run else ""
    if assignment.has_withheld_images(db, wanted.annotator):
        more = f" {LIMITED_MESSAGE}{more}"
    return f"Nothing left to answer for this class.{more} Choose another class."
