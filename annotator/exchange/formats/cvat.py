"""CVAT for images 1.1: one XML file with tags and shapes per image.

Format: https://docs.cvat.ai/docs/dataset_management/formats/format-cvat/.

CVAT has no absent tag, so classes get labels such as "dog (absent)" with the attributes `class` and `state`.
Other tools then find unusual classes but no false labels. Tags with source "auto" are not answers.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xml_text import check_xml_text
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import STATE_WORDS, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.embedded_extras import iter_image_labels
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import FILL_SOURCES, FILLED_BY_MODEL, PRESENT, STATES
from annotator.store.disk.open_files import open_file

LABELS_SUFFIX = ".labels.json"
ANNOTATIONS_FILE = "annotations.xml"
ZIP_MAGIC = b"PK\3\4"  # the first bytes of a zip
IMAGES_FOLDER = "images"  # the folder of a zip with images; in that of a project, with a folder a subset
MAX_DEPTH = 50
MAX_ELEMENT_BYTES = 64 << 20  # bytes without an image
MAX_CACHED_LABELS = 100_000  # labels
SHAPE_TAGS = ("tag", "box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton")


def recognize(path: Path) -> str | None:
    try:
        with ExitStack() as stack:
            start = _open_xml(path, stack).read(1 << 14) if _find_xml(path) else b""
    except (OSError, AnnotatorError):
        return None
    if b"<annotations" in start and b"<version>1.1</version>" in start:
        return "CVAT for images 1.1: it has annotations with the version 1.1"
    return None


def _find_xml(path: Path) -> Path | None:
    if path.is_dir():
        return path / ANNOTATIONS_FILE if (path / ANNOTATIONS_FILE).is_file() else None
    start = read_start(path, 4) if path.is_file() else b""
    return path if start.startswith((b"<", ZIP_MAGIC)) else None


def _open_xml(path: Path, stack: ExitStack) -> BinaryIO:
    file = stack.enter_context(open_file(_find_xml(path) or path))
    start = file.read(len(ZIP_MAGIC))
    file.seek(0)
    if start != ZIP_MAGIC:
        return file
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        return stack.enter_context(archive.open(ANNOTATIONS_FILE))  # type: ignore[return-value]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise AnnotatorError(f"{path} is no whole zip: {error}. Was it copied as a whole?") from error
    except KeyError as error:
        raise AnnotatorError(f"{path} holds no {ANNOTATIONS_FILE}, which a zip of CVAT has.") from error


class _LabelMeaning(NamedTuple):
    """The class and state that a CVAT label stands for."""

    class_name: str
    state: int = PRESENT


class _BoundedReader:
    """A file reader that raises AnnotatorError for XML elements of too many bytes."""

    def __init__(self, file: BinaryIO, path: Path):
        self._file, self._path, self._count = file, path, 0

    def read(self, size: int = -1) -> bytes:
        self._count += size
        if self._count > MAX_ELEMENT_BYTES:
            raise AnnotatorError(
                f"{self._path} has {MAX_ELEMENT_BYTES >> 20} MB without an image. Is it the right file?"
            )
        return self._file.read(size)

    def reset_count(self) -> None:
        self._count = 0


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images as items, whose place is their number from 1.

    Raises AnnotatorError for invalid XML, XML with entities or too deep, or CVAT for video.
    """
    reader = _Reader(path, problems)
    items = reader.read_items()
    reader.first = next(items, None)  # the labels precede the images, so they are known once the first image is read
    classes = dict.fromkeys(meaning.class_name for meaning in reader.meanings.values())
    return Contents(
        [(name, "") for name in classes],
        reader.prepend_first(items),
        folder=path if path.is_dir() else None,
        place="image",
        sentences=["Tags and the labels of shapes are present; what is not tagged stays unknown."],
    )


