"""The map of images: a position in the plane per image, with similar images close together."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image as Picture
from PIL import ImageDraw

from annotator.errors import AnnotatorError
from annotator.indexing import find_positions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database
from annotator.store.images import selections
from annotator.store.labels import decisions, label_cells
from annotator.store.networks import configuration

# Ids and positions in one file: a kill never separates them.
POINT_DTYPE = np.dtype([("image_id", "<i8"), ("x", "<f4"), ("y", "<f4")])
POINTS_FILE = "points.npy"
MAX_DRAWN_POINTS = 10_000  # points that a browser draws smoothly and a person can tell apart
SELECTION_GRID_SIDE = 1024  # a selection is exact to this fraction of its own extent
IMAGES_PER_BLOCK = 1 << 15  # images tested in one block, which fits a processor cache
MAX_INCREMENTAL_DECISIONS = 2000  # newer decisions from which on all colours are read again
MAX_CACHED_COLORS = 300
UNKNOWN_STATE = 2  # any number that is no state
STATE_BYTES = {PRESENT: 1, ABSENT: 2, UNSURE: 3}
NO_PROBABILITY = 255
ByteLookup = Callable[[np.ndarray], np.ndarray]  # image ids (n,) -> bytes (n,)


def save_map(folder: Path, image_ids: np.ndarray, positions: np.ndarray) -> None:
    """Write a map: ids (N,) int64 in any order, positions (N, 2) in [0, 1]. Raises DiskFull."""
    points = np.empty(len(image_ids), POINT_DTYPE)
    points["image_id"], points["x"], points["y"] = image_ids, positions[:, 0], positions[:, 1]
    save_array(folder / POINTS_FILE, np.sort(points, order="image_id"))


def count_images(folder: Path) -> int:
    """Count the positions in a stored map, 0 if it is missing or not valid."""
    try:
        return len(_open_points(folder / POINTS_FILE))
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True)
class ImageMap:
    """The positions of all images on the map, and the images that are drawn."""

    # (N,) int64, ascending
    image_ids: np.ndarray
    # x, y: (N,) float32 in [0, 1]
    x: np.ndarray
    y: np.ndarray
    # (n,) int64, ascending, all or a fixed sample
    drawn_rows: np.ndarray
    stamp: int
    color_cache: "ColorCache" = field(default_factory=lambda: ColorCache(), repr=False, compare=False)


def get_current_map(db: Database) -> ImageMap | None:
    """Return the map of the current backbone, or None if missing or damaged."""
    path = db.paths.map(configuration.get_backbone(db)) / POINTS_FILE
    try:
        modified_ns = path.stat().st_mtime_ns
        return db.caches.get("map", (path, modified_ns), lambda: _read_map(path, modified_ns), 1)
    except (OSError, ValueError):  # the worker makes a damaged map again
        return None


def _read_map(path: Path, modified_ns: int) -> ImageMap:
    points = _read_points(path)
    drawn = np.arange(len(points))
    if len(points) > MAX_DRAWN_POINTS:
        drawn = np.sort(np.random.default_rng(0).choice(len(points), MAX_DRAWN_POINTS, replace=False))
    image_ids, x, y = (np.ascontiguousarray(points[name]) for name in ("image_id", "x", "y"))
    return ImageMap(image_ids, x, y, drawn, modified_ns // 1_000_000 % 2**32)


def _open_points(path: Path) -> np.ndarray:
    return open_array(path, POINT_DTYPE, 1)


def _read_points(path: Path) -> np.ndarray:
    """Return the stored positions, memory-mapped and checked. Damage raises OSError or ValueError."""
    points = _open_points(path)
    are_inside = all(((points[name] >= 0) & (points[name] <= 1)).all() for name in ("x", "y"))
    if not are_inside or (np.diff(points["image_id"]) <= 0).any():
        raise ValueError(f"{path} holds no positions of images")
    return points


def load_stage_bytes(db: Database, map_: ImageMap) -> np.ndarray:
    """Return the stage of each drawn image, (n,) uint8: 0 untouched, 1 skipped, 2 has labels, 3 complete."""
    return map_.color_cache.get(
        db, "stage", map_.image_ids[map_.drawn_rows], lambda ids: label_cells.load_stage_column(db, ids)
    )


def load_state_bytes(db: Database, map_: ImageMap, class_id: int) -> np.ndarray:
    """Return the answer for a class per drawn image, (n,) uint8: 0 unanswered, 1 present, 2 absent, 3 unsure.

    Raises AnnotatorError for an unknown class.
    """
    _check_class_exists(db, class_id)

    def read(ids: np.ndarray) -> np.ndarray:
        states = label_cells.load_label_column(db, class_id, ids, UNKNOWN_STATE)
        result = np.zeros(len(ids), np.uint8)
        for state, byte in STATE_BYTES.items():
            result[states == state] = byte
        return result

    return map_.color_cache.get(db, class_id, map_.image_ids[map_.drawn_rows], read)


def load_probability_bytes(db: Database, map_: ImageMap, class_id: int) -> np.ndarray:
    """Return round(254 * probability) of a class per drawn image, (n,) uint8, 255 if unknown.

    Raises AnnotatorError for an unknown class.
    """
    _check_class_exists(db, class_id)
    predictions = read_predictions(db)
    if predictions is None:
        return np.full(len(map_.drawn_rows), NO_PROBABILITY, np.uint8)
    values = predictions.align(predictions.probabilities, map_.image_ids[map_.drawn_rows], [class_id])[:, 0]
    scaled = np.rint(np.nan_to_num(values.astype(np.float32)) * 254)
    return np.where(np.isfinite(values), scaled, NO_PROBABILITY).astype(np.uint8)


def _check_class_exists(db: Database, class_id: int) -> None:
    if all(class_.id != class_id for class_ in classes.load_active_classes(db)):
        raise AnnotatorError(f"There is no class {class_id}. Reload the page.")


class ColorCache:
    """A cache of the bytes that color map points by decisions, updated incrementally."""

    def __init__(self):
        self._lock = threading.Lock()
        self._read: OrderedDict[str | int, tuple[int, int, np.ndarray]] = OrderedDict()

    def get(self, db: Database, name: str | int, ids: np.ndarray, look_up: ByteLookup) -> np.ndarray:
        """Return the current bytes (n,) of images `ids`, which must be the same in each call with this name."""
        with self._lock:
            # Read before the values: a decision that comes in between is read once more the next time.
            newest, class_version = decisions.get_newest_decision_id(db), versions.get_class_version(db)
            values = self._update(db, name, ids, look_up, class_version)
            self._read[name] = (newest, class_version, values)
            self._read.move_to_end(name)
            while len(self._read) > MAX_CACHED_COLORS:
                self._read.popitem(last=False)
            return values

    def _update(
        self, db: Database, name: str | int, ids: np.ndarray, look_up: ByteLookup, class_version: int
    ) -> np.ndarray:
        if name not in self._read:
            return look_up(ids)
        newest_read, class_version_read, values = self._read[name]
        # A new class reopens complete images, and no decision names them.
        changed = (
            label_cells.load_images_decided_since(db, newest_read, MAX_INCREMENTAL_DECISIONS)
            if class_version == class_version_read
            else None
        )
        if changed is None:
            return look_up(ids)
        rows, known = find_positions(changed, ids)
        if known.any():
            values = values.copy()
            values[rows[known]] = look_up(ids[rows[known]])
        return values


def find_images_inside(map_: ImageMap, polygon: np.ndarray) -> np.ndarray:
    """Return the ids of the images inside a polygon, drawn or not: (n,) int64, ascending.

    `polygon` (V, 2) has corners in the unit square, with the even-odd rule. Raises ValueError for fewer than 3 or
    non-finite corners.
    """
    polygon = np.asarray(polygon, np.float64)
    if polygon.ndim != 2 or polygon.shape[1] != 2 or len(polygon) < 3 or not np.isfinite(polygon).all():
        raise ValueError(f"a polygon of shape {polygon.shape}: it must be at least 3 corners of two finite numbers")
    low, extent = polygon.min(axis=0), np.ptp(polygon, axis=0)
    if not extent.all():
        return np.zeros(0, np.int64)
    scale = (SELECTION_GRID_SIDE - 1) / extent
    mask = Picture.new("L", (SELECTION_GRID_SIDE, SELECTION_GRID_SIDE))
    ImageDraw.Draw(mask).polygon([tuple(corner) for corner in ((polygon - low) * scale).tolist()], fill=1)
    inner = np.asarray(mask).ravel()
    blocks = [np.zeros(0, np.int64)]
    for start in range(0, len(map_.x), IMAGES_PER_BLOCK):
        x, y = map_.x[start : start + IMAGES_PER_BLOCK], map_.y[start : start + IMAGES_PER_BLOCK]
        near = np.flatnonzero((x >= low[0]) & (x <= low[0] + extent[0]) & (y >= low[1]) & (y <= low[1] + extent[1]))
        cells = _to_grid_cells(y.take(near), low[1], scale[1]) * SELECTION_GRID_SIDE + _to_grid_cells(
            x.take(near), low[0], scale[0]
        )
        hits = near.take(np.flatnonzero(inner.take(cells)))  # an index is three times as fast as a mask
        blocks.append(map_.image_ids[start : start + IMAGES_PER_BLOCK].take(hits))
    return np.concatenate(blocks)


def _to_grid_cells(places: np.ndarray, low: float, scale: float) -> np.ndarray:
    # A million images are tested between two frames, and casting so many floats alone would take a third of that.
    # Adding 2 ** 23 leaves a float32 no bits for a fraction: the rounded number stands in its lowest bits.
    cells = places - np.float32(low)
    cells *= np.float32(scale)
    np.clip(cells, np.float32(0), np.float32(SELECTION_GRID_SIDE - 1), out=cells)
    cells += np.float32(2**23)
    cells = cells.view(np.int32)
    cells &= SELECTION_GRID_SIDE - 1
    return cells


def save_selection(db: Database, polygon: np.ndarray, by: str = "") -> tuple[str, int, int]:
    """Save the images inside a polygon of the map as a selection for grids.

    Returns:
        Selection id or "", number of images inside, number of images saved.

    Raises:
        AnnotatorError: Without a map.
        ValueError: For an invalid polygon.
        DiskFull: If writing fails.
    """
    map_ = get_current_map(db)
    if map_ is None:
        raise AnnotatorError("There is no map yet. It is made once every image has been analyzed.")
    image_ids = find_images_inside(map_, polygon)
    selection = selections.save(db, image_ids, by) if len(image_ids) else ""
    return selection, len(image_ids), min(len(image_ids), selections.MAX_IMAGES)
