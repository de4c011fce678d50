"""The Gallery filters, each declared once in the table FILTERS.

An entry defines the request parameter, the images shown, whether it reveals labels, and the page control.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Any, cast

import numpy as np

from annotator.records import ABSENT, PRESENT, SOURCES
from annotator.snapshot import image_facts, picture_defects
from annotator.snapshot.image_facts import FACTS, Fact
from annotator.snapshot.picture_defects import DEFECTS
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns
from annotator.store.gallery.class_states import OPEN
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.images import attributes
from annotator.store.labels import project_counts

MAX_CHOICES = 1000  # of one filter, offered on the page
RANGE_SEPARATOR = ".."  # between the ends of a range, in addresses and in values of imported facts

MaskFunction = Callable[[Database, ImageColumns, Any], np.ndarray]
ChoicesFunction = Callable[[Database, ImageColumns], Sequence[tuple[str, str]]]


class FilterKind(StrEnum):
    """The kind of a filter's value, which determines its control on the page."""

    CLASSES = "classes"  # ids; all of them count
    SWITCH = "switch"  # True or False
    CHOICE = "choice"  # one of its choices
    TEXT = "text"  # any text; its choices are proposals
    DAY = "day"
    DAYS = "days"  # (first, last), both included; None: no end
    RANGE = "range"  # (from, below); None: no end
    FACTS = "facts"  # (name, value) of imported attributes; all of them count


def list_no_choices(db: Database, columns: ImageColumns) -> Sequence[tuple[str, str]]:
    """Return no choices, for a filter that allows any value."""
    return []


@dataclass(frozen=True)
class Filter:
    """One filter of the Gallery, an entry of FILTERS."""

    name: str
    # page text, for a switch an adjective
    label: str
    kind: FilterKind
    compute_mask: MaskFunction
    # returns choices or proposals, as (value, words)
    list_choices: ChoicesFunction = list_no_choices
    # empty allows any
    allowed_values: tuple[str, ...] = ()
    # hide images to be answered blind. False only if files alone determine the filter
    reveals_labels: bool = True
    # computed after registration
    by_worker: bool = False
    is_in_first_row: bool = False
    imported: bool = False
    unit: str = ""
    fact: Fact | None = None


@dataclass(frozen=True)
class GalleryFilter:
    """A combination of Gallery filters with their values, all of which an image must meet."""

    # sorted (filter name, value)
    conditions: tuple[tuple[str, Hashable], ...] = ()
    # annotator whose images still to be answered blind are hidden, or ""
    blind: str = ""

    @classmethod
    def build(cls, blind: str = "", **values: Any) -> "GalleryFilter":
        """Return the filter with all nonempty values by filter name. An unknown name raises KeyError."""
        given: list[tuple[str, Any]] = []
        for name, value in values.items():
            plain: Any = tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            if plain not in EMPTY_VALUES:
                given.append((FILTERS_BY_NAME[name].name, plain))
        return cls(tuple(sorted(given)), blind)

    @property
    def reveals_labels(self) -> bool:
        return any(FILTERS_BY_NAME[name].reveals_labels for name, _ in self.conditions)

    @property
    def class_ids(self) -> set[int]:
        return {class_id for _, value in self._select_kind(FilterKind.CLASSES) for class_id in value}

    @property
    def uses_imported(self) -> bool:
        """Return whether imports of fields change the result."""
        return any(FILTERS_BY_NAME[name].imported for name, _ in self.conditions)

    def compute_masks(self, db: Database, columns: ImageColumns) -> list[np.ndarray]:
        """Return which images meet each condition, one (N,) bool array per condition."""
        return [FILTERS_BY_NAME[name].compute_mask(db, columns, value) for name, value in self.conditions]

    def _select_kind(self, kind: FilterKind) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.conditions if FILTERS_BY_NAME[name].kind == kind]


EMPTY_VALUES = (None, "", (), (None, None))


def make_state_mask(state: int) -> MaskFunction:
    """Return a function that selects images whose label is `state` for all given classes."""

    def mask(db: Database, columns: ImageColumns, class_ids: Sequence[int]) -> np.ndarray:
        return np.logical_and.reduce([columns.get_state_mask(db.sql, class_id, state) for class_id in class_ids])

    return mask


