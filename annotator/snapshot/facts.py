"""The facts of images, each declared once: FACTS is the table.

A line of it makes a filter (filters.py) and an order (sorts.py) of the Gallery, with their part of a request, of the
page and of the address, bars of its chart (fact_groups.py), and colours of the Map (fact_colours.py). Imported columns
are facts without a line. Values are columns in memory, read as they are: nothing here looks at decisions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns, taken
from annotator.store.gallery.columns import ImageColumns
from annotator.store.gallery.values import NONE, Choices
from annotator.store.images import attributes

COLUMN = "column:"  # before the name of an imported column, where one may be called like a fact of the table
MOST_COLUMNS = 50  # imported columns that pages offer

Values = Choices | np.ndarray
Read = Callable[[Database, ImageColumns], Values]


class Kind(StrEnum):
    """The kind of values that a fact has."""

    CHOICE = "choice"  # texts
    NUMBER = "number"
    TIME = "time"  # seconds since 1970


@dataclass(frozen=True)
class Fact:
    """One fact of images.

    Attributes:
        name: In requests and addresses.
        label: What pages call it.
        kind: The kind of its values.
        read: Return the values of all images: Choices, or (N,) floats with nan where not known.
        in_words: A number as pages show it.
        scale: A number is given and shown times this.
        unit: The unit in which a number is given.
        edges: Where its bands begin but the first one, as numbers are given; (): at the quartiles.
        step: The least width of a band of a histogram, as numbers are given; 0: any.
        reveals_labels: It tells what is known of images. True unless it follows from files alone, or from when they
            were taken: people who are still to answer images blind do not find, count or see these by it.
        imported: It changes with imports.
        by_worker: The worker finds it out after images are registered.
    """

    name: str
    label: str
    kind: Kind
    read: Read
    in_words: Callable[[float], str] = str
    scale: float = 1.0
    unit: str = ""
    edges: tuple[float, ...] = ()
    step: float = 0.0
    reveals_labels: bool = True
    imported: bool = False
    by_worker: bool = False

    def numbers(self, db: Database, columns: ImageColumns) -> np.ndarray:
        """Return the values of a fact that is no choice, (N,) floats; nan: not known."""
        values = self.read(db, columns)
        assert isinstance(values, np.ndarray), f"{self.name} is a choice"
        return values

    def choices(self, db: Database, columns: ImageColumns) -> Choices:
        """Return the values of a fact that is a choice."""
        values = self.read(db, columns)
        assert isinstance(values, Choices), f"{self.name} is a number"
        return values

    def within(self, values: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
        """Return (N,) bool: which values are at least `low` and below `high`, as numbers are given; None: no bound."""
        return within(values, *(None if end is None else end / self.scale for end in (low, high)))


def within(values: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Return (N,) bool: which values are at least `low` and below `high`; None: no bound. nan never is."""
    result = ~np.isnan(values)
    # As float64: otherwise numpy would round the bounds to the half precision of some columns.
    if low is not None:
        result &= values >= np.float64(low)
    if high is not None:
        result &= values < np.float64(high)
    return result


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{share:.0%}"


def whole(number: float) -> str:
    """Return a number without a fraction."""
    return f"{number:,.0f}"


def pixels(number: float) -> str:
    """Return a number of pixels in words."""
    return f"{number:.0f} px"


def short(number: float) -> str:
    """Return a number with six digits at most."""
    return f"{number:,.6g}"


def clock(hour: float) -> str:
    """Return an hour with its fraction as a time of day."""
    return "{}:{:02}".format(*divmod(round(hour * 60), 60))


