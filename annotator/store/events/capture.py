"""Capture time, place and event of each image, from imported fields, files and names.

Imported fields take precedence, because they may correct cameras, then file times, then file names.
"""

import re
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar

import numpy as np
import sqlite_utils

from annotator.store.database.database import Database
from annotator.store.images import attributes
from annotator.store.pictures.exif import END_YEAR, MIN_YEAR

TIME_FACTS = ("timestamp", "datetime", "DateTime")
PLACE_FACTS = ("deploymentID", "deployment_id", "cameraID", "camera", "location", "locationName")
SEQUENCE_FACTS = ("seq_id", "sequence_id", "eventID")
"""Names of imported facts, the first one that an image has counts."""

DATE_CHARACTERS = 10  # letters of a day without a time of day, which separates no events
Value = TypeVar("Value", bound=Hashable)
_DATE_TIME_PATTERN = re.compile(
    r"(?<!\d)(\d{4})[-_.:]?(\d\d)[-_.:]?(\d\d)[-_ T.]{0,3}(\d\d)[-_.:h]?(\d\d)[-_.:m]?(\d\d)(?:\d{3})?(?!\d)"
)


@dataclass(frozen=True, eq=False)
class Captures:
    """Capture data of all images, in the order of file names."""

    # (N,) int64
    image_ids: np.ndarray
    # (N,) float64, Unix seconds by the camera's clock, nan if unknown
    times: np.ndarray
    # (N,) int64 place numbers from 0
    places: np.ndarray
    # (N,) int64 number of the event named by the image source, or -1
    sequences: np.ndarray
    # (N,) int64 indices into `folder_names`
    folders: np.ndarray
    folder_names: tuple[str, ...]

    def in_folder(self, folder: str) -> np.ndarray:
        """Return (N,) bool: images in or below a folder, "" for all."""
        wanted = [not folder or name == folder or name.startswith(f"{folder}/") for name in self.folder_names]
        return np.array(wanted, bool)[self.folders] if wanted else np.zeros(0, bool)


def get_change_key(db: Database) -> tuple[int, ...]:
    """Return a key that changes with the capture data."""
    # Times of files that were not read when their images were added come later.
    of_images = """SELECT (SELECT coalesce(max(id), 0) FROM image), (SELECT coalesce(max(id), 0) FROM image_change),
        (SELECT count(*) FROM image WHERE capture_read = 0 AND problem = '')"""
    return (*db.tuples(of_images)[0], *attributes.get_change_key(db))


def load_captures(sql: sqlite_utils.Database) -> Captures:
    # rtrim removes from the end all letters of the name but slashes: what is left is the folder.
    rows = sql.execute(
        """SELECT id, captured_at, folder_key, rtrim(name, replace(name, '/', '')), name FROM image
        ORDER BY name_key, id"""
    ).fetchall()
    time_of, place_of, sequence_of = (_load_facts(sql, names) for names in (TIME_FACTS, PLACE_FACTS, SEQUENCE_FACTS))
    # Numbers of sequences begin anew at each camera.
    sequences: dict[int, Hashable] = {
        image_id: (place_of.get(image_id), sequence) for image_id, sequence in sequence_of.items()
    }
    for image_id, *event in sql.execute("SELECT image_id, import_id, event FROM event_image ORDER BY import_id"):
        sequences[image_id] = tuple(event)
    folders, folder_names = _number_values(row[3].rstrip("/") for row in rows)
    places, _ = _number_values(place_of.get(row[0], (row[2],)) for row in rows)  # a tuple: no fact is equal to it
    # None is the first number, so that images of no sequence have -1.
    numbers, _ = _number_values(chain([None], (sequences.get(row[0]) for row in rows)))
    return Captures(
        image_ids=np.array([row[0] for row in rows], np.int64),
        times=np.array([_choose_time(time_of.get(row[0]), row[1], row[4]) for row in rows], np.float64),
        places=places,
        sequences=numbers[1:] - 1,
        folders=folders,
        folder_names=tuple(folder_names),
    )


def _load_facts(sql: sqlite_utils.Database, names: tuple[str, ...]) -> dict[int, str]:
    """Return image id -> value of the first of these fields it has."""
    found: dict[int, str] = {}
    for name in reversed(names):
        found |= dict(sql.execute("SELECT image_id, value FROM attribute WHERE name = ? AND value != ''", [name]))
    return found


def _number_values(values: Iterable[Value]) -> tuple[np.ndarray, list[Value]]:
    numbers: dict[Value, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64), list(numbers)


def _choose_time(fact: str | None, in_file: float | None, name: str) -> float:
    for seconds in (fact and parse_seconds(fact), in_file):
        if isinstance(seconds, float):
            return seconds
    named = parse_seconds(name.rpartition("/")[2])
    return np.nan if named is None else named


def parse_seconds(text: str) -> float | None:
    """Parse an ISO 8601 time, or the first date and time in a text, to Unix seconds (UTC if it has no zone)."""
    if text[4:5] == "-" and len(text) > DATE_CHARACTERS:
        with suppress(ValueError):
            return _to_unix_seconds(datetime.fromisoformat(text))
    for match in _DATE_TIME_PATTERN.finditer(text):
        with suppress(ValueError):  # digits that are no date
            year, month, day, hour, minute, second = map(int, match.groups())
            return _to_unix_seconds(datetime(year, month, day, hour, minute, second))
    return None


def _to_unix_seconds(at: datetime) -> float:
    if not MIN_YEAR <= at.year < END_YEAR:
        raise ValueError(f"The clock was not set: {at}.")
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