def build_fact_filter(fact: Fact) -> Filter:
    """Return the Gallery filter for a metadata field: by choice, range of days or range of numbers."""
    kind, mask, choices = {
        image_facts.FactKind.CHOICE: (FilterKind.CHOICE, _make_choice_mask(fact), _make_text_choices(fact)),
        image_facts.FactKind.TIME: (FilterKind.DAYS, _make_days_mask(fact), list_no_choices),
        image_facts.FactKind.NUMBER: (FilterKind.RANGE, _make_range_mask(fact), list_no_choices),
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


def _make_choice_mask(fact: Fact) -> MaskFunction:
    return lambda db, columns, text: fact.read_choices(db, columns).get_mask(text)


def _make_text_choices(fact: Fact) -> ChoicesFunction:
    return lambda db, columns: [(name, name) for name in fact.read_choices(db, columns).names]


def _make_range_mask(fact: Fact) -> MaskFunction:
    return lambda db, columns, ends: fact.compute_range_mask(fact.read_numbers(db, columns), *ends)


def _make_days_mask(fact: Fact) -> MaskFunction:
    def mask(db: Database, columns: ImageColumns, days: Sequence[date | None]) -> np.ndarray:
        first, last = days
        # The clocks of cameras are taken as UTC (store/pictures/exif.py).
        ends = first and _get_day_start(first, zone=UTC), last and _get_day_start(last, days=1, zone=UTC)
        return fact.compute_range_mask(fact.read_numbers(db, columns), *ends)

    return mask


def _apply_switch(values: np.ndarray, wanted: bool) -> np.ndarray:
    return values if wanted else ~values


def _list_folders(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    used: list[int] = np.unique(columns.names.folder).tolist()
    names = sorted(columns.names.folders[folder] for folder in used)
    return [(name, name) for name in names if name]


def _compute_facts_mask(db: Database, columns: ImageColumns, wanted: Sequence[tuple[str, str]]) -> np.ndarray:
    return np.logical_and.reduce([_compute_fact_mask(db, columns, name, value) for name, value in wanted])


def _compute_fact_mask(db: Database, columns: ImageColumns, name: str, value: str) -> np.ndarray:
    """Return which images, (N,) bool, have this value in a field, or one in the range low..high."""
    low, to, high = value.partition(RANGE_SEPARATOR)
    ends = [attribute_columns.parse_number(end) if end else None for end in (low, high)]
    if to and all(end is not None or not text for end, text in zip(ends, (low, high), strict=True)):
        column = attribute_columns.load_column(db, columns, name)
        if column.numbers is not None:
            return image_facts.compute_range_mask(column.numbers, *ends)
    return columns.load_attribute_mask(db.sql, name, value)


def _list_attribute_names(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    return [(name, name) for name in attributes.load_names(db)]


def _get_day_start(day: date, days: int = 0, zone: tzinfo | None = None) -> float:
    try:
        return (datetime.combine(day, time(), zone) + timedelta(days=days)).timestamp()
    except (OverflowError, ValueError, OSError):  # years that a clock does not know
        return float("-inf") if day.year < 1971 else float("inf")


NEAR_DUPLICATE_CHOICES = {
    "has": "has a twin: nearly the same picture",
    "further": "twin of an earlier image: to leave one of each",
}

FILTERS = (
    Filter("has", "has", FilterKind.CLASSES, make_state_mask(PRESENT)),
    Filter("lacks", "lacks", FilterKind.CLASSES, make_state_mask(ABSENT)),
    Filter("open", "unanswered", FilterKind.CLASSES, make_state_mask(OPEN)),
    Filter(
        "name",
        "File name",
        FilterKind.TEXT,
        lambda db, columns, text: columns.names.find_containing(text),
        reveals_labels=False,
        is_in_first_row=True,
    ),
    Filter(
        "complete",
        "complete",
        FilterKind.SWITCH,
        lambda db, columns, on: _apply_switch(columns.complete, on),
        is_in_first_row=True,
    ),
    Filter(
        "empty",
        "empty",
        FilterKind.SWITCH,
        lambda db, columns, on: _apply_switch(columns.get_empty_mask(db.sql), on),
        is_in_first_row=True,
    ),
    Filter(
        "flagged",
        "flagged",
        FilterKind.SWITCH,
        lambda db, columns, on: _apply_switch(columns.flagged, on),
        is_in_first_row=True,
    ),
    Filter(
        "aside",
        "set aside",
        FilterKind.SWITCH,
        lambda db, columns, on: _apply_switch(columns.aside, on),
        is_in_first_row=True,
    ),
    Filter(
        "source",
        "Source of labels",
        FilterKind.CHOICE,
        lambda db, columns, name: columns.sources.get_mask(name, len(columns)),
        lambda db, columns: [(source.name, f"{source.name}: {source.about}") for source in SOURCES.values()],
        allowed_values=tuple(SOURCES),
    ),
    Filter(
        "by",
        "Person",
        FilterKind.CHOICE,
        lambda db, columns, name: columns.people.get_mask(name, len(columns)),
        lambda db, columns: [(name, name) for name in project_counts.list_annotators(db)],
    ),
    Filter(
        "folder",
        "Folder",
        FilterKind.TEXT,
        lambda db, columns, text: columns.names.in_folder(text.strip("/")),
        _list_folders,
        reveals_labels=False,
    ),
    Filter(
        "quality",
        "Picture quality",
        FilterKind.CHOICE,
        lambda db, columns, name: picture_defects.DEFECTS_BY_NAME[name].compute_mask(columns.looks),
        lambda db, columns: [(defect.name, defect.about) for defect in DEFECTS],
        allowed_values=tuple(defect.name for defect in DEFECTS),
        reveals_labels=False,
        by_worker=True,
    ),
    Filter(
        "twins",
        "Twins",
        FilterKind.CHOICE,
        lambda db, columns, which: columns.twins.has if which == "has" else columns.twins.further,
        lambda db, columns: list(NEAR_DUPLICATE_CHOICES.items()),
        allowed_values=tuple(NEAR_DUPLICATE_CHOICES),
        reveals_labels=False,
        by_worker=True,
    ),
    Filter("from", "Changed from", FilterKind.DAY, lambda db, columns, day: columns.newest_at >= _get_day_start(day)),
    Filter(
        "to", "Changed to", FilterKind.DAY, lambda db, columns, day: columns.newest_at < _get_day_start(day, days=1)
    ),
    *(build_fact_filter(fact) for fact in FACTS),
    Filter("facts", "Imported column", FilterKind.FACTS, _compute_facts_mask, _list_attribute_names, imported=True),
)
FILTERS_BY_NAME = {one.name: one for one in FILTERS}
