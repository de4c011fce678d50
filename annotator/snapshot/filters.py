"""The filters of the Gallery, each declared once: FILTERS is the table.

A line of it determines the field of a request and its bounds (ui/routes/requests.py), which images are shown, whether
the list would tell a blind reader too much, and the field on the page with its part of the address
(components/gallery/filter.js).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, cast

import numpy as np

from annotator.records import ABSENT, PRESENT, SOURCES
from annotator.snapshot import picture_defects
from annotator.snapshot.picture_defects import DEFECTS
from annotator.store.database.database import Database
from annotator.store.gallery.class_states import OPEN
from annotator.store.gallery.columns import ImageColumns
from annotator.store.images import attributes
from annotator.store.labels import counts

MOST_CHOICES = 1000  # of one filter, offered on the page

Mask = Callable[[Database, ImageColumns, Any], np.ndarray]
Choices = Callable[[Database, ImageColumns], Sequence[tuple[str, str]]]


class Kind(StrEnum):
    """The kind of value that a filter takes, and with it the field of the page."""

    CLASSES = "classes"  # ids; all of them count
    SWITCH = "switch"  # True or False
    CHOICE = "choice"  # one of its choices
    TEXT = "text"  # any text; its choices are proposals
    DAY = "day"
    FACTS = "facts"  # (name, value) of imported attributes; all of them count


def no_choices(db: Database, columns: ImageColumns) -> Sequence[tuple[str, str]]:
    """Return no choices: any value can be given."""
    return []


@dataclass(frozen=True)
class Filter:
    """One condition on images.

    Attributes:
        name: In requests and addresses.
        label: What the page calls it; of a switch the adjective, "complete".
        kind: The kind of value that is given.
        mask: Return (N,) bool: which images are shown for the given value.
        choices: Return what can be chosen or is proposed, as (value, words).
        allowed: The only values of a choice, where they are known beforehand; (): any.
        reveals_labels: A list filtered by it tells what is known of images. True unless it follows from files alone:
            people who are still to answer images blind do not find these in such a list.
        by_worker: The worker finds it out after images are registered, so that the list changes meanwhile.
        in_front: Its field stands in the first row of the page, not under "More".
    """

    name: str
    label: str
    kind: Kind
    mask: Mask
    choices: Choices = no_choices
    allowed: tuple[str, ...] = ()
    reveals_labels: bool = True
    by_worker: bool = False
    in_front: bool = False


@dataclass(frozen=True)
class GalleryFilter:
    """A combination of filters: images are shown for which all given conditions are true.

    Attributes:
        given: (name, value) of filters in FILTERS, sorted; values as their kind has them.
        blind: Images that this person is still to answer blind are left out (store/people/blindness.py); "": none are.
    """

    given: tuple[tuple[str, Hashable], ...] = ()
    blind: str = ""

    @classmethod
    def build(cls, blind: str = "", **values: Any) -> "GalleryFilter":
        """Return the filter of these values; a value that is None or empty is not given.

        Raises KeyError for an unknown name.
        """
        given: list[tuple[str, Any]] = []
        for name, value in values.items():
            plain: Any = tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            if plain not in EMPTY:
                given.append((BY_NAME[name].name, plain))
        return cls(tuple(sorted(given)), blind)

    @property
    def reveals_labels(self) -> bool:
        """Return whether a given filter tells what is known of images."""
        return any(BY_NAME[name].reveals_labels for name, _ in self.given)

    @property
    def class_ids(self) -> set[int]:
        """Return the ids of all classes that the filters name."""
        return {class_id for _, value in self._of(Kind.CLASSES) for class_id in value}

    @property
    def asks_attributes(self) -> bool:
        """Return whether the filter uses imported attributes, so that imports change what is shown."""
        return bool(self._of(Kind.FACTS))

    def masks(self, db: Database, columns: ImageColumns) -> list[np.ndarray]:
        """Return the mask of each given filter, (N,) bool."""
        return [BY_NAME[name].mask(db, columns, value) for name, value in self.given]

    def _of(self, kind: Kind) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.given if BY_NAME[name].kind == kind]


EMPTY = (None, "", ())


def by_state(state: int) -> Mask:
    """Return a mask: images on which all named classes have this state."""

    def mask(db: Database, columns: ImageColumns, class_ids: Sequence[int]) -> np.ndarray:
        return np.logical_and.reduce([columns.with_state(db.sql, class_id, state) for class_id in class_ids])

    return mask


def by_text(fact: str) -> Mask:
    """Return a mask: images whose fact of this name (store/pictures/exif.py) is the given text."""
    return lambda db, columns, text: columns.texts(fact).where(text)


def texts_of(fact: str) -> Choices:
    """Return choices: the texts that a fact of this name has on some image."""
    return lambda db, columns: [(text, text) for text in columns.texts(fact).used()]


def _switched(values: np.ndarray, wanted: bool) -> np.ndarray:
    return values if wanted else ~values


def _folders(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    used: list[int] = np.unique(columns.names.folder).tolist()
    names = sorted(columns.names.folders[folder] for folder in used)
    return [(name, name) for name in names if name]


def _facts(db: Database, columns: ImageColumns, wanted: Sequence[tuple[str, str]]) -> np.ndarray:
    return np.logical_and.reduce([columns.with_attribute(db.sql, name, value) for name, value in wanted])


def _attribute_names(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    return [(name, name) for name in attributes.names(db)]


def _beginning(day: date, days: int = 0) -> float:
    """Return when the day `days` after this one begins by this computer's clock, in unix seconds.

    Infinite for years that a clock does not know.
    """
    try:
        return (datetime.combine(day, time()) + timedelta(days=days)).timestamp()
    except (OverflowError, ValueError, OSError):  # years that a clock does not know
        return float("-inf") if day.year < 1971 else float("inf")


def _of_camera(day: date, days: int = 0) -> float:
    """Return when the day `days` after this one begins by the camera's clock, as capture times are stored."""
    try:
        return (datetime.combine(day, time(), UTC) + timedelta(days=days)).timestamp()
    except OverflowError:  # the day after the last one
        return float("inf")


