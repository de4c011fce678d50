"""MegaDetector results 1.0 to 1.6: confidences of the detector and species classifier, as scores.

Format: https://lila.science/megadetector-output-format, or only its list of images.

A detector class scores the confidence of its best box, a species that of the classifier. A processed file
without a box scores 0, because the detector looked for all classes. Failures give no score.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_objects, read_pieces, read_start
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

CategoryId = str | int
DEFAULT_CATEGORIES = {"1": "animal", "2": "person", "3": "vehicle"}  # of MegaDetector, for lists without categories
DETECTION_CATEGORIES_KEY, SPECIES_CATEGORIES_KEY = "detection_categories", "classification_categories"
OLD_DETECTION_LENGTH = 6  # numbers of a detection in the oldest files: top, left, bottom, right, confidence, category


class Detection(msgspec.Struct, gc=False):
    """A detected box, with (category, confidence) classifications of its content."""

    category: CategoryId
    conf: float
    bbox: list[float] | None = None
    classifications: list[tuple[CategoryId, float]] | None = None
    frame_number: int | None = None


class Entry(msgspec.Struct, gc=False):
    """The results for one file. Old detections are lists of OLD_DETECTION_LENGTH numbers."""

    file: str
    detections: list[Detection | list[float]] | None = None
    failure: Any = None
    frame_rate: Any = None
    frames_processed: Any = None


ENTRY_DECODER = msgspec.json.Decoder(list[Entry])
CATEGORY_DECODER = msgspec.json.Decoder(dict[str, str])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    has_images = b'"file"' in start and (b'"detections"' in start or b'"max_detection_conf"' in start)
    if start[:1] == b"{" and (
        b'"%s"' % DETECTION_CATEGORIES_KEY.encode() in start or (b'"images"' in start and has_images)
    ):
        return "MegaDetector results: detections of each file"
    if start[:1] == b"[" and has_images:
        return "MegaDetector results, as a list: detections of each file"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the scores of all processed files in two passes, without keeping them in memory.

    Raises AnnotatorError for incomplete results or invalid categories.
    """
    said = [
        "The score of a class is that of its surest box; a processed file without one says 0 of the class.",
        BOXES_KEPT_SENTENCE,
    ]
    if read_start(path, 1 << 12)[:1] == b"[":
        detected, species = DEFAULT_CATEGORIES, {}
        said.append("The file names no categories, so they are those of MegaDetector: 1 animal, 2 person, 3 vehicle.")
    else:
        texts = read_objects(path, {DETECTION_CATEGORIES_KEY, SPECIES_CATEGORIES_KEY}.__contains__)
        if DETECTION_CATEGORIES_KEY not in texts:
            raise AnnotatorError(
                f"{path} has no {DETECTION_CATEGORIES_KEY}, which say what its detections are of: it is no complete "
                "file of MegaDetector results. Was it copied as a whole?"
            )
        detected = _parse_categories(path, DETECTION_CATEGORIES_KEY, texts[DETECTION_CATEGORIES_KEY])
        species = _parse_categories(path, SPECIES_CATEGORIES_KEY, texts.get(SPECIES_CATEGORIES_KEY, b"{}"))
        if species:
            said.append("Species have the confidence that the classifier gave them, whatever that of the box.")
    names = list(dict.fromkeys([*detected.values(), *species.values()]))
    dispensable = [name for name in names if not _is_class_name(name)]
    return Contents(
        [(name, "") for name in names if _is_class_name(name)],
        _Reader(detected, species, said, dispensable).read_items(path, problems),
        place="entry",
        sentences=said,
        dispensable=dispensable,
    )


def _parse_categories(path: Path, key: str, text: bytes) -> dict[str, str]:
    try:
        categories = CATEGORY_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AnnotatorError(f'{path}: {key} must name each category, such as {{"1": "animal"}}: {error}.') from error
    if unnamed := [id_ for id_, name in categories.items() if not name.strip()]:
        raise AnnotatorError(f"{path}: {key} has no name for {', '.join(map(repr, unnamed[:20]))}.")
    return {id_: name.strip() for id_, name in categories.items()}


