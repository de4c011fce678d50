"""Bounding boxes of a prediction source, next to its scores.

    predictions/<source>/<version>/boxes.npy    (n,) BOX_DTYPE, sorted by image, class, descending score

They are never exported. MAX_BOXES_PER_CELL limits disk use.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.arrays import open_array, save_array

BOXES_FILE = "boxes.npy"
MAX_BOXES_PER_CELL = 20  # boxes of one image and class; 28 bytes each
STEPS_PER_SIDE = 65535  # of a whole side of the image
BOX_DTYPE = np.dtype([("image_id", "<i8"), ("class_id", "<i8"), ("place", "<u2", (4,)), ("score", "<f4")])
"""A stored box: left, top, width, height as fractions of the image in STEPS_PER_SIDE, and the model's score."""

NO_BOXES = np.zeros(0, BOX_DTYPE)


@dataclass(frozen=True, eq=False)
class CellBoxes:
    """The boxes that belong to a block of scores."""

    # rows, columns: (n,) int, each box's cell in the block
    rows: np.ndarray
    columns: np.ndarray
    # (n, 4) float, left, top, width, height as image fractions
    places: np.ndarray
    scores: np.ndarray


def to_stored_boxes(image_ids: np.ndarray, class_ids: np.ndarray, given: CellBoxes) -> np.ndarray:
    """Convert n boxes, each with its image and class id, to (n,) BOX_DTYPE."""
    boxes = np.zeros(len(image_ids), BOX_DTYPE)
    boxes["image_id"], boxes["class_id"], boxes["score"] = image_ids, class_ids, given.scores
    corners = np.clip(np.concatenate([given.places[:, :2], given.places[:, :2] + given.places[:, 2:]], 1), 0, 1)
    steps = np.rint(corners * STEPS_PER_SIDE)
    boxes["place"] = np.concatenate([steps[:, :2], steps[:, 2:] - steps[:, :2]], 1)
    return boxes


def write(folder: Path, boxes: np.ndarray, before: np.ndarray) -> None:
    """Write the most confident boxes per cell of a score version, if any. Raises DiskFull.

    Args:
        boxes: (n,) BOX_DTYPE, any order.
        before: (m,) BOX_DTYPE, m earlier boxes to keep, of cells without newer scores.
    """
    kept = _select_surest(np.concatenate([boxes, before]) if len(before) else boxes)
    if len(kept):
        save_array(folder / BOXES_FILE, kept)


def open_boxes(folder: Path) -> np.ndarray:
    """Return a version's memory-mapped boxes, (n,) BOX_DTYPE, or none."""
    try:
        boxes = open_array(folder / BOXES_FILE)
    except (OSError, ValueError, EOFError):
        return NO_BOXES
    # A plain view: single values of a memmap are slow to read, and a search reads many.
    return boxes.view(np.ndarray) if boxes.dtype == BOX_DTYPE and boxes.ndim == 1 else NO_BOXES


def drop_rescored(boxes: np.ndarray, blocks: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the boxes of those cells that have no score in the blocks."""
    if not len(boxes):
        return boxes
    kept, ids = np.ones(len(boxes), bool), np.ascontiguousarray(boxes["image_id"])
    for image_ids, class_ids, scores in blocks:
        first, counts = np.searchsorted(ids, image_ids), np.searchsorted(ids, image_ids, "right")
        counts -= first
        rows = np.repeat(np.arange(len(image_ids)), counts)
        at = np.arange(len(rows)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        columns, known = find_positions(boxes["class_id"][at], class_ids, np.argsort(class_ids, kind="stable"))
        kept[at[known & ~np.isnan(scores[rows, columns])]] = False
    return boxes[kept]


def find_image_boxes(boxes: np.ndarray, image_id: int) -> np.ndarray:
    """Return an image's boxes, (k,) BOX_DTYPE."""
    ids = boxes["image_id"]
    return np.asarray(boxes[bisect_left(ids, image_id) : bisect_right(ids, image_id)])


def _select_surest(boxes: np.ndarray) -> np.ndarray:
    ordered = boxes[np.lexsort((-boxes["score"], boxes["class_id"], boxes["image_id"]))]
    new_cell = np.ones(len(ordered), bool)
    new_cell[1:] = np.diff(ordered["image_id"]).astype(bool) | np.diff(ordered["class_id"]).astype(bool)
    starts = np.flatnonzero(new_cell)
    number_in_cell = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return ordered[number_in_cell < MAX_BOXES_PER_CELL]
