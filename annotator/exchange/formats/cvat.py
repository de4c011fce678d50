"""CVAT for images 1.1: one XML file with tags, boxes and other shapes of each image.

The format: https://docs.cvat.ai/docs/dataset_management/formats/format-cvat/.

A tag with a class's own label means present. CVAT has no tag for "absent": each class has two more labels, "dog
(absent)" and "dog (unsure)", whose attributes `class` and `state` give their meaning. A tool that does not know these
attributes so finds unusual classes, but no false labels. The file beside it has the labels of a task, for CVAT's raw
label editor. CVAT keeps 64 letters of a label.

When read, annotations.xml may lie in a zip or beside the folder `images` of an unpacked one. A tag that a model made
(source "auto") gets the source "model" and does not count as an answer of a person.
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
from annotator.exchange.files.inside import file_inside
from annotator.exchange.files.json_stream import starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xml_text import refuse_impossible
from annotator.exchange.formats.contents import Contents, Given, Item
from annotator.exchange.formats.format import Format, Lost
from annotator.exchange.formats.shared.extras import answers
from annotator.exchange.formats.view import STATE_WORDS, Output, View
from annotator.records import FILLED, MODEL, PRESENT, STATES
from annotator.store.disk.open_files import open_file

LABELS = ".labels.json"
XML = "annotations.xml"
ZIP = b"PK\3\4"  # the first bytes of a zip
IMAGES = "images"  # the folder of a zip with images; in that of a project, with a folder a subset
DEEPEST = 50
LARGEST = 64 << 20  # bytes without an image
MEMORIZED = 100_000  # labels
SHAPES = ("tag", "box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton")


def recognise(path: Path) -> str | None:
    """Return why a path is CVAT, or None. It is an XML file, or annotations.xml in a folder or zip."""
    try:
        with ExitStack() as stack:
            start = _open(path, stack).read(1 << 14) if _xml_of(path) else b""
    except (OSError, AnnotatorError):
        return None
    if b"<annotations" in start and b"<version>1.1</version>" in start:
        return "CVAT for images 1.1: it has annotations with the version 1.1"
    return None


def _xml_of(path: Path) -> Path | None:
    if path.is_dir():
        return path / XML if (path / XML).is_file() else None
    start = starts_with(path, 4) if path.is_file() else b""
    return path if start.startswith((b"<", ZIP)) else None


def _open(path: Path, stack: ExitStack) -> BinaryIO:
    """Open the XML of a file, folder or zip. Raises AnnotatorError for a damaged zip or one without annotations.xml."""
    file = stack.enter_context(open_file(_xml_of(path) or path))
    start = file.read(len(ZIP))
    file.seek(0)
    if start != ZIP:
        return file
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        return stack.enter_context(archive.open(XML))  # type: ignore[return-value]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise AnnotatorError(f"{path} is no whole zip: {error}. Was it copied as a whole?") from error
    except KeyError as error:
        raise AnnotatorError(f"{path} holds no {XML}, which a zip of CVAT has.") from error


class _Meaning(NamedTuple):
    """The class and state that a label stands for."""

    class_name: str
    state: int = PRESENT


class _Bounded:
    """A file that raises AnnotatorError if too many bytes are read before the next end of an image or of the labels."""

    def __init__(self, file: BinaryIO, path: Path):
        self._file, self._path, self._count = file, path, 0

    def read(self, size: int = -1) -> bytes:
        self._count += size
        if self._count > LARGEST:
            raise AnnotatorError(f"{self._path} has {LARGEST >> 20} MB without an image. Is it the right file?")
        return self._file.read(size)

    def read_on(self) -> None:
        """Reset the count of bytes, after an element was read completely."""
        self._count = 0


def read(path: Path, problems: Problems) -> Contents:
    """Return the images as items; a place is the number of an image in the file, from 1.

    Raises:
        AnnotatorError: The file is not XML, holds entities, is nested too deep, or is CVAT for video.
    """
    reader = _Reader(path, problems)
    items = reader.items()
    reader.first = next(items, None)  # the labels precede the images, so they are known once the first image is read
    classes = dict.fromkeys(meaning.class_name for meaning in reader.meanings.values())
    return Contents(
        [(name, "") for name in classes],
        reader.with_first(items),
        folder=path if path.is_dir() else None,
        place="image",
        said=["Tags and the labels of shapes are present; what is not tagged stays unknown."],
    )


class _Reader:
    """A reader of one file. meanings: label -> its class and state, from the labels of the task."""

    def __init__(self, path: Path, problems: Problems):
        self._path, self._problems = path, problems
        self.meanings: dict[str, _Meaning] = {}
        self.first: Item | None = None
        self._plain: dict[tuple[str | None, str | None], Given] = {}  # (label, source) of tags without attributes

    def with_first(self, rest: Iterator[Item]) -> Iterator[Item]:
        """Yield all items, beginning with the first item, which was read before."""
        if self.first:
            yield self.first
        yield from rest

    def items(self) -> Iterator[Item]:
        """Yield the images one by one; each is removed from memory before the next."""
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse

        depth = number = 0
        try:
            with ExitStack() as stack:
                file = _Bounded(_open(self._path, stack), self._path)
                root = None
                for event, element in iterparse(file, events=("start", "end")):
                    if event == "start":
                        depth += 1
                        if depth < 3 or depth > DEEPEST:
                            root = element if root is None else root
                            self._refuse(element.tag, depth)
                        continue
                    depth -= 1
                    if depth != 1:
                        continue
                    file.read_on()
                    if element.tag == "meta":
                        self._read_labels(element)
                    elif element.tag == "image":
                        number += 1
                        if item := self._item(element, number):
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

    def _refuse(self, tag: str, depth: int) -> None:
        if depth == 1 and tag != "annotations":
            raise AnnotatorError(f"{self._path} is not of CVAT: it begins with <{tag}>, not with <annotations>.")
        if depth == 2 and tag == "track":
            raise AnnotatorError(
                f"{self._path} is CVAT for video: its tracks name frames, not images. Export it as CVAT for images."
            )
        if depth > DEEPEST:
            raise AnnotatorError(f"{self._path} is nested more than {DEEPEST} deep.")

    def _read_labels(self, meta: Any) -> None:
        for label in meta.iter("label"):
            name = label.findtext("name")
            if not name:
                continue
            facts = {
                attribute.findtext("name"): attribute.findtext("default_value") for attribute in label.iter("attribute")
            }
            self.meanings[name] = _meaning(name, facts, _Meaning(name))

    def _given(self, label: str, source: str | None, shape: Any) -> Given:
        facts = {attribute.get("name"): attribute.text for attribute in shape if attribute.tag == "attribute"}
        meaning = _meaning(label, facts, self.meanings.get(label) or _Meaning(label))
        given = Given(*meaning, source=MODEL if source == "auto" else "")
        if not len(shape) and len(self._plain) < MEMORIZED:
            self._plain[label, source] = given
        return given

    def _item(self, image: Any, number: int) -> Item | None:
        name = image.get("name")
        if not name:
            self._problems.add(f"image {number}: it has no name")
            return None
        labels: dict[tuple[str, int], Given] = {}
        for shape in image:
            if shape.tag not in SHAPES:
                continue
            label, source = shape.get("label"), shape.get("source")
            given = self._plain.get((label, source)) if not len(shape) else None
            if given is None:
                if not label:
                    self._problems.add(f"image {number} ({name}): a {shape.tag} without a label")
                    continue
                given = self._given(label, source, shape)
            meaning = given[:2]
            if meaning not in labels or labels[meaning].source:
                labels[meaning] = given
        subset = image.get("subset")
        return Item(
            name,
            number,
            list(labels.values()),
            file=self._file(name, subset or ""),
            attributes={"split": subset} if subset else {},
            answered=bool(labels),
        )

    def _file(self, name: str, subset: str) -> str:
        """Return the path of an image's file in an unpacked zip; "" where there is none."""
        if not self._path.is_dir():
            return ""
        places = (f"{IMAGES}/{subset}/{name}" if subset else "", f"{IMAGES}/{name}", name)
        return next((file for place in places if (file := file_inside(self._path, place))), "")