def minute(seconds: float) -> str:
    """Return a time as day, hour and minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def day(seconds: float) -> str:
    """Return the day of a time."""
    return minute(seconds)[:10]


def text(name: str) -> Read:
    """Return the reader of a text that files say (store/pictures/exif.py)."""
    return lambda db, columns: columns.texts(name).choices()


def measured(name: str) -> Read:
    """Return the reader of a number that the worker measures (store/gallery/appearance_columns.py)."""
    return lambda db, columns: columns.looks.numbers(name)


FACTS = (
    # It may be of an import, whose columns can say anything.
    Fact("place", "Place", Kind.CHOICE, taken.places, imported=True),
    Fact("camera", "Camera", Kind.CHOICE, text("camera"), reveals_labels=False),
    Fact("captured", "Capture time", Kind.TIME, taken.times, minute, reveals_labels=False, imported=True),
    Fact(
        "hour",
        "Hour of day",
        Kind.NUMBER,
        taken.hours,
        clock,
        unit="h",
        edges=(6, 12, 18),
        step=1,
        reveals_labels=False,
        imported=True,
    ),
    Fact(
        "size",
        "Shorter side",
        Kind.NUMBER,
        measured("shorter_side"),
        pixels,
        unit="px",
        edges=(500, 1000, 2000),
        reveals_labels=False,
        by_worker=True,
    ),
    Fact(
        "brightness",
        "Brightness",
        Kind.NUMBER,
        measured("brightness"),
        percent,
        scale=100,
        unit="%",
        edges=(20, 40, 60),
        reveals_labels=False,
        by_worker=True,
    ),
    Fact(
        "sharpness",
        "Sharpness",
        Kind.NUMBER,
        measured("sharpness"),
        whole,
        edges=(30, 100, 300, 1000),
        reveals_labels=False,
        by_worker=True,
    ),
)
BY_NAME = {one.name: one for one in FACTS}


def find(db: Database, columns: ImageColumns, name: str) -> Fact:
    """Return the fact of this name, or the imported column of this name, with or without COLUMN before it.

    Raises:
        AnnotatorError: There is none, or its values are too many different texts.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    names = attributes.names(db)
    column = name.removeprefix(COLUMN)
    if column not in names:
        imported = f" Imported columns: {', '.join(names)}." if names else ""
        raise AnnotatorError(f"There is no fact {name!r}. There is: {', '.join(BY_NAME)}.{imported}")
    return _of_column(column, attribute_columns.read(db, columns, column))


def _of_column(name: str, column: attribute_columns.AttributeColumn) -> Fact:
    if column.numbers is None and not len(column.choices.names):
        raise AnnotatorError(
            f"{name!r} has more than {attribute_columns.MOST_TEXTS:,} different texts, so there is no order, plot or "
            "color by it. Filter by one of its values instead."
        )

    def read(db: Database, columns: ImageColumns) -> Values:
        values = attribute_columns.read(db, columns, name)
        return values.choices if values.numbers is None else values.numbers

    kind = Kind.CHOICE if column.numbers is None else Kind.NUMBER
    return Fact(f"{COLUMN}{name}", name, kind, read, short, imported=True)


def offered(db: Database, columns: ImageColumns) -> list[tuple[str, str]]:
    """Return the facts of which a value is known, as (name, label), and then at most MOST_COLUMNS imported columns."""
    known = [(one.name, one.label) for one in FACTS if is_known(one.read(db, columns)).any()]
    return known + [(f"{COLUMN}{name}", name) for name in attributes.names(db)[:MOST_COLUMNS]]


def is_known(values: Values) -> np.ndarray:
    """Return (N,) bool: which images have a value."""
    return values.codes != NONE if isinstance(values, Choices) else ~np.isnan(values)


def taken_of(values: Values, rows: np.ndarray) -> Values:
    """Return the values of some rows, (n,) int."""
    return Choices(values.codes[rows], values.names) if isinstance(values, Choices) else values[rows]


def words_of(fact: Fact, values: Values, rows: np.ndarray) -> list[str]:
    """Return the values of some rows in words, "" where not known."""
    if isinstance(values, Choices):
        codes: list[int] = values.codes[rows].tolist()
        return ["" if code == NONE else values.names[code] for code in codes]
    numbers: list[float] = values[rows].tolist()
    return ["" if number != number else fact.in_words(number) for number in numbers]
