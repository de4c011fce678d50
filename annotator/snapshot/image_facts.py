"""The metadata fields of images, each declared once in the table FACTS.

An entry creates a Gallery filter, order and chart, and Map colors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns, capture_columns
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.gallery.values import NO_TEXT, CategoryColumn
from annotator.store.images import attributes

COLUMN_PREFIX = "column:"  # before the name of an imported column, where one may be called like a fact of the table
MAX_OFFERED_COLUMNS = 50  # imported columns that pages offer

FactValues = CategoryColumn | np.ndarray
FactReader = Callable[[Database, ImageColumns], FactValues]


class FactKind(StrEnum):
    """The kind of values of a field."""

    CHOICE = "choice"  # texts
    NUMBER = "number"
    TIME = "time"  # seconds since 1970


@dataclass(frozen=True)
class Fact:
    """One metadata field of images, an entry of FACTS."""

    name: str
    label: str
    kind: FactKind
    # returns choices, or (N,) floats with nan
    read_values: FactReader
    format_value: Callable[[float], str] = str
    # factor from stored to displayed numbers
    scale: float = 1.0
    unit: str = ""
    # lower band edges after the first band, as displayed. Empty selects quartiles
    edges: tuple[float, ...] = ()
    # minimum width of histogram bands, as displayed
    step: float = 0.0
    # hide it from annotators answering blind. False only if files or capture times determine it
    reveals_labels: bool = True
    # changes with imports
    imported: bool = False
    # computed after registration
    by_worker: bool = False

    def read_numbers(self, db: Database, columns: ImageColumns) -> np.ndarray:
        """Return the values of a number or time field, (N,) floats or nan."""
        values = self.read_values(db, columns)
        assert isinstance(values, np.ndarray), f"{self.name} is a choice"
        return values

    def read_choices(self, db: Database, columns: ImageColumns) -> CategoryColumn:
        values = self.read_values(db, columns)
        assert isinstance(values, CategoryColumn), f"{self.name} is a number"
        return values

    def compute_range_mask(self, values: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
        """Return (N,) bool, low <= value < high in displayed units."""
        return compute_range_mask(values, *(None if end is None else end / self.scale for end in (low, high)))


def compute_range_mask(values: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Return (N,) bool, low <= value < high, False for nan. None means no bound."""
    result = ~np.isnan(values)
    # As float64: otherwise numpy would round the bounds to the half precision of some columns.
    if low is not None:
        result &= values >= np.float64(low)
    if high is not None:
        result &= values < np.float64(high)
    return result


def format_percent(share: float) -> str:
    return f"{share:.0%}"


def format_whole_number(number: float) -> str:
    return f"{number:,.0f}"


def format_pixels(number: float) -> str:
    return f"{number:.0f} px"


def format_number(number: float) -> str:
    return f"{number:,.6g}"


def format_clock(hour: float) -> str:
    """Format a decimal hour as a time of day."""
    return "{}:{:02}".format(*divmod(round(hour * 60), 60))


