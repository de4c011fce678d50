"""CreateML: lists such as [{"image": "a.jpg", "annotations": [{"label": "fox", ...}]}].

See https://developer.apple.com/documentation/createml. Annotations are present, or scores if they have a
confidence.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

_IMAGE_KEY = re.compile(rb'"(?:image|imagefilename|imageFilename)"\s*:\s*"')
_ANNOTATIONS_KEY = re.compile(rb'"annotations?"\s*:\s*(?:\[\s*(?:"|\]|\{)|")')
_FOREIGN_KEYS = re.compile(rb'"(?:data|annotation_id|predictions)"\s*:')


class _Entry(msgspec.Struct):
    image: str = ""
    imagefilename: str = ""
    imageFilename: str = ""  # noqa: N815 - as files have it
    annotations: Any = None
    annotation: Any = None


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    if (
        start[:1] != b"["
        or not _IMAGE_KEY.search(start)
        or not _ANNOTATIONS_KEY.search(start)
        or _FOREIGN_KEYS.search(start)
    ):
        return None
    has_labels = b'"label"' in start or not re.search(rb'"annotations?"\s*:\s*\[\s*\{', start)
    return "CreateML: a list of images with annotations" if has_labels else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    said = [
        "An annotation makes its label present, one with a confidence is a score; boxes are not kept.",
        "All other classes of an image are unknown, unless the source names everything (--exhaustive).",
    ]
    return Contents((), _read_items(path, problems), place="entry", sentences=said)


def _read_items(path: Path, problems: Problems) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(list[_Entry])
    for piece in read_pieces(path, wanted=lambda key: key == ""):
        for index, entry in piece.decode(decoder, problems):
            place = piece.place(index)
            image = entry.image or entry.imagefilename or entry.imageFilename
            given = entry.annotations if entry.annotations is not None else entry.annotation
            if not image:
                problems.add(f"{place}: it has no image")
                continue
            labels: dict[str, None] = {}
            scores: dict[str, float] = {}
            try:
                for name, score in map(
                    _parse_annotation, given if isinstance(given, list) else [] if given is None else [given]
                ):
                    if score is None:
                        labels[name] = None
                    else:
                        scores[name] = max(scores.get(name, 0.0), score)
            except ValueError as error:
                problems.add(f"{place}: {error}")
                continue
            answered = given is not None and (bool(labels) or not scores)
            yield Item(
                image, place, [ImportedLabel(name, PRESENT) for name in labels], scores=scores, answered=answered
            )


def _parse_annotation(annotation: Any) -> tuple[str, float | None]:
    if isinstance(annotation, str) and annotation:
        return annotation, None
    fields = annotation if isinstance(annotation, dict) else {}
    label = fields.get("label")
    if not isinstance(label, str) or not label:
        raise ValueError(f"the annotation {annotation!r:.100} has no label")
    score = next((fields[key] for key in ("confidence", "score") if fields.get(key) is not None), None)
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise ValueError(f"the confidence of {label!r:.100} is {score!r:.100}, not a number")
    return label, None if score is None else float(score)


CREATEML = Format(
    name="createml",
    about="CreateML: a list of images with annotations, as Roboflow and RectLabel write it, too",
    ending=".json",
    recognize=recognize,
    read=read,
)
