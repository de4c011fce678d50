"""COCO annotations as image labels, and export to files that COCO tools and detectors load.

Formats: https://cocodataset.org/#format-data, and https://www.lvisdataset.org/dataset (LVIS 1.0) for absent
classes.

Read: an annotation makes its category present, or scores it if it has a `score`. `neg_category_ids` are
absent. Other cells are unanswered.

Written: a present class is one crowd annotation of the whole image, because detectors skip crowds and so learn no false
box. Absent classes are in `neg_category_ids`, present ones in `not_exhaustive_category_ids` (LVIS). Own fields:
`unsure_category_ids`, `sha256`, `split`, and for filled-in cells `filled_category_ids` and `source`.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import IO

import msgspec
import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.coco_camera_traps import CameraTraps, TrapAnnotation, TrapImage
from annotator.exchange.formats.coco_images import CocoImages, Id, normalize_id, normalize_ids
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import STATE_WORDS, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import ABSENT, FILL_SOURCES, FILLED_BY_ASSUMPTION, PRESENT, UNSURE, Image

FILE_SUFFIX = ".json"

_ARRAY_KEY = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')


class Category(msgspec.Struct, gc=False):
    """A COCO category. `def_` is from LVIS, `description` from own exports."""

    id: Id
    name: str
    supercategory: str | None = None
    description: str | None = None
    def_: str | None = msgspec.field(default=None, name="def")


class CocoImage(TrapImage, gc=False):
    """A COCO image. `coco_url` replaces `file_name` in LVIS 1.0."""

    id: Id
    file_name: str = ""
    coco_url: str = ""
    neg_category_ids: list[Id] = msgspec.field(default_factory=list)
    unsure_category_ids: list[Id] = msgspec.field(default_factory=list)
    filled_category_ids: list[Id] = msgspec.field(default_factory=list)
    split: str = ""
    sha256: str = ""


class Annotation(TrapAnnotation, gc=False):
    """A COCO annotation without its box, mask and area."""

    image_id: Id
    category_id: Id
    source: str = ""
    score: float | None = None


CATEGORY_DECODER, IMAGE_DECODER = msgspec.json.Decoder(list[Category]), msgspec.json.Decoder(list[CocoImage])
ANNOTATION_DECODER = msgspec.json.Decoder(list[Annotation])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    keys = {match[1].decode() for match in _ARRAY_KEY.finditer(start)}
    if b'"imageId"' in start and b'"image_id"' not in start:  # iMaterialist has images and annotations, too
        return None
    if "annotations" not in keys and b'"detections"' in start:  # results of MegaDetector have images and info, too
        return None
    if start[:1] != b"{" or not keys or (len(keys) < 2 and b'"info"' not in start and b'"licenses"' not in start):
        return None
    return f"a COCO file: it has {' and '.join(sorted(keys))}"


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return an annotation file's labels in two passes, with some 50 bytes per image in memory.

    If `options.score_column` is NONE_VALUE, scored annotations are answers.
    """
    index = CocoIndex(path, problems)
    names, traps = [name for name, _ in index.classes], index.traps
    kept, decided = traps.decide_empty_categories(names, index.columns, options, index.is_own)
    index.classes = [index.classes[at] for at in kept]
    said = ["An annotation makes its category present; boxes and masks are not kept."]
    decided = [*decided]
    if index.scored and options.score_column == NONE_VALUE:
        said.append(f"{index.scored:,} annotations have a score, and are read as answers, as you say.")
    elif index.scored:
        why = (
            f"`score` is a model's: the {format_count(index.scored, 'annotation')} that have one are scores, not "
            "answers"
        )
        decided.append(Interpretation("score_column", "score", why, others=[NONE_VALUE]))
    if index.has_absent:
        said.append("neg_category_ids are absent.")
    said.append("All other categories of an image are unknown, unless the source names everything (--exhaustive).")
    if traps.is_known:
        said.append("Annotations of a sequence are labels of the event, not of its images.")
    traps.sentences[:0] = said
    items = _read_items(path, index, problems, options.score_column == NONE_VALUE)
    return Contents(index.classes, items, place="entry", sentences=traps.sentences, interpretations=decided)