def format_minute(seconds: float) -> str:
    """Format Unix seconds as date and time, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def format_day(seconds: float) -> str:
    return format_minute(seconds)[:10]


def make_text_reader(name: str) -> FactReader:
    """Return a function that reads a text field of image files."""
    return lambda db, columns: columns.get_texts(name).to_categories()


def make_measure_reader(name: str) -> FactReader:
    """Return a function that reads a number measured by the worker."""
    return lambda db, columns: columns.looks.get_numbers(name)


FACTS = (
    # It may be of an import, whose columns can say anything.
    Fact("place", "Place", FactKind.CHOICE, capture_columns.load_places, imported=True),
    Fact("camera", "Camera", FactKind.CHOICE, make_text_reader("camera"), reveals_labels=False),
    Fact(
        "captured",
        "Capture time",
        FactKind.TIME,
        capture_columns.load_times,
        format_minute,
        reveals_labels=False,
        imported=True,
    ),
    Fact(
        "hour",
        "Hour of day",
        FactKind.NUMBER,
        capture_columns.load_hours,
        format_clock,
        unit="h",
        edges=(6, 12, 18),
        step=1,
        reveals_labels=False,
        imported=True,
    ),
    Fact(
        "size",
        "Shorter side",
        FactKind.NUMBER,
        make_measure_reader("shorter_side"),
        format_pixels,
        unit="px",
        edges=(500, 1000, 2000),
        reveals_labels=False,
        by_worker=True,
    ),
    Fact(
        "brightness",
        "Brightness",
        FactKind.NUMBER,
        make_measure_reader("brightness"),
        format_percent,
        scale=100,
        unit="%",
        edges=(20, 40, 60),
        reveals_labels=False,
        by_worker=True,
    ),
    Fact(
        "sharpness",
        "Sharpness",
        FactKind.NUMBER,
        make_measure_reader("sharpness"),
        format_whole_number,
        edges=(30, 100, 300, 1000),
        reveals_labels=False,
        by_worker=True,
    ),
)
FACTS_BY_NAME = {one.name: one for one in FACTS}


def find(db: Database, columns: ImageColumns, name: str) -> Fact:
    """Return the field of this name, or else the imported field, with or without COLUMN_PREFIX.

    Raises AnnotatorError if it does not exist or has too many texts.
    """
    if name in FACTS_BY_NAME:
        return FACTS_BY_NAME[name]
    names = attributes.load_names(db)
    column = name.removeprefix(COLUMN_PREFIX)
    if column not in names:
        imported = f" Imported columns: {', '.join(names)}." if names else ""
        raise AnnotatorError(f"There is no fact {name!r}. There is: {', '.join(FACTS_BY_NAME)}.{imported}")
    return _build_column_fact(column, attribute_columns.load_column(db, columns, column))


def _build_column_fact(name: str, column: attribute_columns.AttributeColumn) -> Fact:
    if column.numbers is None and not len(column.choices.names):
        raise AnnotatorError(
            f"{name!r} has more than {attribute_columns.MAX_DISTINCT_TEXTS:,} different texts, so there is no order, "
            "plot or color by it. Filter by one of its values instead."
        )

    def read(db: Database, columns: ImageColumns) -> FactValues:
        values = attribute_columns.load_column(db, columns, name)
        return values.choices if values.numbers is None else values.numbers

    kind = FactKind.CHOICE if column.numbers is None else FactKind.NUMBER
    return Fact(f"{COLUMN_PREFIX}{name}", name, kind, read, format_number, imported=True)


def list_offered(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    """Return the fields with a known value as (name, label), then at most MAX_OFFERED_COLUMNS imported ones."""
    known = [(one.name, one.label) for one in FACTS if get_known_mask(one.read_values(db, columns)).any()]
    return known + [(f"{COLUMN_PREFIX}{name}", name) for name in attributes.load_names(db)[:MAX_OFFERED_COLUMNS]]


def get_known_mask(values: FactValues) -> np.ndarray:
    """Return which images have a value, (N,) bool."""
    return values.codes != NO_TEXT if isinstance(values, CategoryColumn) else ~np.isnan(values)


def select_rows(values: FactValues, rows: np.ndarray) -> FactValues:
    """Return the values of some rows, (n,) int."""
    return CategoryColumn(values.codes[rows], values.names) if isinstance(values, CategoryColumn) else values[rows]


def format_rows(fact: Fact, values: FactValues, rows: np.ndarray) -> list[str]:
    """Return the values of some rows in words, "" if unknown."""
    if isinstance(values, CategoryColumn):
        codes: list[int] = values.codes[rows].tolist()
        return ["" if code == NO_TEXT else values.names[code] for code in codes]
    numbers: list[float] = values[rows].tolist()
    return ["" if number != number else fact.format_value(number) for number in numbers]
