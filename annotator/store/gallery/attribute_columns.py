"""Imported fields as in-memory columns, read on first use."""

from array import array
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.gallery.values import NO_TEXT, CategoryColumn
from annotator.store.images import attributes

MAX_CACHED_COLUMNS = 6  # columns
MAX_DISTINCT_TEXTS = 65_535  # different values that are kept; more texts are names of images, and no fact about them


@dataclass(frozen=True, eq=False)
class AttributeColumn:
    """An imported field as an in-memory column."""

    # values as texts, empty above MAX_DISTINCT_TEXTS
    choices: CategoryColumn
    # (N,) float64, nan if missing, or None if any value is text
    numbers: np.ndarray | None


def get_change_key(db: Database, columns: ImageColumns) -> tuple[int, ...]:
    """Return a key that changes with the field values."""
    return (columns.stamp.image, *attributes.get_change_key(db))


def load_column(db: Database, columns: ImageColumns, name: str) -> AttributeColumn:
    """Return an imported field as a column, cached between calls."""
    return db.caches.get(
        "attribute columns",
        (name, *get_change_key(db, columns)),
        lambda: _read_column(db, columns, name),
        MAX_CACHED_COLUMNS,
    )


def _read_column(db: Database, columns: ImageColumns, name: str) -> AttributeColumn:
    codes, names, last = np.full(len(columns), NO_TEXT, np.int32), list[str](), ""
    numbers: array[float] | None = array("d")  # of the different values
    image_ids, places = array("q"), array("i")
    # Read in the order of the index: equal values follow each other.
    for image_id, value in db.iterate_rows(
        "SELECT image_id, value FROM attribute WHERE name = ? AND value != '' ORDER BY value", [name]
    ):
        if value != last:
            last = value
            names.append(value)
            number = parse_number(value) if numbers is not None else None
            if numbers is not None and number is not None:
                numbers.append(number)
            else:
                numbers = None
                if len(names) > MAX_DISTINCT_TEXTS:
                    break
        image_ids.append(image_id)
        places.append(len(names) - 1)
    rows, known = find_positions(np.frombuffer(image_ids, np.int64), columns.image_ids)
    codes[rows[known]] = np.frombuffer(places, np.int32)[known]
    of_images = None if numbers is None else np.append(np.frombuffer(numbers), np.nan)[codes]
    if len(names) > MAX_DISTINCT_TEXTS:
        codes, names = np.full(len(columns), NO_TEXT, np.int32), []
    return AttributeColumn(CategoryColumn(codes, names), of_images)


def parse_number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    if "_" in text:  # which Python reads as a number
        return None
    with suppress(ValueError):
        number = float(text)
        return number if np.isfinite(number) else None
    return None
