"""SpeciesNet predictions: scores of a camera trap classifier and its detector's boxes.

Format: https://github.com/google/cameratrapai. A class is named by its common name, else the last taxon. Its score is
the maximum over classifier, ensemble and detector, 0 if a part that was run omits it. The best box is kept, because the
classifier saw its crop.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Box, Contents, Item, ScoresOverLow
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.model_boxes import (
    BOXES_KEPT_SENTENCE,
    EMPTY_CLASS_NAMES,
    clip_box,
    find_confidence_problem,
    select_top_boxes,
)
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.humanize import format_count

DETECTOR_CATEGORIES = {"1": "animal", "2": "human", "3": "vehicle"}
WHOLE_IMAGE_VERSION_END = "b"  # the end of the versions whose classifier sees the whole image: v4.0.0b
MAX_NAMES_SHOWN = 5
# FiftyOne has samples with a filepath and predictions, which are objects.
_ENTRY = re.compile(rb'"predictions"\s*:\s*\[\s*\{.*?"filepath"', re.DOTALL)


class Classifications(msgspec.Struct, gc=False):
    """The classifier's top classes and scores."""

    classes: list[str] = []
    scores: list[float] = []


class Detection(msgspec.Struct, gc=False):
    """One box of the detector."""

    conf: float
    category: str | int = ""
    label: str = ""
    bbox: list[float] | None = None


class Entry(msgspec.Struct, gc=False):
    filepath: str
    classifications: Classifications | None = None
    detections: list[Detection] | None = None
    prediction: str | None = None
    prediction_score: float | None = None
    model_version: str | None = None


