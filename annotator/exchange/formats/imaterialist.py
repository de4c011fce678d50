"""Kaggle's iMaterialist JSON: images by imageId, and annotations with lists of label ids.

{"images": [{"imageId", "url"}], "annotations": [{"imageId", "labelId": ["95", "66"]}]}. The file has no class names, so
they must be added as "categories": [{"id": "66", "name": "dress"}].
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.image_addresses import extract_image_name
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

_IMAGE_ENTRY = re.compile(rb'"images"\s*:\s*\[\s*\{[^{}\[\]]*"imageId"\s*:')
_ANNOTATION_ENTRY = re.compile(rb'"annotations"\s*:\s*\[\s*\{(?=[^{}]*"labelId"\s*:)(?=[^{}]*"imageId"\s*:)')
_ARRAY_KEYS = frozenset(("images", "annotations", "categories"))


class _NamedId(msgspec.Struct):
    id: str | int
    name: str


class _ImageEntry(msgspec.Struct):
    imageId: str | int  # noqa: N815 - as the file has it
    url: str = ""


class _LabelEntry(msgspec.Struct):
    imageId: str | int  # noqa: N815 - as the file has it
    labelId: list[str | int]  # noqa: N815 - as the file has it


_NAME_DECODER = msgspec.json.Decoder(list[_NamedId])
_IMAGE_DECODER = msgspec.json.Decoder(list[_ImageEntry])
_LABEL_DECODER = msgspec.json.Decoder(list[_LabelEntry])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    if start[:1] == b"{" and (_IMAGE_ENTRY.search(start) or _ANNOTATION_ENTRY.search(start)):
        return "a file of iMaterialist: its images and annotations have an imageId"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images. Raises AnnotatorError if the file names no classes."""
    names: dict[str, str] = {}
    images: dict[str, str] = {}
    for piece in read_pieces(path, _ARRAY_KEYS.__contains__):
        if piece.key == "categories":
            names |= {str(one.id): one.name for _, one in piece.decode(_NAME_DECODER, problems)}
        elif piece.key == "images":
            images |= {str(one.imageId): one.url for _, one in piece.decode(_IMAGE_DECODER, problems)}
    if not names:
        raise AnnotatorError(
            f"{path} has label ids and no class names. Add them to the file next to `images`, from the data set's list "
            'of labels: "categories": [{"id": "66", "name": "dress"}, ...]. Or make a CSV with the columns image and '
            "labels."
        )
    said = ["The labels of an image are present; all others are unknown, unless the source names everything."]
    classes = [(name, "") for name in dict.fromkeys(names.values())]
    return Contents(classes, _read_items(path, names, images, problems), place="entry", sentences=said)


def _read_items(path: Path, names: dict[str, str], images: dict[str, str], problems: Problems) -> Iterator[Item]:
    for piece in read_pieces(path, lambda key: key == "annotations"):
        for index, entry in piece.decode(_LABEL_DECODER, problems):
            place = piece.place(index)
            if unknown := [one for one in entry.labelId if str(one) not in names]:
                problems.add(f"{place}: the label id {unknown[0]!r:.100} is not in `categories`")
            elif not (image := extract_image_name(images.get(str(entry.imageId), ""))):
                problems.add(f"{place}: the image {entry.imageId!r:.100} has no url in `images`")
            else:
                labels = dict.fromkeys(names[str(one)] for one in entry.labelId)
                yield Item(image, place, [ImportedLabel(name, PRESENT) for name in labels])


IMATERIALIST = Format(
    name="imaterialist",
    about="Kaggle's iMaterialist JSON: label ids by imageId, with class names added as categories",
    ending=".json",
    recognize=recognize,
    read=read,
)