class CocoIndex:
    """An index of the categories and images in one COCO file.

    Attributes:
        classes: (name, description) in file order.
        columns: Class index by category id.
    """

    def __init__(self, path: Path, problems: Problems):
        self.classes: list[tuple[str, str]] = []
        self.columns: dict[int | str, int] = {}
        self.images = CocoImages()
        self.has_absent, self.is_own, self.scored = False, False, 0
        self.traps = CameraTraps()
        numbers: dict[str, int] = {}
        arrays, silent = set(), Problems()  # `_items` notes the annotations that cannot be read
        for piece in read_pieces(path, {"categories", "images", "annotations"}.__contains__):
            arrays.add(piece.key)
            if piece.key == "categories":
                for index, category in piece.decode(CATEGORY_DECODER, problems):
                    category_id = normalize_id(category.id)
                    if category_id in self.columns:
                        problems.add(f"{piece.place(index)}: the id {category.id!r} is there twice")
                    elif category.name in numbers:  # categories with the same name are one class
                        self.columns[category_id] = numbers[category.name]
                    else:
                        numbers[category.name] = self.columns[category_id] = len(self.classes)
                        about = category.description or category.def_ or category.supercategory or ""
                        self.classes.append((category.name, about))
            elif piece.key == "images":
                for index, image in piece.decode(IMAGE_DECODER, problems):
                    self.has_absent |= bool(image.neg_category_ids)
                    self.is_own |= bool(image.sha256)
                    if problem := self.images.add(image.id, find_image_name(image)):
                        problems.add(f"{piece.place(index)}: {problem}")
                    else:
                        self.traps.add_image(image)
            elif b'"score"' in piece.text:  # rare, so that usual files are not decoded twice
                self.scored += sum(one.score is not None for _, one in piece.decode(ANNOTATION_DECODER, silent))
        if "annotations" in arrays and "categories" not in arrays:
            raise AnnotatorError(
                f"{path} has annotations but no categories: captions and the like are no labels. COCO files with "
                "labels are called instances_*.json."
            )
        if missing := {"images", "categories"} - arrays:
            raise AnnotatorError(f"{path} has no {' and no '.join(sorted(missing))}: it is no complete COCO file.")
        for image_id in self.images.finish():
            problems.add(f"images: the id {image_id} is there twice")


def find_image_name(image: CocoImage) -> str:
    """Return an image's file name, or in LVIS 1.0 the last two parts of its URL."""
    return image.file_name or "/".join(image.coco_url.split("/")[-2:])


def _read_items(path: Path, index: CocoIndex, problems: Problems, are_answers: bool) -> Iterator[Item]:
    silent = Problems()  # undecodable images were noted when the index was made
    divided = index.traps.create_divider(index.images, [name for name, _ in index.classes], index.columns)
    for piece in read_pieces(path, {"images", "annotations"}.__contains__):
        if piece.key == "images":
            for number, image in piece.decode(IMAGE_DECODER, silent):
                place = piece.place(number)
                labels = list(_read_category_lists(image, index, place, problems))
                item = Item(
                    find_image_name(image), place, labels, sha256=image.sha256, **index.traps.build_item_fields(image)
                )
                if image.split:
                    item.attributes = {"split": image.split, **item.attributes}
                yield item
        else:
            annotations = piece.decode(ANNOTATION_DECODER, problems)
            if index.scored and not are_answers:
                yield from _build_score_items(
                    [one for one in annotations if one[1].score is not None], index, piece.place, problems
                )
                annotations = [one for one in annotations if one[1].score is None]
            annotations, others = divided.divide(annotations, piece.place)
            yield from _build_present_items(annotations, index, piece.place, problems)
            yield from others
    yield from divided.finish()


