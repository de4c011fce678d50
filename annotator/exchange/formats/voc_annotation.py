"""One annotation file of Pascal VOC: the objects of an image as XML. LabelImg, imglab and Roboflow write it too."""

import os
import re
from pathlib import Path
from typing import Any

from annotator.exchange.files.json_stream import starts_with
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Given
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

OURS = "multilabel-annotator"  # text of source/database in our exports
LARGEST = 16 << 20  # bytes of an XML file

_BEGINS = re.compile(rb"<annotation[\s>]")


def is_annotation(path: Path) -> bool:
    """Return whether a file begins like an annotation of VOC."""
    start = starts_with(path, 1 << 12).replace(b"\0", b"")  # without zeros: UTF-16
    return b"<" in start[:3] and _BEGINS.search(start) is not None


def labels_of(found: dict[str, Any]) -> list[Given]:
    """Return the answers in the facts of one file."""
    labels = [
        Given(class_name, UNSURE if difficult else PRESENT, source=source)
        for class_name, (difficult, source) in found["objects"].items()
    ]
    return labels + [Given(class_name, ABSENT, source=source) for class_name, source in found["absent"]]


def parsed(path: Path, place: str, problems: Problems) -> dict[str, Any] | None:
    """Return the facts in one XML file; None, with a problem noted, if it cannot be read.

    Args:
        path: The XML file.
        place: How problems name the file.
        problems: Takes the reason why the file cannot be read.

    Returns:
        "filename", "image", "sha256", "split" as texts, "" where the file does not say; "objects": class -> (whether
        all of its objects are difficult, their source); "absent": (class, source) pairs; "ours": an export of ours.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        with open_file(path) as file:
            # Not read(LARGEST): allocating 16 MB for each small file costs more than parsing it.
            text = file.read(min(os.fstat(file.fileno()).st_size, LARGEST) + 1)
        if len(text) > LARGEST:
            problems.add(f"{place} has more than {LARGEST >> 20} MB")
            return None
        tree = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        problems.add(f"{place} is no XML: {error}")
    except DefusedXmlException:
        problems.add(f"{place} declares a document type or entities, which are not read")
    except (OSError, ValueError, LookupError) as error:
        problems.add(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}")
    else:
        return _facts(tree, place, problems)
    return None


def _facts(tree: Any, place: str, problems: Problems) -> dict[str, Any] | None:
    if tree.tag != "annotation":
        problems.add(f"{place} is no VOC annotation: it begins with <{tree.tag}>")
        return None
    ours = tree.findtext("source/database") == OURS
    objects: dict[str, tuple[bool, str]] = {}
    for number, object_ in enumerate(tree.findall("object"), start=1):
        if (object_.findtext("deleted") or "").strip() == "1":  # LabelMe of MIT keeps what was deleted
            continue
        name = _text(object_, "name", ours)
        if not name:
            problems.add(f"{place}: object {number} has no name")
            continue
        difficult = (object_.findtext("difficult") or "").strip() == "1"
        known = objects.get(name, (True, ""))
        objects[name] = (difficult and known[0], object_.get("source", "") if ours else "")
    absent = [(each.text or "", each.get("source", "")) for each in tree.findall("absent")] if ours else []
    return {
        "ours": ours,
        "filename": _text(tree, "filename", ours),
        "image": _text(tree, "source/image", ours),
        "sha256": _text(tree, "sha256", ours) if ours else "",
        "split": _text(tree, "split", ours) if ours else "",
        "objects": objects,
        "absent": absent,
    }


def _text(node: Any, path: str, exact: bool) -> str:
    text = node.findtext(path) or ""
    return text if exact else text.strip()
