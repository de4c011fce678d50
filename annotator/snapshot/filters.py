"""The filters of the Gallery, each declared once: FILTERS is the table.

A line of it, or of the facts (facts.py), determines the field of a request and its bounds
(ui/routes/gallery_requests.py), which images are shown, whether the list would tell a blind reader too much, and the
field on the page with its part of the address (components/gallery/filter_bar.js).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Any, cast

import numpy as np

from annotator.records import ABSENT, PRESENT, SOURCES
from annotator.snapshot import facts, picture_defects
from annotator.snapshot.facts import FACTS, Fact
from annotator.snapshot.picture_defects import DEFECTS
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns
from annotator.store.gallery.class_states import OPEN
from annotator.store.gallery.columns import ImageColumns
from annotator.store.images import attributes
from annotator.store.labels import counts

MOST_CHOICES = 1000  # of one filter, offered on the page
TO = ".."  # between the ends of a range, in addresses and in values of imported facts

Mask = Callable[[Database, ImageColumns, Any], np.ndarray]
Choices = Callable[[Database, ImageColumns], Sequence[tuple[str, str]]]


class Kind(StrEnum):
    """The kind of value that a filter takes, and with it the field of the page."""

    CLASSES = "classes"  # ids; all of them count
    SWITCH = "switch"  # True or False
    CHOICE = "choice"  # one of its choices
    TEXT = "text"  # any text; its choices are proposals
    DAY = "day"
    DAYS = "days"  # (first, last), both included; None: no end
    RANGE = "range"  # (from, below); None: no end
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
        imported: What is shown changes with imports.
        unit: The unit in which a number is given.
        fact: The fact that it is about; None: no fact.
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
    imported: bool = False
    unit: str = ""
    fact: Fact | None = None


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
        return any(BY_NAME[name].imported for name, _ in self.given)

    def masks(self, db: Database, columns: ImageColumns) -> list[np.ndarray]:
        """Return the mask of each given filter, (N,) bool."""
        return [BY_NAME[name].mask(db, columns, value) for name, value in self.given]

    def _of(self, kind: Kind) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.given if BY_NAME[name].kind == kind]


EMPTY = (None, "", (), (None, None))


def by_state(state: int) -> Mask:
    """Return a mask: images on which all named classes have this state."""

    def mask(db: Database, columns: ImageColumns, class_ids: Sequence[int]) -> np.ndarray:
        return np.logical_and.reduce([columns.with_state(db.sql, class_id, state) for class_id in class_ids])

    return mask


def by_fact(fact: Fact) -> Filter:
    """Return the filter by a fact: one of its choices, from one day to another, or a range of its numbers."""
    kind, mask, choices = {
        facts.Kind.CHOICE: (Kind.CHOICE, _having(fact), _texts_of(fact)),
        facts.Kind.TIME: (Kind.DAYS, _between_days(fact), no_choices),
        facts.Kind.NUMBER: (Kind.RANGE, _between(fact), no_choices),
    }[fact.kind]
    return Filter(
        fact.name,
        fact.label,
        kind,
        mask,
        choices,
        reveals_labels=fact.reveals_labels,
        by_worker=fact.by_worker,
        imported=fact.imported,
        unit=fact.unit,
        fact=fact,
    )


def _having(fact: Fact) -> Mask:
    return lambda db, columns, text: fact.choices(db, columns).where(text)


def _texts_of(fact: Fact) -> Choices:
    return lambda db, columns: [(name, name) for name in fact.choices(db, columns).names]


def _between(fact: Fact) -> Mask:
    return lambda db, columns, ends: fact.within(fact.numbers(db, columns), *ends)


def _between_days(fact: Fact) -> Mask:
    def mask(db: Database, columns: ImageColumns, days: Sequence[date | None]) -> np.ndarray:
        first, last = days
        # The clocks of cameras are taken as UTC (store/pictures/exif.py).
        ends = first and _beginning(first, zone=UTC), last and _beginning(last, days=1, zone=UTC)
        return fact.within(fact.numbers(db, columns), *ends)

    return mask


def _switched(values: np.ndarray, wanted: bool) -> np.ndarray:
    return values if wanted else ~values


def _folders(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    used: list[int] = np.unique(columns.names.folder).tolist()
    names = sorted(columns.names.folders[folder] for folder in used)
    return [(name, name) for name in names if name]


def _facts(db: Database, columns: ImageColumns, wanted: Sequence[tuple[str, str]]) -> np.ndarray:
    return np.logical_and.reduce([_with_fact(db, columns, name, value) for name, value in wanted])


def _with_fact(db: Database, columns: ImageColumns, name: str, value: str) -> np.ndarray:
    """Return (N,) bool: the images with this value of an imported column, or, of numbers, in the range low..high."""
    low, to, high = value.partition(TO)
    ends = [attribute_columns.number_in(end) if end else None for end in (low, high)]
    if to and all(end is not None or not text for end, text in zip(ends, (low, high), strict=True)):
        column = attribute_columns.read(db, columns, name)
        if column.numbers is not None:
            return facts.within(column.numbers, *ends)
    return columns.with_attribute(db.sql, name, value)


def _attribute_names(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    return [(name, name) for name in attributes.names(db)]


def _beginning(day: date, days: int = 0, zone: tzinfo | None = None) -> float:
    """Return when the day `days` after this one begins, in unix seconds; without a zone by this computer's clock.

    Infinite for years that a clock does not know.
    """
    try:
        return (datetime.combine(day, time(), zone) + timedelta(days=days)).timestamp()
    except (OverflowError, ValueError, OSError):  # years that a clock does not know
        return float("-inf") if day.year < 1971 else float("inf")


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
    Filter("empty", "empty", Kind.SWITCH, lambda db, columns, on: _switched(columns.empty(db.sql), on), in_front=True),
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
    Filter("from", "Changed from", Kind.DAY, lambda db, columns, day: columns.newest_at >= _beginning(day)),
    Filter("to", "Changed to", Kind.DAY, lambda db, columns, day: columns.newest_at < _beginning(day, days=1)),
    *(by_fact(fact) for fact in FACTS),
    Filter("facts", "Imported column", Kind.FACTS, _facts, _attribute_names, imported=True),
)
BY_NAME = {one.name: one for one in FILTERS}
