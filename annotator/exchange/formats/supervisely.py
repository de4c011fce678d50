"""Supervisely: meta.json, and data sets with img/ and ann/ (one JSON file per image).

Format: https://docs.supervisely.com/data-organization/00_ann_format_navi. Image tags and object classes are
present, tags with values as "weather: rain".
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files

META_FILE, ANNOTATION_FOLDER, IMAGE_FOLDER = "meta.json", "ann", "img"
MAX_FILE_BYTES = 64 << 20  # bytes of a file


class _Tag(msgspec.Struct):
    name: str = ""
    value: Any = None
    labelerLogin: str | None = None  # noqa: N815 - as the file has it
    createdAt: str | None = None  # noqa: N815


class _Object(msgspec.Struct):
    classTitle: str = ""  # noqa: N815
    labelerLogin: str | None = None  # noqa: N815
    createdAt: str | None = None  # noqa: N815


class _File(msgspec.Struct):
    tags: list[_Tag | str] = []
    objects: list[_Object] = []


class _Class(msgspec.Struct):
    title: str = ""


class _Meta(msgspec.Struct):
    classes: list[_Class] = []


_FILE_DECODER, _META_DECODER = msgspec.json.Decoder(_File), msgspec.json.Decoder(_Meta)


def recognize(path: Path) -> str | None:
    start = read_start(path / META_FILE) if (path / META_FILE).is_file() else b""
    if start[:1] != b"{" or b'"classes"' not in start:
        return None
    if any((folder / ANNOTATION_FOLDER).is_dir() for folder in (path, *path.iterdir())):
        return "a project of Supervisely: it has meta.json with classes, and folders ann"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    listing = list_files(path, leave_out=path)
    names = [name for name in listing.paths if name.split("/")[-2:-1] == [ANNOTATION_FOLDER] and name.endswith(".json")]
    meta = _parse_file(path / META_FILE, META_FILE, _META_DECODER, problems)
    classes = [one.title for one in meta.classes if one.title] if meta else []
    said = ["Tags of images and the classes of objects are present. Shapes are not kept."]
    folder = path if listing.list_images() else None
    items = _read_items(path, names, problems)
    return Contents([(name, "") for name in dict.fromkeys(classes)], items, folder, "file", said)


def _read_items(root: Path, names: list[str], problems: Problems) -> Iterator[Item]:
    for name in names:
        found = _parse_file(root / name, name, _FILE_DECODER, problems)
        if found is None:
            continue
        folder, _, file = name.rpartition("/")
        data_set = folder.rpartition("/")[0]
        image = "/".join(part for part in (data_set, IMAGE_FOLDER, file.removesuffix(".json")) if part)
        labels: dict[str, ImportedLabel] = {}
        for tag in found.tags:
            word = tag if isinstance(tag, str) else tag.name if tag.value in (None, "") else f"{tag.name}: {tag.value}"
            who = ("", None) if isinstance(tag, str) else (tag.labelerLogin or "", parse_iso_time(tag.createdAt or ""))
            if word:
                labels[word] = ImportedLabel(word, PRESENT, *who)
        for one in found.objects:
            if one.classTitle:
                who = one.labelerLogin or "", parse_iso_time(one.createdAt or "")
                labels.setdefault(one.classTitle, ImportedLabel(one.classTitle, PRESENT, *who))
        yield Item(image, name, list(labels.values()), file=find_file_inside(root, image))


def _parse_file(path: Path, place: str, decoder: "msgspec.json.Decoder", problems: Problems) -> Any:
    try:
        with open_file(path) as file:
            text = file.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            problems.add(f"{place} has more than {MAX_FILE_BYTES >> 20} MB")
            return None
        return decoder.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        problems.add(f"{place} cannot be read: {error.strerror or error}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.add(f"{place} is no file of Supervisely: {error}")
    return None


SUPERVISELY = Format(
    name="supervisely",
    about="Supervisely: meta.json, img/ with images and ann/ with a JSON file each",
    recognize=recognize,
    read=read,
)
