"""Pascal VOC annotation files, also from LabelImg, imglab and Roboflow."""

import os
import re
from pathlib import Path
from typing import Any

from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

OWN_DATABASE = "multilabel-annotator"  # text of source/database in our exports
MAX_FILE_BYTES = 16 << 20  # bytes of an XML file

_ROOT_ELEMENT = re.compile(rb"<annotation[\s>]")


def is_annotation(path: Path) -> bool:
    start = read_start(path, 1 << 12).replace(b"\0", b"")  # without zeros: UTF-16
    return b"<" in start[:3] and _ROOT_ELEMENT.search(start) is not None


SCORE_ELEMENTS = ("score", "confidence")


def build_labels(found: dict[str, Any]) -> list[ImportedLabel]:
    """Return the answers in the content of one file, from `parse_annotation`."""
    labels = [
        ImportedLabel(class_name, UNSURE if difficult else PRESENT, source=source)
        for class_name, (difficult, source) in found["objects"].items()
    ]
    return labels + [ImportedLabel(class_name, ABSENT, source=source) for class_name, source in found["absent"]]


def parse_annotation(path: Path, place: str, problems: Problems) -> dict[str, Any] | None:
    """Return the content of an XML file, or None after reporting a problem.

    Returns:
        "filename", "image", "sha256", "split": texts. "objects": class -> (whether all are difficult, source).
        "absent": (class, source) pairs. "ours": whether it is an own export.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        with open_file(path) as file:
            # Not read(MAX_FILE_BYTES): allocating 16 MB for each small file costs more than parsing it.
            text = file.read(min(os.fstat(file.fileno()).st_size, MAX_FILE_BYTES) + 1)
        if len(text) > MAX_FILE_BYTES:
            problems.add(f"{place} has more than {MAX_FILE_BYTES >> 20} MB")
            return None
        tree = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        problems.add(f"{place} is no XML: {error}")
    except DefusedXmlException:
        problems.add(f"{place} declares a document type or entities, which are not read")
    except (OSError, ValueError, LookupError) as error:
        problems.add(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}")
    else:
        return _read_facts(tree, place, problems)
    return None


def _read_facts(tree: Any, place: str, problems: Problems) -> dict[str, Any] | None:
    if tree.tag != "annotation":
        problems.add(f"{place} is no VOC annotation: it begins with <{tree.tag}>")
        return None
    ours = tree.findtext("source/database") == OWN_DATABASE
    objects: dict[str, tuple[bool, str]] = {}
    for number, object_ in enumerate(tree.findall("object"), start=1):
        if (object_.findtext("deleted") or "").strip() == "1":  # LabelMe of MIT keeps what was deleted
            continue
        name = _find_text(object_, "name", ours)
        if not name:
            problems.add(f"{place}: object {number} has no name")
            continue
        if score := next(filter(None, (object_.findtext(key) for key in SCORE_ELEMENTS)), ""):
            problems.add(f"{place}: object {number} has the score {score:.20}: a model found it. Leave it out")
            continue
        difficult = (object_.findtext("difficult") or "").strip() == "1"
        known = objects.get(name, (True, ""))
        objects[name] = (difficult and known[0], object_.get("source", "") if ours else "")
    absent = [(each.text or "", each.get("source", "")) for each in tree.findall("absent")] if ours else []
    return {
        "ours": ours,
        "filename": _find_text(tree, "filename", ours),
        "image": _find_text(tree, "source/image", ours),
        "sha256": _find_text(tree, "sha256", ours) if ours else "",
        "split": _find_text(tree, "split", ours) if ours else "",
        "objects": objects,
        "absent": absent,
    }


def _find_text(node: Any, path: str, exact: bool) -> str:
    text = node.findtext(path) or ""
    return text if exact else text.strip()
