"""COCO Camera Traps additions to COCO, as published by LILA (lila.science).

Format: https://github.com/agentmorris/MegaDetector, megadetector/data_management/README.md.

Category `empty` is not a class but makes an image complete. `sequence_level_annotation` gives an event label,
as only some image of the sequence shows it.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from annotator.exchange.formats.coco_images import CocoImages, normalize_id
from annotator.exchange.formats.contents import EMPTY_EVENT_CLASS, ImportedLabel, Item
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT

EMPTY_CATEGORY_NAMES = ("empty", "blank")
"""Names of a category that says that nothing is there, in small letters."""
IMAGE_FACTS = ("location", "datetime", "seq_id", "frame_num", "seq_num_frames", "corrupt")
CAMERA_TRAP_FIELDS = ("seq_id", "location", "frame_num", "seq_num_frames", "corrupt")
"""Fields that images of COCO Camera Traps have, and others do not."""
ANNOTATION_FACTS = ("count", "sex", "age", "behavior")
MAX_FACT_NAME_CHARS = 200  # letters of a fact


class TrapImage(msgspec.Struct, gc=False, kw_only=True):
    """The camera trap fields of an image in a COCO file, of any type."""

    location: Any = None
    datetime: Any = None
    seq_id: Any = None
    frame_num: Any = None
    seq_num_frames: Any = None
    corrupt: Any = None


class TrapAnnotation(msgspec.Struct, gc=False, kw_only=True):
    """The camera trap fields of an annotation in a COCO file."""

    sequence_level_annotation: Any = None
    count: Any = None
    sex: Any = None
    age: Any = None
    behavior: Any = None


class CameraTraps:
    """A collector of the events, empty images and camera trap fields of one file.

    Attributes:
        is_known: Images have COCO Camera Traps fields.
        empty: Category ids that mean "nothing visible".
    """

    def __init__(self) -> None:
        self.is_known = False
        self.empty: set[Any] = set()
        self.sentences: list[str] = []
        self._events: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self._event_of = array("l")  # of each image, by row

    def add_image(self, image: TrapImage) -> None:
        """Store the event of the next image of the file."""
        event = format_fact(image.seq_id)
        number = self._numbers.get(event)
        if number is None:
            number = self._numbers[event] = len(self._events)
            self._events.append(event)
        self._event_of.append(number)
        self.is_known = self.is_known or any(getattr(image, name) is not None for name in CAMERA_TRAP_FIELDS)

    def decide_empty_categories(
        self, names: Sequence[str], columns: dict[Any, int], options: ReadingOptions, is_own: bool
    ) -> tuple[list[int], list[Interpretation]]:
        """Return the indices of the categories that are classes, and the decision which others mean "empty".

        Args:
            columns: Index into `names` by category id, updated without empty categories.
            is_own: An own export, in which all categories are classes.
        """
        if options.empty_label is not None:
            words = {word.casefold() for word in options.empty_label if word != NONE_VALUE}
        else:
            words = set() if is_own else set(EMPTY_CATEGORY_NAMES)
        gone = {index for index, name in enumerate(names) if name.strip().casefold() in words}
        if not gone:
            return list(range(len(names))), []
        self.empty = {category for category, index in columns.items() if index in gone}
        kept = [index for index in range(len(names)) if index not in gone]
        place = {index: number for number, index in enumerate(kept)}
        for category in self.empty:
            del columns[category]
        columns.update({category: place[index] for category, index in columns.items()})
        listed = " and ".join(repr(names[index]) for index in sorted(gone))
        if options.empty_label is not None:
            why, is_sure = f"{listed} means that nothing is there, as you say", True
        elif self.is_known:
            why, is_sure = f"{listed} means that nothing is there, as in every COCO file of camera traps", True
        else:
            why = (
                f"{listed} may mean that nothing is there, as in COCO files of camera traps; but no image names a "
                "sequence or a location, so it may be a class as well"
            )
            is_sure = False
        value = names[min(gone)]
        return kept, [Interpretation("empty_label", value, why, is_sure, (NONE_VALUE,))]

    def build_item_fields(self, image: TrapImage) -> dict[str, Any]:
        facts = {field: format_fact(getattr(image, field)) for field in IMAGE_FACTS}
        return {
            "event": format_fact(image.seq_id),
            "attributes": {field: text for field, text in facts.items() if text},
        }

    def create_divider(self, images: CocoImages, names: Sequence[str], columns: dict[Any, int]) -> "AnnotationDivider":
        """Return a new divider of annotations, for one pass over the file."""
        return AnnotationDivider(self, images, names, columns, self._events, np.array(self._event_of, np.int64))


class AnnotationDivider:
    """A divider of annotations, for one pass: into image labels, event labels, empty images and fields."""

    def __init__(
        self,
        traps: CameraTraps,
        images: CocoImages,
        names: Sequence[str],
        columns: dict[Any, int],
        events: Sequence[str],
        event_of: np.ndarray,
    ):
        self._traps, self._images, self._names, self._columns = traps, images, names, columns
        self._events, self._event_of = events, event_of
        self._empty_at = np.full(len(images), -1, np.int32)  # of each image the annotation that says that it is empty
        self._shows = np.zeros(len(images), bool)
        self._without_event = 0

    def divide(
        self, annotations: Sequence[tuple[int, Any]], place: Callable[[int], str]
    ) -> tuple[list[tuple[int, Any]], list[Item]]:
        """Return the annotations that make a class present on an image, and items for the others."""
        rows = self._images.find_rows([annotation.image_id for _, annotation in annotations]) if annotations else []
        of_images: list[tuple[int, Any]] = []
        items: list[Item] = []
        for (number, annotation), row in zip(annotations, map(int, rows), strict=True):
            category = normalize_id(annotation.category_id)
            is_empty = category in self._traps.empty
            column = self._columns.get(category)
            if row < 0 or not (is_empty or column is not None):
                of_images.append((number, annotation))  # noted as a problem where present classes are read
                continue
            is_event = annotation.sequence_level_annotation is True
            if is_event:
                items += self._build_event_items(row, column, place(number))
            elif is_empty:
                self._empty_at[row] = number
            else:
                self._shows[row] = True
                of_images.append((number, annotation))
            if column is not None and (facts := self._read_facts(annotation, self._names[column], is_event)):
                items.append(Item(self._images.name(row), place(number), attributes=facts, answered=False))
        return of_images, items

    def finish(self) -> Iterator[Item]:
        """Yield items of empty images, and add remarks on unused annotations."""
        both = np.flatnonzero((self._empty_at >= 0) & self._shows)
        for row in np.flatnonzero((self._empty_at >= 0) & ~self._shows).tolist():
            yield Item(self._images.name(row), f"annotations[{self._empty_at[row]}]", exhaustive=True)
        if len(both):
            first = self._images.name(int(both[0]))
            self._traps.sentences.append(
                f"{format_count(len(both), 'image')} (the first: {first!r}) are empty by one annotation and show "
                "something by another: they keep what they show, and do not count as complete."
            )
        if self._without_event:
            self._traps.sentences.append(
                f"{format_count(self._without_event, 'annotation')} of sequences left out: their images name no seq_id."
            )

    def _build_event_items(self, row: int, column: int | None, place: str) -> list[Item]:
        event = self._events[int(self._event_of[row])]
        if not event:
            self._without_event += 1
            return []
        given = ImportedLabel(EMPTY_EVENT_CLASS if column is None else self._names[column], PRESENT)
        return [Item(self._images.name(row), place, event=event, event_labels=[given], answered=False)]

    def _read_facts(self, annotation: TrapAnnotation, name: str, is_event: bool) -> dict[str, str]:
        of = f"of {name}{' in the event' if is_event else ''}"
        facts = {field: format_fact(getattr(annotation, field)) for field in ANNOTATION_FACTS}
        if facts["count"].startswith("-"):  # unknown
            facts["count"] = ""
        return {f"{field} {of}"[:MAX_FACT_NAME_CHARS]: text for field, text in facts.items() if text}


def format_fact(value: object) -> str:
    """Return a field value as text, "" if missing or not a single value."""
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()[:2000] if isinstance(value, str | int | float) else ""