def _read_category_lists(image: CocoImage, index: CocoIndex, place: str, problems: Problems) -> Iterator[ImportedLabel]:
    filled = set(image.filled_category_ids)
    for field, state, ids in (
        ("neg_category_ids", ABSENT, image.neg_category_ids),
        ("unsure_category_ids", UNSURE, image.unsure_category_ids),
    ):
        for category_id in ids:
            column = index.columns.get(normalize_id(category_id))
            if column is None:
                problems.add(f"{place}.{field}: no category has the id {category_id!r}")
            elif category_id not in filled:
                yield ImportedLabel(index.classes[column][0], state)
            else:
                yield ImportedLabel(index.classes[column][0], state, source=FILLED_BY_ASSUMPTION)


def _build_present_items(annotations: Sequence[tuple[int, Annotation]], index: CocoIndex, place, problems: Problems):
    if not annotations:
        return
    rows, columns = _find_cells(annotations, index, place, problems)
    good = np.flatnonzero((rows >= 0) & (columns >= 0))
    cells, first = np.unique(rows[good] * len(index.classes) + columns[good], return_index=True)
    given = [ImportedLabel(name, PRESENT) for name, _ in index.classes]
    row, labels, at = -1, [], 0
    for cell, number in zip(cells.tolist(), good[first].tolist(), strict=True):
        if cell // len(given) != row:
            if labels:
                yield Item(index.images.name(row), place(annotations[at][0]), labels)
            row, labels, at = cell // len(given), [], number
        source = annotations[number][1].source
        labels.append(given[cell % len(given)]._replace(source=source) if source else given[cell % len(given)])
    if labels:
        yield Item(index.images.name(row), place(annotations[at][0]), labels)


def _find_cells(annotations: Sequence[tuple[int, Annotation]], index: CocoIndex, place, problems: Problems):
    """Return rows and columns of annotations (n,), -1 where unknown, which is reported."""
    rows = index.images.find_rows([annotation.image_id for _, annotation in annotations])
    ids = normalize_ids([annotation.category_id for _, annotation in annotations])
    columns = np.array([index.columns.get(category_id, -1) for category_id in ids])
    for at in np.flatnonzero((rows < 0) | (columns < 0)).tolist():
        number, annotation = annotations[at]
        if rows[at] < 0:
            problems.add(f"{place(number)}: no image has the id {annotation.image_id!r}")
        if columns[at] < 0:
            problems.add(f"{place(number)}: no category has the id {annotation.category_id!r}")
    return rows, columns


def _build_score_items(annotations: Sequence[tuple[int, Annotation]], index: CocoIndex, place, problems: Problems):
    if not annotations:
        return
    rows, columns = _find_cells(annotations, index, place, problems)
    scores: dict[int, dict[str, float]] = {}
    for at in np.flatnonzero((rows >= 0) & (columns >= 0)).tolist():
        of_image, name = scores.setdefault(int(rows[at]), {}), index.classes[columns[at]][0]
        of_image[name] = max(of_image.get(name, float("-inf")), annotations[at][1].score or 0.0)
    for row, of_image in scores.items():
        yield Item(index.images.name(row), place(annotations[0][0]), scores=of_image, answered=False)


def write(view: View, output: Output) -> None:
    """Write all images to one file, and each split to a file of its own (labels.train.json)."""
    with ExitStack() as stack:
        writers = {
            name: _CocoWriter(view, output, f".{name}{FILE_SUFFIX}" if name else "", stack)
            for name in ("", *view.splits)
        }
        for block in view.blocks():
            for split, image, annotations in _format_entries(view, block):
                for name in {"", split}:
                    writers[name].add(image, annotations)
        for writer in writers.values():
            writer.finish()


