"""Datumaro's own format: annotations/<subset>.json and images/<subset>/ (dm_format_version 1.0).

https://github.com/open-edge-platform/datumaro; its tool converts this folder into some forty formats.

Only present classes are label annotations, because the formats that Datumaro converts the folder to treat every
annotation as present. Absent and unsure classes are lists in the item's attributes, `attr`, beside the data of
extras.py.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.inside import file_inside
from annotator.exchange.files.json_stream import check, pieces, starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.extras import KEY, Answers, Extras, Origins, answers, extras, given_by
from annotator.exchange.formats.shared.split_names import split_names
from annotator.exchange.formats.view import Block, Output, View
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

_CATEGORIES = re.compile(rb'"categories"\s*:\s*\{')
REST = "default"  # the subset of images that are in no split: Datumaro's own word
IMAGE = 2  # datumaro.components.media.MediaType.IMAGE


class _Annotation(msgspec.Struct):
    label_id: int | None = None
    type: str = "label"


class _Attributes(msgspec.Struct, rename={"extras": KEY}):
    absent: Any = None
    unsure: Any = None
    extras: Extras | None = None


class _Image(msgspec.Struct):
    path: str | None = None


class _Item(msgspec.Struct):
    id: str
    annotations: list[_Annotation] = []
    attr: _Attributes | None = None
    image: _Image | None = None


class _Label(msgspec.Struct):
    name: str


def recognise(path: Path) -> str | None:
    """Return why a path is Datumaro, or None. It is a folder with annotations/*.json, or one such file."""
    for file in _files(path)[:1]:
        start = starts_with(file)
        is_ours = b'"dm_format_version"' in start or b'"infos"' in start or b'"info"' in start
        if start.startswith(b"{") and is_ours and _CATEGORIES.search(start):  # those of COCO are a list
            return f"Datumaro's format: {file.name} has categories and items"
    return None


def _files(path: Path) -> list[Path]:
    return sorted((path / "annotations").glob("*.json")) if path.is_dir() else [path] if path.is_file() else []


def read(path: Path, problems: Problems) -> Contents:
    """Return the items of all subsets; a place is the subset's file and the index of the item in it.

    Raises:
        AnnotatorError: A file is not JSON, or its categories are not a list of names.
    """
    files = _files(path)
    if not files:
        raise AnnotatorError(f"{path} has no annotations/*.json, which hold the items of Datumaro's format.")
    labels = {file: _labels(file) for file in files}
    images = (path if path.is_dir() else path.parent.parent) / "images"
    return Contents(
        [(name, "") for name in dict.fromkeys(name for names in labels.values() for name in names)],
        (item for file in files for item in _items(file, labels[file], images, problems)),
        folder=images if images.is_dir() else None,
        place="item",
        said=["Every annotation of a class is present; attr.absent and attr.unsure list absent and unsure classes."],
    )


def _labels(file: Path) -> list[str]:
    """Return the names of the classes, in the order of their ids."""
    import ijson

    check(file)  # refuses a file that is not JSON or is nested too deep
    try:
        with open_file(file) as opened:
            found = next(ijson.items(opened, "categories.label.labels"), [])
        return [label.name for label in msgspec.convert(found, list[_Label])]
    except (ijson.JSONError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file}: the field categories.label.labels cannot be read: {error}.") from error


def _items(file: Path, labels: list[str], images: Path, problems: Problems) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(list[_Item])
    subset, has_images = file.stem, images.is_dir()
    for piece in pieces(file, wanted=lambda key: key == "items"):
        for index, item in piece.decode(decoder, problems):
            place = f"{file.name}: items[{index}]"
            kept = item.attr.extras if item.attr else None
            path = (item.image.path if item.image else None) or f"{item.id}.jpg"
            name = kept.image if kept and kept.image else path
            origins = _origins(item, labels, kept, place, problems)
            found = has_images and (file_inside(images, f"{subset}/{path}") or file_inside(images, path))
            yield Item(
                name,
                place,
                given_by(origins),
                scores=kept.probabilities if kept else {},
                file=found or "",
                sha256=kept.sha256 if kept else "",
                attributes=kept.facts() if kept else {} if subset == REST else {"split": subset},
                remarks=kept.remarks() if kept else (),
                answered=bool(item.annotations or (kept and kept.answers)),
            )


def _origins(item: _Item, labels: list[str], kept: Extras | None, place: str, problems: Problems) -> Origins:
    nobody = ("", None, "")
    written = kept.origins() if kept else {}
    named: dict[tuple[str, int], None] = {}
    for number, annotation in enumerate(item.annotations):
        if annotation.label_id is None:
            continue
        if not 0 <= annotation.label_id < len(labels):
            problems.add(f"{place}.annotations[{number}]: there is no label {annotation.label_id}")
            continue
        named[labels[annotation.label_id], PRESENT] = None
    for state, classes in ((ABSENT, item.attr.absent), (UNSURE, item.attr.unsure)) if item.attr else ():
        if isinstance(classes, list):
            named |= {(name, state): None for name in classes if isinstance(name, str)}
    return {cell: written.get(cell, nobody) for cell in named}


def write(view: View, output: Output) -> None:
    """Write one JSON file a subset, and the images if the export has images."""
    names = [class_.name for class_ in view.classes]
    subsets = split_names(view, REST)
    encode = msgspec.json.Encoder().encode
    with ExitStack() as stack:
        opened: dict[str, BinaryIO] = {}

        def put(subset: str, items: list[bytes]) -> None:
            if subset in opened:
                opened[subset].write(b",\n")
            else:
                opened[subset] = stack.enter_context(output.binary(f"annotations/{subset}.json"))
                opened[subset].write(encode(_head(names))[:-1] + b',"items":[\n')
            opened[subset].write(b",\n".join(items))

        for block in view.blocks():
            lines: dict[str, list[bytes]] = {}
            for row, given in enumerate(answers(block)):
                subset = subsets[block.splits[row]]
                output.image(block.images[row], f"images/{subset}/{block.files[row]}")
                lines.setdefault(subset, []).append(encode(_item(view, names, block, row, given)))
            for subset, items in lines.items():
                put(subset, items)
        if not opened:
            put(REST, [])
        for file in opened.values():
            file.write(b"\n]}\n")


def _head(names: list[str]) -> dict[str, Any]:
    labels = [{"name": name, "parent": "", "attributes": []} for name in names]
    categories = {"label": {"labels": labels, "label_groups": [], "attributes": []}}
    return {"dm_format_version": "1.0", "media_type": IMAGE, "infos": {}, "categories": categories}


def _item(view: View, names: list[str], block: Block, row: int, given: Answers) -> dict[str, Any]:
    image, file = block.images[row], block.files[row]
    _, absent, unsure = given.by_state(names)
    present = [column for column, state in zip(given.columns, given.states, strict=True) if state == 1]
    return {
        "id": PurePosixPath(file).stem,
        "annotations": [
            {"id": number, "type": "label", "attributes": {}, "group": 0, "label_id": column}
            for number, column in enumerate(present)
        ],
        "attr": {"absent": absent, "unsure": unsure, KEY: extras(view, names, block, row, given)},
        "image": {"path": file, "size": [image.height, image.width]},
    }


DATUMARO = Format(
    "datumaro",
    "Datumaro: its own JSON, from which its tool makes many other formats",
    "",
    recognise,
    read,
    write,
    Lost(unsure=False, provenance=False),
    "link",
)