class _Reader:
    """A reader of one CVAT file, with the class and state of each label."""

    def __init__(self, path: Path, problems: Problems):
        self._path, self._problems = path, problems
        self.meanings: dict[str, _LabelMeaning] = {}
        self.first: Item | None = None
        self._plain: dict[
            tuple[str | None, str | None], ImportedLabel
        ] = {}  # (label, source) of tags without attributes

    def prepend_first(self, rest: Iterator[Item]) -> Iterator[Item]:
        if self.first:
            yield self.first
        yield from rest

    def read_items(self) -> Iterator[Item]:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse

        depth = number = 0
        try:
            with ExitStack() as stack:
                file = _BoundedReader(_open_xml(self._path, stack), self._path)
                root = None
                for event, element in iterparse(file, events=("start", "end")):
                    if event == "start":
                        depth += 1
                        if depth < 3 or depth > MAX_DEPTH:
                            root = element if root is None else root
                            self._check_element(element.tag, depth)
                        continue
                    depth -= 1
                    if depth != 1:
                        continue
                    file.reset_count()
                    if element.tag == "meta":
                        self._read_labels(element)
                    elif element.tag == "image":
                        number += 1
                        if item := self._build_item(element, number):
                            yield item
                    if root is not None:
                        root.clear()
        except ParseError as error:
            raise AnnotatorError(f"{self._path} is no whole XML file: {error}.") from error
        except DefusedXmlException as error:
            raise AnnotatorError(f"{self._path} declares entities or a document type: {error!r}.") from error
        except (ValueError, LookupError) as error:  # an invalid or unknown encoding
            raise AnnotatorError(f"{self._path} cannot be read as XML: {error}.") from error
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise AnnotatorError(f"{self._path} cannot be read: {error}.") from error

    def _check_element(self, tag: str, depth: int) -> None:
        if depth == 1 and tag != "annotations":
            raise AnnotatorError(f"{self._path} is not of CVAT: it begins with <{tag}>, not with <annotations>.")
        if depth == 2 and tag == "track":
            raise AnnotatorError(
                f"{self._path} is CVAT for video: its tracks name frames, not images. Export it as CVAT for images."
            )
        if depth > MAX_DEPTH:
            raise AnnotatorError(f"{self._path} is nested more than {MAX_DEPTH} deep.")

    def _read_labels(self, meta: Any) -> None:
        for label in meta.iter("label"):
            name = label.findtext("name")
            if not name:
                continue
            facts = {
                attribute.findtext("name"): attribute.findtext("default_value") for attribute in label.iter("attribute")
            }
            self.meanings[name] = _parse_meaning(name, facts, _LabelMeaning(name))

    def _build_label(self, label: str, source: str | None, shape: Any) -> ImportedLabel:
        facts = {attribute.get("name"): attribute.text for attribute in shape if attribute.tag == "attribute"}
        meaning = _parse_meaning(label, facts, self.meanings.get(label) or _LabelMeaning(label))
        given = ImportedLabel(*meaning, source=FILLED_BY_MODEL if source == "auto" else "")
        if not len(shape) and len(self._plain) < MAX_CACHED_LABELS:
            self._plain[label, source] = given
        return given

    def _build_item(self, image: Any, number: int) -> Item | None:
        name = image.get("name")
        if not name:
            self._problems.add(f"image {number}: it has no name")
            return None
        labels: dict[tuple[str, int], ImportedLabel] = {}
        for shape in image:
            if shape.tag not in SHAPE_TAGS:
                continue
            label, source = shape.get("label"), shape.get("source")
            given = self._plain.get((label, source)) if not len(shape) else None
            if given is None:
                if not label:
                    self._problems.add(f"image {number} ({name}): a {shape.tag} without a label")
                    continue
                given = self._build_label(label, source, shape)
            meaning = given[:2]
            if meaning not in labels or labels[meaning].source:
                labels[meaning] = given
        subset = image.get("subset")
        return Item(
            name,
            number,
            list(labels.values()),
            file=self._find_file(name, subset or ""),
            attributes={"split": subset} if subset else {},
            answered=bool(labels),
        )

    def _find_file(self, name: str, subset: str) -> str:
        if not self._path.is_dir():
            return ""
        places = (f"{IMAGES_FOLDER}/{subset}/{name}" if subset else "", f"{IMAGES_FOLDER}/{name}", name)
        return next((file for place in places if (file := find_file_inside(self._path, place))), "")


