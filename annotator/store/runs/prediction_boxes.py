"""The boxes of a source of predictions: where its model saw a class, kept as evidence beside its scores.

    predictions/<source>/<version>/boxes.npy    (n,) BOX_DTYPE, sorted by image, class and falling score; missing: no
    boxes

Boxes belong to a version of a source (prediction_sources.py): they are replaced and removed with it. They are drawn
where a person judges a suggestion, and are exported nowhere: nobody has drawn them. Of a cell the MAX_BOXES_PER_CELL
surest are kept,
so that a detector that keeps everything from a confidence of 0.005 on cannot fill the disk.
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
    """The boxes of a block of scores.

    Attributes:
        rows, columns: (n,) int: the cell of each box in the block.
        places: (n, 4) float: left, top, width, height as fractions of the image; parts outside are cut off.
        scores: (n,) float: the model's score of each.
    """

    rows: np.ndarray
    columns: np.ndarray
    places: np.ndarray
    scores: np.ndarray


def to_stored_boxes(image_ids: np.ndarray, class_ids: np.ndarray, given: CellBoxes) -> np.ndarray:
    """Return boxes as they are stored, (n,) BOX_DTYPE, of these images and classes, (n,) each."""
    boxes = np.zeros(len(image_ids), BOX_DTYPE)
    boxes["image_id"], boxes["class_id"], boxes["score"] = image_ids, class_ids, given.scores
    corners = np.clip(np.concatenate([given.places[:, :2], given.places[:, :2] + given.places[:, 2:]], 1), 0, 1)
    steps = np.rint(corners * STEPS_PER_SIDE)
    boxes["place"] = np.concatenate([steps[:, :2], steps[:, 2:] - steps[:, :2]], 1)
    return boxes


def write(folder: Path, boxes: np.ndarray, before: np.ndarray) -> None:
    """Write the boxes of a version, of each cell the MAX_BOXES_PER_CELL surest; no file where there are none. Raises
        DiskFull.

    Args:
        folder: The folder of the version.
        boxes: (n,) BOX_DTYPE, in any order.
        before: (m,) BOX_DTYPE of the version before, of cells that have no newer score.
    """
    kept = _select_surest(np.concatenate([boxes, before]) if len(before) else boxes)
    if len(kept):
        save_array(folder / BOXES_FILE, kept)


def open_boxes(folder: Path) -> np.ndarray:
    """Return the boxes of a version, (n,) BOX_DTYPE mapped from the disk; none where the file is missing or damaged."""
    try:
        boxes = open_array(folder / BOXES_FILE)
    except (OSError, ValueError, EOFError):
        return NO_BOXES
    # A plain view: single values of a memmap are slow to read, and a search reads many.
    return boxes.view(np.ndarray) if boxes.dtype == BOX_DTYPE and boxes.ndim == 1 else NO_BOXES


def drop_rescored(boxes: np.ndarray, blocks: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the boxes whose cells have no score in the blocks (prediction_sources.Block): those replace the others."""
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
    """Return an image's boxes, (k,) BOX_DTYPE, from a version's sorted boxes; reads a few pages of the file."""
    ids = boxes["image_id"]
    return np.asarray(boxes[bisect_left(ids, image_id) : bisect_right(ids, image_id)])


def _select_surest(boxes: np.ndarray) -> np.ndarray:
    """Return the boxes sorted by image, class and falling score, at most MAX_BOXES_PER_CELL of each image and class."""
    ordered = boxes[np.lexsort((-boxes["score"], boxes["class_id"], boxes["image_id"]))]
    new_cell = np.ones(len(ordered), bool)
    new_cell[1:] = np.diff(ordered["image_id"]).astype(bool) | np.diff(ordered["class_id"]).astype(bool)
    starts = np.flatnonzero(new_cell)
    number_in_cell = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return ordered[number_in_cell < MAX_BOXES_PER_CELL]
