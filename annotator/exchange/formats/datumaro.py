"""Datumaro format 1.0: annotations/<subset>.json and images/<subset>/.

See https://github.com/open-edge-platform/datumaro. Its conversions take annotations for present, so absent
and unsure classes are item attributes.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import check_json, read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.export_view import Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.embedded_extras import (
    EXTRAS_KEY,
    Extras,
    ImageLabels,
    Origins,
    build_extras,
    iter_image_labels,
    to_imported_labels,
)
from annotator.exchange.formats.shared.split_names import make_split_names
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

_CATEGORIES_KEY = re.compile(rb'"categories"\s*:\s*\{')
DEFAULT_SUBSET = "default"  # the subset of images that are in no split: Datumaro's own word
IMAGE_MEDIA_TYPE = 2  # datumaro.components.media.MediaType.IMAGE


class _Annotation(msgspec.Struct):
    label_id: int | None = None
    type: str = "label"


class _Attributes(msgspec.Struct, rename={"extras": EXTRAS_KEY}):
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


def recognize(path: Path) -> str | None:
    for file in _list_annotation_files(path)[:1]:
        start = read_start(file)
        is_ours = b'"dm_format_version"' in start or b'"infos"' in start or b'"info"' in start
        if start.startswith(b"{") and is_ours and _CATEGORIES_KEY.search(start):  # those of COCO are a list
            return f"Datumaro's format: {file.name} has categories and items"
    return None


def _list_annotation_files(path: Path) -> list[Path]:
    return sorted((path / "annotations").glob("*.json")) if path.is_dir() else [path] if path.is_file() else []


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the items of all subsets. Raises AnnotatorError for invalid JSON or categories."""
    files = _list_annotation_files(path)
    if not files:
        raise AnnotatorError(f"{path} has no annotations/*.json, which hold the items of Datumaro's format.")
    labels = {file: _read_label_names(file) for file in files}
    images = (path if path.is_dir() else path.parent.parent) / "images"
    return Contents(
        [(name, "") for name in dict.fromkeys(name for names in labels.values() for name in names)],
        (item for file in files for item in _read_items(file, labels[file], images, problems)),
        folder=images if images.is_dir() else None,
        place="item",
        sentences=[
            "Every annotation of a class is present; attr.absent and attr.unsure list absent and unsure classes."
        ],
    )


def _read_label_names(file: Path) -> list[str]:
    import ijson

    check_json(file)  # refuses a file that is not JSON or is nested too deep
    try:
        with open_file(file) as opened:
            found = next(ijson.items(opened, "categories.label.labels"), [])
        return [label.name for label in msgspec.convert(found, list[_Label])]
    except (ijson.JSONError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file}: the field categories.label.labels cannot be read: {error}.") from error


def _read_items(file: Path, labels: list[str], images: Path, problems: Problems) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(list[_Item])
    subset, has_images = file.stem, images.is_dir()
    for piece in read_pieces(file, wanted=lambda key: key == "items"):
        for index, item in piece.decode(decoder, problems):
            place = f"{file.name}: items[{index}]"
            kept = item.attr.extras if item.attr else None
            path = (item.image.path if item.image else None) or f"{item.id}.jpg"
            name = kept.image if kept and kept.image else path
            origins = _collect_origins(item, labels, kept, place, problems)
            found = has_images and (find_file_inside(images, f"{subset}/{path}") or find_file_inside(images, path))
            yield Item(
                name,
                place,
                to_imported_labels(origins),
                scores=kept.probabilities if kept else {},
                file=found or "",
                sha256=kept.sha256 if kept else "",
                attributes=kept.list_attributes() if kept else {} if subset == DEFAULT_SUBSET else {"split": subset},
                remarks=kept.list_remarks() if kept else (),
                answered=bool(item.annotations or (kept and kept.answers)),
            )


def _collect_origins(item: _Item, labels: list[str], kept: Extras | None, place: str, problems: Problems) -> Origins:
    nobody = ("", None, "")
    written = kept.list_origins() if kept else {}
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
    """Write one JSON file per subset, and images if exported."""
    names = [class_.name for class_ in view.classes]
    subsets = make_split_names(view, DEFAULT_SUBSET)
    encode = msgspec.json.Encoder().encode
    with ExitStack() as stack:
        opened: dict[str, BinaryIO] = {}

        def put(subset: str, items: list[bytes]) -> None:
            if subset in opened:
                opened[subset].write(b",\n")
            else:
                opened[subset] = stack.enter_context(output.open_binary(f"annotations/{subset}.json"))
                opened[subset].write(encode(_build_head(names))[:-1] + b',"items":[\n')
            opened[subset].write(b",\n".join(items))

        for block in view.blocks():
            lines: dict[str, list[bytes]] = {}
            for row, given in enumerate(iter_image_labels(block)):
                subset = subsets[block.splits[row]]
                output.write_image(block.images[row], f"images/{subset}/{block.files[row]}")
                lines.setdefault(subset, []).append(encode(_build_entry(view, names, block, row, given)))
            for subset, items in lines.items():
                put(subset, items)
        if not opened:
            put(DEFAULT_SUBSET, [])
        for file in opened.values():
            file.write(b"\n]}\n")


def _build_head(names: list[str]) -> dict[str, Any]:
    labels = [{"name": name, "parent": "", "attributes": []} for name in names]
    categories = {"label": {"labels": labels, "label_groups": [], "attributes": []}}
    return {"dm_format_version": "1.0", "media_type": IMAGE_MEDIA_TYPE, "infos": {}, "categories": categories}


def _build_entry(view: View, names: list[str], block: Block, row: int, given: ImageLabels) -> dict[str, Any]:
    image, file = block.images[row], block.files[row]
    _, absent, unsure = given.by_state(names)
    present = [column for column, state in zip(given.columns, given.states, strict=True) if state == 1]
    return {
        "id": PurePosixPath(file).stem,
        "annotations": [
            {"id": number, "type": "label", "attributes": {}, "group": 0, "label_id": column}
            for number, column in enumerate(present)
        ],
        "attr": {"absent": absent, "unsure": unsure, EXTRAS_KEY: build_extras(view, names, block, row, given)},
        "image": {"path": file, "size": [image.height, image.width]},
    }


DATUMARO = Format(
    "datumaro",
    "Datumaro: its own JSON, from which its tool makes many other formats",
    "",
    recognize,
    read,
    write,
    FormatLosses(unsure=False, provenance=False),
    "link",
)