def _parse_meaning(label: str, facts: dict[Any, Any], otherwise: _LabelMeaning) -> _LabelMeaning:
    """Return the class and state in a label's attributes, or `otherwise` without a known `state`."""
    state = STATES.get(facts.get("state") or "")
    if state is None:
        return otherwise
    return _LabelMeaning(facts.get("class") or (otherwise.class_name if otherwise else label), state)


def write(view: View, output: Output) -> None:
    """Write the XML and the task labels. Names that XML cannot hold raise AnnotatorError."""
    names = [class_.name for class_ in view.classes]
    check_xml_text("classes", names)
    labels = _list_labels(names)
    with output.open_text(LABELS_SUFFIX) as file:
        file.write(json.dumps([_format_raw_label(*label) for label in labels], ensure_ascii=False, indent=1) + "\n")
    tags = _format_tags(view, labels, len(names))
    number = 0
    with output.open_text() as file:
        file.write(_format_head(view, labels))
        for block in view.blocks():
            check_xml_text("images", [image.name for image in block.images])
            lines: list[str] = []
            for row, (image, given) in enumerate(zip(block.images, iter_image_labels(block), strict=True)):
                subset = f" subset={quoteattr(block.splits[row])}" if block.splits[row] else ""
                lines.append(
                    f'  <image id="{number}" name={quoteattr(image.name)}{subset} width="{image.width}" '
                    f'height="{image.height}">\n'
                )
                cells = zip(given.sources, given.states, given.columns, strict=True)
                lines += [tags[source][state][column] for source, state, column in cells]
                lines.append("  </image>\n")
                number += 1
            file.write("".join(lines))
        file.write("</annotations>\n")


def _list_labels(names: list[str]) -> list[tuple[str, str, str]]:
    used = set(names)
    listed = [(name, name, "present") for name in names]
    for state in STATE_WORDS[2:]:
        for name in names:
            label = f"{name} ({state})"
            while label in used:
                label += "'"
            used.add(label)
            listed.append((label, name, state))
    return listed


def _format_raw_label(label: str, name: str, state: str) -> dict[str, Any]:
    attributes = [
        {"name": key, "mutable": False, "input_type": "text", "default_value": value, "values": [value]}
        for key, value in (("class", name), ("state", state))
    ]
    return {"name": label, "type": "tag", "attributes": attributes if state != "present" else []}


def _format_tags(view: View, labels: list[tuple[str, str, str]], count: int) -> list[list[list[str]]]:
    quoted = [quoteattr(label) for label, _, _ in labels]
    found: list[list[list[str]]] = []
    for source in view.sources:
        how = "auto" if source in FILL_SOURCES else "file" if source == "import" else "manual"
        lines = [f'    <tag label={label} source="{how}"></tag>\n' for label in quoted]
        found.append([[], *(lines[start : start + count] for start in range(0, 3 * count, count))] if count else [[]])
    return found


def _format_head(view: View, labels: list[tuple[str, str, str]]) -> str:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n    <task>\n'
        f"      <name>annotator</name>\n      <size>{view.images}</size>\n      <mode>annotation</mode>\n"
        "      <labels>\n"
    ]
    for label in labels:
        raw = _format_raw_label(*label)
        attributes = "".join(
            f"            <attribute>\n              <name>{attribute['name']}</name>\n"
            "              <mutable>False</mutable>\n              <input_type>text</input_type>\n"
            f"              <default_value>{escape(attribute['default_value'])}</default_value>\n"
            f"              <values>{escape(attribute['default_value'])}</values>\n            </attribute>\n"
            for attribute in raw["attributes"]
        )
        lines.append(
            f"        <label>\n          <name>{escape(raw['name'])}</name>\n          <type>tag</type>\n"
            f"          <attributes>\n{attributes}          </attributes>\n        </label>\n"
        )
    lines.append("      </labels>\n    </task>\n  </meta>\n")
    return "".join(lines)


CVAT = Format(
    "cvat",
    "CVAT for images 1.1: tags, and labels for absent and unsure classes",
    ".xml",
    recognize,
    read,
    write,
    FormatLosses(unsure=False),
)