ENTRY_DECODER = msgspec.json.Decoder(list[Entry])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    if start[:1] == b"{" and _ENTRY.search(start):
        return "SpeciesNet predictions: the predictions of each filepath"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the scores of processed files in two passes, without keeping them in memory."""
    names = _ClassNames()
    for piece in read_pieces(path, "predictions".__eq__):
        for _, entry in piece.decode(ENTRY_DECODER, Problems()):  # undecodable ones are noted when the items are read
            names.add(entry)
    said = [
        BOXES_KEPT_SENTENCE,
        "Classes have their common name, or else their last taxon; a class map says what the project calls them.",
        "What the classifier or the detector does not name for a file has a score of 0 there.",
        *names.describe_ambiguous_names(),
    ]
    listed = {**names.classified, **names.detected}
    return Contents(
        [(name, about) for name, about in listed.items() if name.casefold() not in EMPTY_CLASS_NAMES],
        _read_items(path, names, said, problems),
        place="entry",
        sentences=said,
        dispensable=[name for name in listed if name.casefold() in EMPTY_CLASS_NAMES],
    )


def parse_class_name(taxonomy: str) -> str:
    """Return the class name in a taxonomy text: the common name, else the last taxon, or ""."""
    parts = [part.strip() for part in taxonomy.split(";")]
    if len(parts) == 1:
        return parts[0]
    if parts[-1]:
        return parts[-1]
    taxa = parts[1:-1]
    if len(taxa) >= 2 and taxa[-1] and taxa[-2]:
        return f"{taxa[-2]} {taxa[-1]}"
    return next((taxon for taxon in reversed(taxa) if taxon), "")


class _ClassNames:
    """The classes of a file by name: those of classifier or ensemble (`classified`), and those of the detector."""

    def __init__(self) -> None:
        self.classified: dict[str, str] = {}
        self.detected: dict[str, str] = {}
        self._taxa: dict[str, set[str]] = {}
        self._known: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        given = [*(entry.classifications.classes if entry.classifications else ())]
        for taxonomy in [*given, *([entry.prediction] if entry.prediction else [])]:
            if name := self.find_name(taxonomy):
                taxon = " ".join(part for part in taxonomy.split(";")[1:-1] if part)
                self.classified.setdefault(name, taxon)
                self._taxa.setdefault(name, set()).add(taxon)
        for detection in entry.detections or ():
            if name := find_detection_class(detection):
                self.detected.setdefault(name, "")

    def find_name(self, taxonomy: str) -> str:
        if taxonomy not in self._known:
            self._known[taxonomy] = parse_class_name(taxonomy)
        return self._known[taxonomy]

    def describe_ambiguous_names(self) -> list[str]:
        several = {name: taxa for name, taxa in self._taxa.items() if len(taxa) > 1}
        said = [f"{name!r} is the name of {' and '.join(sorted(taxa))}: one class." for name, taxa in several.items()]
        more = (
            [f"{len(said) - MAX_NAMES_SHOWN:,} more names stand for several taxa."]
            if len(said) > MAX_NAMES_SHOWN
            else []
        )
        return [*said[:MAX_NAMES_SHOWN], *more]


def find_detection_class(detection: Detection) -> str:
    """Return the class of a box, or "" for an unknown category without label."""
    return detection.label.strip() or DETECTOR_CATEGORIES.get(str(detection.category), "")


def _read_items(path: Path, names: _ClassNames, said: list[str], problems: Problems) -> Iterator[Item]:
    low_classified = {name: 0.0 for name in names.classified if name.casefold() not in EMPTY_CLASS_NAMES}
    low_detected = {name: 0.0 for name in names.detected if name.casefold() not in EMPTY_CLASS_NAMES}
    lows = {(True, True): low_classified | low_detected, (True, False): low_classified}
    lows |= {(False, True): low_detected, (False, False): {}}
    without = unnamed = boxless = 0
    is_any = False
    for piece in read_pieces(path, "predictions".__eq__):
        is_any = True
        for number, entry in piece.decode(ENTRY_DECODER, problems):
            place = piece.place(number)
            given = entry.classifications
            if given and len(given.classes) != len(given.scores):
                problems.add(f"{place}: {len(given.classes)} classes have {len(given.scores)} scores")
                continue
            if not entry.filepath:
                problems.add(f"{place}: it names no file")
                continue
            scored = list(zip(given.classes, given.scores, strict=True)) if given else []
            if entry.prediction and entry.prediction_score is not None:
                scored.append((entry.prediction, entry.prediction_score))
            confidences = [score for _, score in scored] + [detection.conf for detection in entry.detections or ()]
            if wrong := find_confidence_problem(confidences):
                problems.add(f"{place}: {wrong} ({entry.filepath!r})")
                continue
            if not scored and entry.detections is None:
                without += 1
                continue
            # Where the detector found nothing, there was nothing for the classifier to name.
            classified = bool(given and given.classes) or (entry.detections == [] and not scored)
            low = lows[classified, entry.detections is not None]
            scores, boxes = dict[str, float](), list[Box]()
            crop = _find_crop(entry)
            for taxonomy, score in scored:
                name = names.find_name(taxonomy)
                unnamed += not name
                if name:
                    scores[name] = max(score, scores.get(name, 0.0))
                    if crop and (box := clip_box(name, crop, score)):
                        boxes.append(box)
            for detection in entry.detections or ():
                name = find_detection_class(detection)
                unnamed += not name
                if name:
                    scores[name] = max(detection.conf, scores.get(name, 0.0))
                    box = clip_box(name, detection.bbox or (), detection.conf)
                    boxes += [box] if box else []
                    boxless += box is None
            all_scores = ScoresOverLow(scores, low)
            yield Item(entry.filepath, place, scores=all_scores, boxes=select_top_boxes(set(boxes)), answered=False)
    if not is_any:
        problems.add(f"{path} has no predictions: it is no complete file of SpeciesNet")
    if without:
        said.append(f"Nothing is said of {format_count(without, 'file')} that could not be processed.")
    if unnamed:
        said.append(f"{format_count(unnamed, 'score')} of classes without any name: left out.")
    if boxless:
        said.append(
            f"{format_count(boxless, 'detection')} without a box inside of the image: the score counts, and no box is "
            "kept."
        )


def _find_crop(entry: Entry) -> list[float] | None:
    """Return the box whose crop the classifier saw (the best), or None if it saw the whole image."""
    if not entry.detections or (entry.model_version or "").endswith(WHOLE_IMAGE_VERSION_END):
        return None
    return max(entry.detections, key=lambda detection: detection.conf).bbox


SPECIESNET = Format(
    name="speciesnet",
    about="SpeciesNet predictions (JSON): scores of a camera-trap classifier, boxes of its detector",
    ending=".json",
    recognize=recognize,
    read=read,
    predicted_by="a classifier",
)