def _meaning(label: str, facts: dict[Any, Any], otherwise: _Meaning) -> _Meaning:
    """Return the class and state that attributes give a label: our own, or a `state` that somebody gave the label.

    Without a known `state`, return `otherwise`.
    """
    state = STATES.get(facts.get("state") or "")
    if state is None:
        return otherwise
    return _Meaning(facts.get("class") or (otherwise.class_name if otherwise else label), state)


def write(view: View, output: Output) -> None:
    """Write the XML, and the labels of a task beside it.

    Raises:
        AnnotatorError: XML cannot hold the name of a class or an image.
    """
    names = [class_.name for class_ in view.classes]
    refuse_impossible("classes", names)
    labels = _labels(names)
    with output.text(LABELS) as file:
        file.write(json.dumps([_raw(*label) for label in labels], ensure_ascii=False, indent=1) + "\n")
    tags = _tags(view, labels, len(names))
    number = 0
    with output.text() as file:
        file.write(_head(view, labels))
        for block in view.blocks():
            refuse_impossible("images", [image.name for image in block.images])
            lines: list[str] = []
            for row, (image, given) in enumerate(zip(block.images, answers(block), strict=True)):
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


def _labels(names: list[str]) -> list[tuple[str, str, str]]:
    """Return (label, class, state) triples, all labels different: one label for each class and state."""
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


def _raw(label: str, name: str, state: str) -> dict[str, Any]:
    """Return a label in the form that CVAT's raw editor accepts."""
    attributes = [
        {"name": key, "mutable": False, "input_type": "text", "default_value": value, "values": [value]}
        for key, value in (("class", name), ("state", state))
    ]
    return {"name": label, "type": "tag", "attributes": attributes if state != "present" else []}


def _tags(view: View, labels: list[tuple[str, str, str]], count: int) -> list[list[list[str]]]:
    """Return the XML elements as nested lists, indexed by source, state and class."""
    quoted = [quoteattr(label) for label, _, _ in labels]
    found: list[list[list[str]]] = []
    for source in view.sources:
        how = "auto" if source in FILLED else "file" if source == "import" else "manual"
        lines = [f'    <tag label={label} source="{how}"></tag>\n' for label in quoted]
        found.append([[], *(lines[start : start + count] for start in range(0, 3 * count, count))] if count else [[]])
    return found


def _head(view: View, labels: list[tuple[str, str, str]]) -> str:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n    <task>\n'
        f"      <name>annotator</name>\n      <size>{view.images}</size>\n      <mode>annotation</mode>\n"
        "      <labels>\n"
    ]
    for label in labels:
        raw = _raw(*label)
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
    recognise,
    read,
    write,
    Lost(unsure=False),
)
