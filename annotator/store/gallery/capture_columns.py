"""Capture places and times as in-memory columns. Imported fields take precedence over folders and file times."""

from array import array

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.events.capture import PLACE_FACTS, TIME_FACTS, parse_seconds
from annotator.store.gallery import attribute_columns
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.gallery.values import NO_TEXT, CategoryColumn
from annotator.store.images import attributes

DAY_SECONDS = 86_400


def load_places(db: Database, columns: ImageColumns) -> CategoryColumn:
    names = _find_imported_names(db, PLACE_FACTS)
    return db.caches.get("places", _get_change_key(db, columns, names), lambda: _read_places(db, columns, names), 1)


def load_times(db: Database, columns: ImageColumns) -> np.ndarray:
    """Return the capture times, (N,) float64 Unix seconds, nan if unknown."""
    names = _find_imported_names(db, TIME_FACTS)
    if not names:
        return columns.capture_times
    return db.caches.get("times", _get_change_key(db, columns, names), lambda: _read_times(db, columns, names), 1)


def load_hours(db: Database, columns: ImageColumns) -> np.ndarray:
    """Return the capture hours, (N,) float32 in [0, 24), nan if unknown."""
    key = _get_change_key(db, columns, _find_imported_names(db, TIME_FACTS))
    return db.caches.get("hours", key, lambda: (load_times(db, columns) % DAY_SECONDS // 60 / 60).astype(np.float32), 1)


def _find_imported_names(db: Database, wanted: tuple[str, ...]) -> list[str]:
    names = set(attributes.load_names(db))
    return [name for name in wanted if name in names]


def _get_change_key(db: Database, columns: ImageColumns, names: list[str]) -> tuple[int | str, ...]:
    return (columns.stamp.change, *attribute_columns.get_change_key(db, columns), *names)


def _read_places(db: Database, columns: ImageColumns, names: list[str]) -> CategoryColumn:
    codes, texts = columns.names.folder.copy(), list(columns.names.folders)
    for name in reversed(names):
        column = attribute_columns.load_column(db, columns, name).choices
        codes = np.where(column.codes == NO_TEXT, codes, column.codes + len(texts))
        texts += column.names
    used: list[int] = np.unique(codes).tolist()
    sorted_names = sorted({texts[code] for code in used} - {""})
    number = {text: place for place, text in enumerate(sorted_names)}
    place_of = np.full(len(texts), NO_TEXT, np.int32)
    place_of[used] = [number.get(texts[code], NO_TEXT) for code in used]
    return CategoryColumn(place_of[codes], sorted_names)


def _read_times(db: Database, columns: ImageColumns, names: list[str]) -> np.ndarray:
    result = columns.capture_times.copy()
    for name in reversed(names):
        image_ids, seconds = array("q"), array("d")
        for image_id, value in db.iterate_rows("SELECT image_id, value FROM attribute WHERE name = ?", [name]):
            at = parse_seconds(value)
            if at is not None:
                image_ids.append(image_id)
                seconds.append(at)
        rows, known = find_positions(np.frombuffer(image_ids, np.int64), columns.image_ids)
        result[rows[known]] = np.frombuffer(seconds)[known]
    return result
