"""COCO results, [{"image_id", "category_id", "score", "bbox"}, ...], as scores: the largest for each image and class.

Format: "COCO result format", Object Detection, https://cocodataset.org/#format-results. Results name images and
categories by id only, so the annotation file that they belong to must lie beside them.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import pieces, starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import coco
from annotator.exchange.formats.coco_images import Id, plain_ids
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.format import Format

AT_ONCE = 4_000_000  # results in memory before they are reduced to the largest of each cell


class Result(msgspec.Struct, gc=False):
    """A detection; its box is not read."""

    image_id: Id
    category_id: Id
    score: float


RESULTS = msgspec.json.Decoder(list[Result])


def recognise(path: Path) -> str | None:
    """Return why a file is COCO results, or None: a list whose entries have image_id, category_id and score."""
    start = starts_with(path, 1 << 12) if path.is_file() else b""
    if start[:1] == b"[" and all(name in start for name in (b'"image_id"', b'"category_id"', b'"score"')):
        return "COCO results: each entry has image_id, category_id and score"
    return None


def read(path: Path, problems: Problems) -> Contents:
    """Return the scores of the images that have results. Memory: some 12 bytes for each pair (image, class).

    Raises:
        AnnotatorError: The number of COCO annotation files in the same folder is not one.
    """
    annotations = _annotations_beside(path)
    index = coco.CocoIndex(annotations, problems)
    said = [f"Ids are those of {annotations.name}.", "The score of a class is that of its surest detection."]
    return Contents(index.classes, _items(path, index, problems), place="entry", said=said)


def _annotations_beside(path: Path) -> Path:
    beside = [other for other in sorted(path.parent.glob("*.json")) if other != path and coco.recognise(other)]
    if len(beside) == 1:
        return beside[0]
    there = f"There are {len(beside)}: {', '.join(other.name for other in beside[:5])}" if beside else "There is none"
    raise AnnotatorError(
        f"{path} holds COCO results, which name images and categories by number: the annotation file that they "
        f"belong to must lie in the same folder, and no other one. {there}."
    )


def _items(path: Path, index: coco.CocoIndex, problems: Problems) -> Iterator[Item]:
    cells, scores = np.zeros(0, np.int64), np.zeros(0, np.float32)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    for piece in pieces(path):
        results = piece.decode(RESULTS, problems)
        if not results:
            continue
        rows = index.images.rows([result.image_id for _, result in results])
        ids = plain_ids([result.category_id for _, result in results])
        columns = np.array([index.columns.get(category_id, -1) for category_id in ids])
        for at in np.flatnonzero((rows < 0) | (columns < 0)).tolist():
            number, result = results[at]
            what, given = ("image", result.image_id) if rows[at] < 0 else ("category", result.category_id)
            problems.add(f"{piece.place(number)}: no {what} has the id {given!r}")
        good = (rows >= 0) & (columns >= 0)
        waiting.append(((rows * len(index.classes) + columns)[good], np.array([r.score for _, r in results])[good]))
        if sum(len(part) for part, _ in waiting) > AT_ONCE:
            cells, scores = _largest([(cells, scores), *waiting])
            waiting = []
    cells, scores = _largest([(cells, scores), *waiting])
    rows, names = cells // max(len(index.classes), 1), [name for name, _ in index.classes]
    borders = np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist() if len(rows) else []
    for start, end in pairwise(borders):
        row = int(rows[start])
        columns = (cells[start:end] - row * len(names)).tolist()
        given = scores[start:end].tolist()
        name = index.images.name(row)
        yield Item(name, name, scores={names[column]: score for column, score in zip(columns, given, strict=True)})


def _largest(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return (cell, score) arrays with each cell once and its largest score, sorted by cell."""
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
    recognise=recognise,
    read=read,
)
