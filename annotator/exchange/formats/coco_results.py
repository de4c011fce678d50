"""COCO detection results as scores: the maximum per image and class, with the best boxes.

Format: https://cocodataset.org/#format-results. Results contain only ids, so the annotation file must be in the same
folder.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import coco
from annotator.exchange.formats.coco_images import Id, normalize_ids
from annotator.exchange.formats.contents import Box, Contents, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.model_boxes import BOXES_KEPT_SENTENCE
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.store.runs.prediction_boxes import MAX_BOXES_PER_CELL

MAX_PENDING_RESULTS = 4_000_000  # results in memory before they are reduced to the largest of each cell


class Result(msgspec.Struct, gc=False):
    """One detection. `bbox` is left, top, width, height in pixels, or None."""

    image_id: Id
    category_id: Id
    score: float
    bbox: list[float] | None = None


class ImageSize(msgspec.Struct, gc=False):
    """The size of an image, 0 if unknown."""

    id: Id
    width: float = 0
    height: float = 0


class Boxes(NamedTuple):
    """Arrays of n boxes: (n,) indexes of image and class, (n,) scores, (n, 4) places as fractions of the image."""

    cells: np.ndarray
    scores: np.ndarray
    places: np.ndarray


RESULT_DECODER = msgspec.json.Decoder(list[Result])
SIZE_DECODER = msgspec.json.Decoder(list[ImageSize])


def recognize(path: Path) -> str | None:
    start = read_start(path, 1 << 12) if path.is_file() else b""
    if start[:1] == b"[" and all(name in start for name in (b'"image_id"', b'"category_id"', b'"score"')):
        return "COCO results: each entry has image_id, category_id and score"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the scores, with some 12 bytes of memory per image and class and 28 per box.

    Raises AnnotatorError unless the folder has exactly one annotation file.
    """
    annotations = _find_annotation_file(path)
    index = coco.CocoIndex(annotations, problems)
    said = [
        f"Ids are those of {annotations.name}.",
        "The score of a class is that of its surest detection.",
        BOXES_KEPT_SENTENCE,
    ]
    sizes = _read_sizes(annotations, index)
    return Contents(index.classes, _read_items(path, index, sizes, problems), place="entry", sentences=said)


def _find_annotation_file(path: Path) -> Path:
    beside = [other for other in sorted(path.parent.glob("*.json")) if other != path and coco.recognize(other)]
    if len(beside) == 1:
        return beside[0]
    there = f"There are {len(beside)}: {', '.join(other.name for other in beside[:5])}" if beside else "There is none"
    raise AnnotatorError(
        f"{path} holds COCO results, which name images and categories by number: the annotation file that they "
        f"belong to must lie in the same folder, and no other one. {there}."
    )


def _read_sizes(path: Path, index: coco.CocoIndex) -> np.ndarray:
    sizes = np.zeros((len(index.images), 2), np.float32)
    for piece in read_pieces(path, "images".__eq__):
        images = [image for _, image in piece.decode(SIZE_DECODER, Problems())]  # its problems were noted by the index
        rows = index.images.find_rows([image.id for image in images])
        given = np.array([(image.width, image.height) for image in images], np.float32).reshape(-1, 2)
        sizes[rows[rows >= 0]] = given[rows >= 0]
    return sizes


def _read_items(path: Path, index: coco.CocoIndex, sizes: np.ndarray, problems: Problems) -> Iterator[Item]:
    boxes = Boxes(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((0, 4), np.float32))
    waiting_boxes: list[Boxes] = []
    cells, scores = np.zeros(0, np.int64), np.zeros(0, np.float32)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    for piece in read_pieces(path):
        results = piece.decode(RESULT_DECODER, problems)
        if not results:
            continue
        rows = index.images.find_rows([result.image_id for _, result in results])
        ids = normalize_ids([result.category_id for _, result in results])
        columns = np.array([index.columns.get(category_id, -1) for category_id in ids])
        for at in np.flatnonzero((rows < 0) | (columns < 0)).tolist():
            number, result = results[at]
            what, given = ("image", result.image_id) if rows[at] < 0 else ("category", result.category_id)
            problems.add(f"{piece.place(number)}: no {what} has the id {given!r}")
        good = (rows >= 0) & (columns >= 0)
        waiting.append(((rows * len(index.classes) + columns)[good], np.array([r.score for _, r in results])[good]))
        waiting_boxes.append(_scale_boxes([result for _, result in results], *waiting[-1], rows, good, sizes))
        if sum(len(part) for part, _ in waiting) > MAX_PENDING_RESULTS:
            cells, scores = _select_top_scores([(cells, scores), *waiting])
            boxes = _select_top_boxes([boxes, *waiting_boxes])
            waiting, waiting_boxes = [], []
    cells, scores = _select_top_scores([(cells, scores), *waiting])
    boxes = _select_top_boxes([boxes, *waiting_boxes])
    of_rows = np.searchsorted(boxes.cells, np.arange(len(index.images) + 1) * len(index.classes))
    rows, names = cells // max(len(index.classes), 1), [name for name, _ in index.classes]
    borders = np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist() if len(rows) else []
    for start, end in pairwise(borders):
        row = int(rows[start])
        columns = (cells[start:end] - row * len(names)).tolist()
        given = scores[start:end].tolist()
        name = index.images.name(row)
        seen = slice(int(of_rows[row]), int(of_rows[row + 1]))
        drawn = zip(boxes.cells[seen] - row * len(names), boxes.places[seen], boxes.scores[seen], strict=True)
        yield Item(
            name,
            name,
            scores={names[column]: score for column, score in zip(columns, given, strict=True)},
            boxes=[Box._make([names[column], *place.tolist(), float(score)]) for column, place, score in drawn],
        )


def _scale_boxes(
    results: Sequence[Result],
    cells: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    good: np.ndarray,
    sizes: np.ndarray,
) -> Boxes:
    """Return the boxes on images of known size. Of n results, the k `good` ones have `cells` and `scores` (k,)."""
    pixels = np.array([result.bbox if len(result.bbox or ()) == 4 else [0.0] * 4 for result in results], np.float64)
    size = np.tile(sizes[rows[good]], 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = pixels[good] / size
    corners = np.clip(np.concatenate([places[:, :2], places[:, :2] + places[:, 2:]], 1), 0, 1)
    places = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
    kept = np.isfinite(places).all(1) & (places[:, 2:] > 0).all(1) & (size > 0).all(1)
    return Boxes(cells[kept], scores[kept], places[kept].astype(np.float32))


def _select_top_boxes(parts: Sequence[Boxes]) -> Boxes:
    cells, scores, places = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((-scores, cells))
    cells = cells[order]
    number_in_cell = np.arange(len(cells)) - np.searchsorted(cells, cells)
    order = order[number_in_cell < MAX_BOXES_PER_CELL]
    return Boxes(cells[number_in_cell < MAX_BOXES_PER_CELL], scores[order].astype(np.float32), places[order])


def _select_top_scores(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    cells = np.concatenate([part for part, _ in parts])
    scores = np.concatenate([part for _, part in parts]).astype(np.float32)
    order = np.lexsort((-scores, cells))
    cells, scores = cells[order], scores[order]
    first = np.ones(len(cells), bool)
    first[1:] = cells[1:] != cells[:-1]
    return cells[first], scores[first]


COCO_RESULTS = Format(
    name="coco-results",
    about="COCO results of a detector: scores, with the annotation file beside them",
    ending=".json",
    recognize=recognize,
    read=read,
    predicted_by="a detector",
)