class _Reader:
    """A reader of the entries, which counts special cases for its remarks."""

    def __init__(
        self, detected: Mapping[str, str], species: Mapping[str, str], said: list[str], dispensable: list[str]
    ):
        self._detected, self._species, self._said, self._dispensable = detected, species, said, dispensable
        self._seen = set[str]()
        # What means "nothing" has no low score where nothing was found.
        self._low_detected = dict.fromkeys((name for name in detected.values() if _is_class_name(name)), 0.0)
        self._low_species = dict.fromkeys((name for name in species.values() if _is_class_name(name)), 0.0)
        self._low = self._low_species | self._low_detected
        self._failures = self._videos = self._frames = self._boxless = 0
        self._unlisted: Counter[str] = Counter()

    def read_items(self, path: Path, problems: Problems) -> Iterator[Item]:
        is_any = False
        for piece in read_pieces(path, {"", "images"}.__contains__):
            is_any = True
            for number, entry in piece.decode(ENTRY_DECODER, problems):
                place = piece.place(number)
                detections = [
                    detection if isinstance(detection, Detection) else _parse_old_detection(detection)
                    for detection in entry.detections or ()
                ]
                if not entry.file:
                    problems.add(f"{place}: it names no file")
                elif None in detections:
                    problems.add(
                        f"{place}: a detection of {entry.file!r} is neither an object with category and conf nor a "
                        f"list of {OLD_DETECTION_LENGTH} numbers"
                    )
                elif wrong := find_confidence_problem(_iter_confidences(detections)):
                    problems.add(f"{place}: {wrong} ({entry.file!r})")
                elif entry.failure is not None or entry.detections is None:
                    self._failures += 1
                elif entry.frame_rate is not None or entry.frames_processed is not None:
                    yield from self._read_video(entry.file, place, [one for one in detections if one])
                else:
                    yield self._build_item(entry.file, place, [one for one in detections if one])
        if not is_any:
            problems.add(f"{path} has no images: it is no complete file of MegaDetector results")
        self._add_sentences()

    def _read_video(self, file: str, place: str, detections: Sequence[Detection]) -> Iterator[Item]:
        """Yield an item per video frame with boxes. Other frames get no score, because files omit most boxes."""
        self._videos += 1
        frames: dict[int, list[Detection]] = {}
        for detection in detections:
            if detection.frame_number is not None and detection.frame_number >= 0:
                frames.setdefault(detection.frame_number, []).append(detection)
        self._frames += len(frames)
        for number, of_frame in sorted(frames.items()):
            item = self._build_item(f"{file}/frame{number:06d}.jpg", place, of_frame)
            item.scores = {name: item.scores[name] for name in item.scores if item.scores[name] > 0}
            yield item

    def _build_item(self, file: str, place: str, detections: Sequence[Detection]) -> Item:
        scores: dict[str, float] = {}
        knows_species = not detections or any(detection.classifications for detection in detections)
        boxes: list[Box] = []
        for detection in detections:
            given = [(self._detected.get(str(detection.category)), detection.conf)]
            if given[0][0] is None:
                self._unlisted[f"detection category {detection.category}"] += 1
            for category, score in detection.classifications or ():
                given.append((self._species.get(str(category)), score))
                if given[-1][0] is None:
                    self._unlisted[f"classification category {category}"] += 1
            inside = False
            for name, score in given:
                if name is None:
                    continue
                scores[name] = max(score, scores.get(name, 0.0))
                self._seen.add(name)
                if box := clip_box(name, detection.bbox or (), score):
                    boxes.append(box)
                    inside = True
            self._boxless += not inside
        all_scores = ScoresOverLow(scores, self._low if knows_species else self._low_detected)
        return Item(file, place, scores=all_scores, boxes=select_top_boxes(boxes), answered=False)

    def _add_sentences(self) -> None:
        self._dispensable += [name for name in [*self._low_detected, *self._low_species] if name not in self._seen]
        if self._failures:
            self._said.append(f"Nothing is said of {format_count(self._failures, 'file')} that could not be processed.")
        if self._videos:
            self._said.append(
                f"{format_count(self._videos, 'video')}: {format_count(self._frames, 'frame')} with boxes, looked for "
                "as VIDEO/frame000020.jpg, the name that MegaDetector gives to frames."
            )
        if self._boxless:
            self._said.append(
                f"{format_count(self._boxless, 'detection')} without a box inside of the image: the score counts, and "
                "no box is kept."
            )
        for what, times in self._unlisted.most_common(5):
            self._said.append(f"The {what} has no name in the file: left out {format_count(times, 'time')}.")


def _iter_confidences(detections: Sequence[Detection | None]) -> Iterator[float]:
    for detection in detections:
        if detection:
            yield detection.conf
            yield from (score for _, score in detection.classifications or ())


def _is_class_name(name: str) -> bool:
    return name.casefold() not in EMPTY_CLASS_NAMES


def _parse_old_detection(numbers: Sequence[float]) -> Detection | None:
    if len(numbers) != OLD_DETECTION_LENGTH:
        return None
    top, left, bottom, right, conf, category = numbers
    return Detection(str(int(category)), conf, [left, top, right - left, bottom - top])


MEGADETECTOR = Format(
    name="megadetector",
    about="MegaDetector results (JSON): scores and boxes of a camera-trap detector",
    ending=".json",
    recognize=recognize,
    read=read,
    predicted_by="a detector",
)