class _CocoWriter:
    """A writer of a COCO file, which keeps annotations in a temporary file until the end."""

    def __init__(self, view: View, output: Output, name: str, stack: ExitStack):
        self._file = stack.enter_context(output.open_text(name))
        folder = output.path(name).parent
        temporary = tempfile.TemporaryFile("w+", dir=folder, encoding="utf-8", newline="")  # noqa: SIM115 - on the stack
        self._annotations: IO[str] = stack.enter_context(temporary)
        self._next, self._separator = 1, ""
        about = {"description": "Image-level labels: each annotation is a crowd whose region is the whole image."}
        self._file.write(f'{{"info": {json.dumps(about)}, "licenses": [],\n"categories": [\n')
        categories = [
            {"id": class_.id, "name": class_.name, "supercategory": class_.heading}
            | ({"description": class_.description} if class_.description else {})
            for class_ in view.classes
        ]
        self._file.write(",\n".join(json.dumps(category, ensure_ascii=False) for category in categories))
        self._file.write('\n],\n"images": [\n')

    def add(self, image: str, annotations: Sequence[str]) -> None:
        """Write an image and its annotations, which are JSON without the leading `{"id": ...,`."""
        self._file.write(self._separator + image)
        self._separator = ",\n"
        for annotation in annotations:
            separator = ",\n" if self._next > 1 else ""
            self._annotations.write(f'{separator}{{"id": {self._next}, {annotation}')
            self._next += 1

    def finish(self) -> None:
        self._file.write('\n],\n"annotations": [\n')
        self._annotations.seek(0)
        shutil.copyfileobj(self._annotations, self._file, 1 << 20)
        self._file.write("\n]}\n")


def _format_entries(view: View, block: Block) -> Iterator[tuple[str, str, list[str]]]:
    ids = [str(class_.id) for class_ in view.classes]
    is_filled = np.isin(block.sources, [view.sources.index(name) for name in FILL_SOURCES if name in view.sources])
    present, absent = block.values == 1, block.values == 0
    categories = _list_true_columns(present)
    not_exhaustive, *lists = (
        [", ".join([ids[column] for column in columns]) for columns in _list_true_columns(cells)]
        for cells in (present, absent, block.states == STATE_WORDS.index("unsure"), is_filled & absent)
    )
    names = ("neg_category_ids", "unsure_category_ids", "filled_category_ids")
    for row, image in enumerate(block.images):
        fields = f'{_format_image_fields(image)}, "not_exhaustive_category_ids": [{not_exhaustive[row]}]'
        for name, listed in zip(names, lists, strict=True):
            if listed[row] or name == "neg_category_ids":
                fields += f', "{name}": [{listed[row]}]'
        if event := block.event(row):  # as COCO Camera Traps has it
            fields += f', "seq_id": "{event.id}", "frame_num": {event.frame}, "seq_num_frames": {event.images}'
        if block.splits[row]:
            fields += f', "split": {json.dumps(block.splits[row], ensure_ascii=False)}'
        region, annotations = _format_whole_region(image), []
        for column in categories[row]:
            source = f', "source": "{view.sources[block.sources[row, column]]}"' if is_filled[row, column] else ""
            annotations.append(f'"category_id": {ids[column]}{source}, {region}')
        yield block.splits[row], f"{{{fields}}}", annotations


def _format_image_fields(image: Image) -> str:
    name = json.dumps(image.name, ensure_ascii=False)
    size = f'"width": {image.width}, "height": {image.height}'
    return f'"id": {image.id}, "file_name": {name}, {size}, "sha256": "{image.sha256}"'


def _format_whole_region(image: Image) -> str:
    width, height = image.width, image.height
    return (
        f'"image_id": {image.id}, "iscrowd": 1, "area": {width * height}, "bbox": [0, 0, {width}, {height}], '
        f'"segmentation": {{"size": [{height}, {width}], "counts": [0, {width * height}]}}}}'
    )


def _list_true_columns(cells: np.ndarray) -> list[list[int]]:
    rows, columns = np.nonzero(cells)
    borders = np.searchsorted(rows, np.arange(len(cells) + 1)).tolist()
    listed = columns.tolist()
    return [listed[start:end] for start, end in pairwise(borders)]


COCO = Format(
    name="coco",
    about="COCO JSON with image-level annotations; absent classes as in LVIS. Read by pycocotools and torchvision",
    ending=FILE_SUFFIX,
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=False, absent=False, provenance=True),
)
