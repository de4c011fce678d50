"""The map: a place in the plane for every image, alike ones together; made by the worker, drawn by the page.

The page's process holds 16 bytes an image and draws at most DRAWN of them; a selection is made among all.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image as Picture
from PIL import ImageDraw

from annotator.errors import AnnotatorError
from annotator.indexing import positions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.snapshot.predictions import read_predictions
from annotator.store import classes, columns, configuration, decisions, selections, versions
from annotator.store.arrays import open_array, save_array
from annotator.store.database import Database

POINT = np.dtype([("image_id", "<i8"), ("x", "<f4"), ("y", "<f4")])  # one file, so that no kill parts ids from places
FILE = "points.npy"
DRAWN = 10_000  # points a browser draws without a stutter, and looks can tell apart
CELLS = 1024  # a selection is as exact as this part of its own extent
AT_ONCE = 1 << 15  # images looked through at once: what a processor keeps close by
REREAD = 2000  # decisions since the colours were read, from which on all are read again
COLOURS_KEPT = 300
UNKNOWN_STATE = 2  # any number that is no state
STATE_BYTES = {PRESENT: 1, ABSENT: 2, UNSURE: 3}
NO_PROBABILITY = 255


def save_map(folder: Path, image_ids: np.ndarray, positions: np.ndarray) -> None:
    """Keep a map: image_ids (N,), positions (N, 2) in [0, 1]. Raises DiskFull."""
    points = np.empty(len(image_ids), POINT)
    points["image_id"], points["x"], points["y"] = image_ids, positions[:, 0], positions[:, 1]
    save_array(folder / FILE, np.sort(points, order="image_id"))


def images_on_map(folder: Path) -> int:
    """Images with a place; 0 where there is no map, or a damaged one."""
    try:
        return len(open_array(folder / FILE))
    except (FileNotFoundError, ValueError):
        return 0


@dataclass(frozen=True)
class Map:
    """The places of all images, and which of them are drawn.

    image_ids    (N,) int64, ascending
    x, y         (N,) float32 in [0, 1]
    drawn        (n,) int64, ascending: rows; all, or DRAWN of them drawn at random, always the same ones
    stamp        another number for another map
    """

    image_ids: np.ndarray
    x: np.ndarray
    y: np.ndarray
    drawn: np.ndarray
    stamp: int
    colours: "_Colours" = field(default_factory=lambda: _Colours(), repr=False, compare=False)


def current_map(db: Database) -> Map | None:
    """The map of the backbone in use; None while it has yet to be made."""
    path = db.paths.map(configuration.backbone(db)) / FILE
    try:
        modified_ns = path.stat().st_mtime_ns
        return db.caches.get("map", (path, modified_ns), lambda: _read(path, modified_ns), 1)
    except (FileNotFoundError, ValueError):  # a damaged file is no map: the worker sees it the same way
        return None


def _read(path: Path, modified_ns: int) -> Map:
    points = open_array(path)
    if points.dtype != POINT:
        raise ValueError(f"{path} holds {points.dtype}")
    drawn = np.arange(len(points))
    if len(points) > DRAWN:
        drawn = np.sort(np.random.default_rng(0).choice(len(points), DRAWN, replace=False))
    image_ids, x, y = (np.ascontiguousarray(points[name]) for name in ("image_id", "x", "y"))
    return Map(image_ids, x, y, drawn, modified_ns // 1_000_000 % 2**32)


def stage_bytes(db: Database, found: Map) -> np.ndarray:
    """How far people are with each image that is drawn, (n,) uint8: 0 untouched, 1 skipped, 2 has labels,
    3 complete."""
    return found.colours.read(db, "stage", found.image_ids[found.drawn], partial(columns.stages, db))


def state_bytes(db: Database, found: Map, class_id: int) -> np.ndarray:
    """What people have said of a class on each image that is drawn, (n,) uint8: 0 nothing yet, 1 present, 2 absent,
    3 unsure. Raises AnnotatorError for an unknown class."""
    _refuse_unknown(db, class_id)

    def read(ids: np.ndarray) -> np.ndarray:
        states = columns.states(db, class_id, ids, UNKNOWN_STATE)
        result = np.zeros(len(ids), np.uint8)
        for state, byte in STATE_BYTES.items():
            result[states == state] = byte
        return result

    return found.colours.read(db, class_id, found.image_ids[found.drawn], read)


def probability_bytes(db: Database, found: Map, class_id: int) -> np.ndarray:
    """The current run's probability of a class on each image that is drawn, (n,) uint8: round(probability * 254), 255
    where there is none. Raises AnnotatorError for an unknown class."""
    _refuse_unknown(db, class_id)
    result = np.full(len(found.drawn), NO_PROBABILITY, np.uint8)
    run = read_predictions(db)
    if run is None or class_id not in run.class_ids:
        return result
    rows, known = run.rows(found.image_ids[found.drawn])
    values = run.probabilities[rows[known], int(np.flatnonzero(run.class_ids == class_id)[0])].astype(np.float32)
    result[known] = np.where(np.isfinite(values), np.rint(np.nan_to_num(values) * 254), NO_PROBABILITY)
    return result


def _refuse_unknown(db: Database, class_id: int) -> None:
    if all(one.id != class_id for one in classes.all_classes(db)):
        raise AnnotatorError(f"There is no class {class_id}. Was it named by an old page? Reload the page.")


class _Colours:
    """Bytes that follow from decisions, kept and brought up to date: looking up ten thousand images takes 20 ms, the
    few that were touched since take none."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept: OrderedDict[str | int, tuple[int, int, np.ndarray]] = OrderedDict()

    def read(
        self, db: Database, name: str | int, ids: np.ndarray, look_up: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        with self._lock:
            # Before looking: what comes in between is looked up once more.
            newest, classes_now = decisions.newest_decision(db), versions.class_version(db)
            seen, classes_seen, values = self._kept.get(name, (0, 0, None))
            # A new class reopens complete images, and no decision tells which.
            same = classes_seen == classes_now
            touched = columns.decided_since(db, seen, REREAD) if same else None
            if values is None or touched is None:
                values = look_up(ids)
            elif len(touched):
                rows, known = positions(touched, ids)
                rows = rows[known]
                values = values.copy()
                values[rows] = look_up(ids[rows])
            self._kept[name] = (newest, classes_now, values)
            self._kept.move_to_end(name)
            while len(self._kept) > COLOURS_KEPT:
                self._kept.popitem(last=False)
            return values


def inside(found: Map, polygon: np.ndarray) -> np.ndarray:
    """The images within a polygon, drawn or not, (n,) int64, ascending.

    polygon    (V, 2) corners in the map's square, not closed; crossing lines count by the even-odd rule

    Exact to 1/CELLS of the polygon's width and height, however small it is. Raises ValueError for fewer than 3 corners,
    and for corners that are not finite.
    """
    polygon = np.asarray(polygon, np.float64)
    if polygon.ndim != 2 or polygon.shape[1] != 2 or len(polygon) < 3 or not np.isfinite(polygon).all():
        raise ValueError(f"a polygon of shape {polygon.shape}: it must be at least 3 corners of two finite numbers")
    low, extent = polygon.min(axis=0), np.ptp(polygon, axis=0)
    if not extent.all():
        return np.zeros(0, np.int64)
    scale = (CELLS - 1) / extent
    mask = Picture.new("L", (CELLS, CELLS))
    ImageDraw.Draw(mask).polygon([tuple(corner) for corner in ((polygon - low) * scale).tolist()], fill=1)
    inner = np.asarray(mask).ravel()
    parts: list[np.ndarray] = []
    for start in range(0, len(found.x), AT_ONCE):
        x, y = found.x[start : start + AT_ONCE], found.y[start : start + AT_ONCE]
        near = np.flatnonzero((x >= low[0]) & (x <= low[0] + extent[0]) & (y >= low[1]) & (y <= low[1] + extent[1]))
        cells = _cells(y.take(near), low[1], scale[1]) * CELLS + _cells(x.take(near), low[0], scale[0])
        hits = near.take(np.flatnonzero(inner.take(cells)))  # an index is three times as fast as a mask
        parts.append(found.image_ids[start : start + AT_ONCE].take(hits))
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _cells(places: np.ndarray, low: float, scale: float) -> np.ndarray:
    # A million images are looked through between two frames, and a cast of so many floats alone would take a third of
    # that. 2 ** 23 more leaves a float32 no room for a fraction: the rounded number is in its lowest bits.
    cells = places - np.float32(low)
    cells *= np.float32(scale)
    np.clip(cells, np.float32(0), np.float32(CELLS - 1), out=cells)
    cells += np.float32(2**23)
    cells = cells.view(np.int32)
    cells &= CELLS - 1
    return cells


def select(db: Database, polygon: np.ndarray) -> tuple[str, int, int]:
    """Keep the images within a polygon as a selection for the grid.

    returns    the selection's id ("" when nothing is inside), how many images lie inside, and how many of these were
               kept: no more than selections.MOST_IMAGES

    Raises AnnotatorError without a map, ValueError as `inside` does, DiskFull.
    """
    found = current_map(db)
    if found is None:
        raise AnnotatorError("There is no map yet. It is made once the features of all images are there.")
    ids = inside(found, polygon)
    return (selections.save(db, ids) if len(ids) else ""), len(ids), min(len(ids), selections.MOST_IMAGES)