def _taken_at_hour(db: Database, columns: ImageColumns, hour: str) -> np.ndarray:
    return np.floor_divide(np.mod(columns.captured, DAY), HOUR) == int(hour)  # nan is at no hour


HOUR, DAY = 3600, 86400  # seconds
HOURS = tuple(f"{hour:02}" for hour in range(24))
TWINS = {"has": "has a twin: nearly the same picture", "further": "twin of an earlier image: to leave one of each"}

FILTERS = (
    Filter("has", "has", Kind.CLASSES, by_state(PRESENT)),
    Filter("lacks", "lacks", Kind.CLASSES, by_state(ABSENT)),
    Filter("open", "unanswered", Kind.CLASSES, by_state(OPEN)),
    Filter(
        "name",
        "File name",
        Kind.TEXT,
        lambda db, columns, text: columns.names.containing(text),
        reveals_labels=False,
        in_front=True,
    ),
    Filter("complete", "complete", Kind.SWITCH, lambda db, columns, on: _switched(columns.complete, on), in_front=True),
    Filter("flagged", "flagged", Kind.SWITCH, lambda db, columns, on: _switched(columns.flagged, on), in_front=True),
    Filter("aside", "set aside", Kind.SWITCH, lambda db, columns, on: _switched(columns.aside, on), in_front=True),
    Filter(
        "source",
        "Source of labels",
        Kind.CHOICE,
        lambda db, columns, name: columns.sources.mask_of(name, len(columns)),
        lambda db, columns: [(source.name, f"{source.name}: {source.about}") for source in SOURCES.values()],
        allowed=tuple(SOURCES),
    ),
    Filter(
        "by",
        "Person",
        Kind.CHOICE,
        lambda db, columns, name: columns.people.mask_of(name, len(columns)),
        lambda db, columns: [(name, name) for name in counts.annotators(db)],
    ),
    Filter(
        "folder",
        "Folder",
        Kind.TEXT,
        lambda db, columns, text: columns.names.in_folder(text.strip("/")),
        _folders,
        reveals_labels=False,
    ),
    Filter(
        "quality",
        "Picture quality",
        Kind.CHOICE,
        lambda db, columns, name: picture_defects.BY_NAME[name].where(columns.looks),
        lambda db, columns: [(defect.name, defect.about) for defect in DEFECTS],
        allowed=tuple(defect.name for defect in DEFECTS),
        reveals_labels=False,
        by_worker=True,
    ),
    Filter(
        "twins",
        "Twins",
        Kind.CHOICE,
        lambda db, columns, which: columns.twins.has if which == "has" else columns.twins.further,
        lambda db, columns: list(TWINS.items()),
        allowed=tuple(TWINS),
        reveals_labels=False,
        by_worker=True,
    ),
    Filter(
        "taken_from",
        "Taken from",
        Kind.DAY,
        lambda db, columns, day: columns.captured >= _of_camera(day),
        reveals_labels=False,
    ),
    Filter(
        "taken_to",
        "Taken to",
        Kind.DAY,
        lambda db, columns, day: columns.captured < _of_camera(day, days=1),
        reveals_labels=False,
    ),
    Filter(
        "hour",
        "Hour taken",
        Kind.CHOICE,
        _taken_at_hour,
        lambda db, columns: [(hour, f"{hour}:00 to {hour}:59") for hour in HOURS],
        allowed=HOURS,
        reveals_labels=False,
    ),
    Filter("from", "Changed from", Kind.DAY, lambda db, columns, day: columns.newest_at >= _beginning(day)),
    Filter("to", "Changed to", Kind.DAY, lambda db, columns, day: columns.newest_at < _beginning(day, days=1)),
    Filter("facts", "Imported fact", Kind.FACTS, _facts, _attribute_names),
)
BY_NAME = {one.name: one for one in FILTERS}
