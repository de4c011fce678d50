"""The events of a project: finding, editing and storing them in the table `image_event`.

Images are read before the lock, and changes since are checked under it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.humanize import format_exact_duration
from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.events import capture, event_edits
from annotator.store.events.capture import Captures
from annotator.store.events.event_edits import GAP, MAX_CLOCK_SECONDS, MERGE, SHIFT, SPLIT, EventChange, EventEdit
from annotator.store.events.finding import (
    Arrangement,
    Boundary,
    arrange_images,
    find_event_starts,
    number_events_and_frames,
)
from annotator.store.events.membership import EVENTS_FOUND_SETTING

ROWS_PER_STATEMENT = 50_000  # rows
CACHED_EVENT_SETS = 2  # events in memory: those of now, and of the change before or of a preview


@dataclass(frozen=True, eq=False)
class Events:
    """The events of all images, with rows as in `captures`."""

    captures: Captures
    arrangement: Arrangement
    # (N,) bool, whether an image starts an event, in the order of `arrangement`
    starts: np.ndarray
    # (N,) int64 event id per row, its smallest image id
    events: np.ndarray
    # (N,) int64 index of the image in its event, from 0
    frames: np.ndarray
    edits: tuple[EventEdit, ...]

    @property
    def gap(self) -> float:
        return event_edits.get_gap(self.edits)

    def find_position(self, image_id: int) -> int:
        """Return an image's position in the arrangement, or raise AnnotatorError."""
        [row] = np.flatnonzero(self.captures.image_ids == image_id).tolist() or [None]
        if row is None:
            raise AnnotatorError(f"There is no image with the id {image_id}.")
        return int(self.arrangement.positions[row])

    def find_start(self, position: int) -> int:
        """Return the position of the first image of the event that contains this position."""
        return int(np.flatnonzero(self.starts[: position + 1])[-1])

    def get_image_at(self, position: int) -> int:
        return int(self.captures.image_ids[self.arrangement.order[position]])

    def get_time_at(self, position: int) -> float | None:
        """Return the corrected capture time at a position, or None."""
        seconds = float(self.arrangement.times[position])
        return None if np.isnan(seconds) else seconds


def derive_current(db: Database) -> Events:
    """Return the events derived now, without storing them."""
    with db.reading() as sql:
        return _derive_events(db, sql, event_edits.load_active(sql))


def preview_gap(db: Database, gap: float) -> Events:
    """Return the events with this gap, without storing them."""
    with db.reading() as sql:
        made = event_edits.load_active(sql)
        return _derive_events(db, sql, [*made, EventEdit(0, EventChange(GAP, seconds=gap), "", 0.0)])


def find_and_save(db: Database) -> Events:
    derive_current(db)  # keeps what is read of the images in memory, before the lock
    with db.writing() as sql:
        return _store_events(db, sql, None)


def have_been_found(db: Database) -> bool:
    """Return whether events were ever requested."""
    return db.get_setting(EVENTS_FOUND_SETTING) is not None


def are_current(db: Database) -> bool:
    """Return whether the stored events match current images and edits."""
    with db.reading() as sql:
        return db.get_setting(EVENTS_FOUND_SETTING) == _get_change_key(db, sql)


def find_invalid_rows(db: Database) -> list[str]:
    """Return a sentence per wrong or missing row of `image_event`."""
    with db.reading() as sql:
        if have_been_found(db) and not are_current(db):
            return []
        stored = set(db.tuples("SELECT image_id, event_id, frame FROM image_event"))
        expected: set[tuple[int, ...]] = set()
        if have_been_found(db):
            now = _derive_events(db, sql, event_edits.load_active(sql))
            expected = set(map(tuple, np.stack([now.captures.image_ids, now.events, now.frames], 1).tolist()))
    missing, odd = sorted(expected - stored), sorted(stored - expected)
    return [
        *(f"event: {row} is missing" for row in missing),
        *(f"event: {row} follows from nothing" for row in odd),
    ]


def repair(db: Database) -> None:
    """Derive and store the events again, or delete stored ones if events were never requested."""
    if have_been_found(db):
        find_and_save(db)
    else:
        with db.writing() as sql:
            sql.execute("DELETE FROM image_event")


def set_gap(db: Database, seconds: float, by: str, uuid: str | None = None) -> Events:
    """Set the gap that separates events, or raise AnnotatorError for invalid seconds."""
    if not 0 <= seconds <= MAX_CLOCK_SECONDS:
        raise AnnotatorError(f"The gap between events must be 0 seconds or more, not {seconds:g}.")

    def change(found: Events) -> EventChange | None:
        return None if seconds == found.gap else EventChange(GAP, seconds=float(seconds))

    return _apply_change(db, by, uuid, change)


def split_event(db: Database, image_id: int, by: str, uuid: str | None = None) -> Events:
    """Start an event at this image, or raise AnnotatorError."""

    def change(found: Events) -> EventChange:
        position = found.find_position(image_id)
        if found.starts[position]:
            raise AnnotatorError(
                f"{_get_image_name(db, image_id)} begins its event already. Name a later image of the event."
            )
        return EventChange(SPLIT, found.get_image_at(position - 1), image_id)

    return _apply_change(db, by, uuid, change)


def merge(db: Database, image_id: int, by: str, uuid: str | None = None) -> Events:
    """Merge this image's event with the previous one of its place, or raise AnnotatorError if there is none."""

    def change(found: Events) -> EventChange:
        start = found.find_start(found.find_position(image_id))
        places = found.arrangement.places
        if start == 0 or places[start - 1] != places[start]:
            raise AnnotatorError(
                f"The event of {_get_image_name(db, image_id)} is the first of its folder or camera: there is none "
                "before it to merge with."
            )
        before, after = found.get_time_at(start - 1), found.get_time_at(start)
        apart = None if before is None or after is None else after - before
        return EventChange(MERGE, found.get_image_at(start - 1), found.get_image_at(start), seconds=apart)

    return _apply_change(db, by, uuid, change)


def shift_clock(db: Database, folder: str, seconds: float, by: str, uuid: str | None = None) -> Events:
    """Correct the clock of a folder's images, including later ones.

    Args:
        folder: As in image names, "" for all.
        seconds: Adds to earlier shifts.

    Raises:
        AnnotatorError: Unknown folder or invalid seconds.
    """
    wanted = folder.strip().strip("/")
    if not 0 < abs(seconds) <= MAX_CLOCK_SECONDS:
        raise AnnotatorError(f"A clock is shifted by more than 0 seconds and less than two centuries, not {seconds:g}.")

    def change(found: Events) -> EventChange:
        if not found.captures.in_folder(wanted).any():
            known = sorted(name for name in found.captures.folder_names if name)
            hint = (
                did_you_mean(wanted, known, max_listed=5) if known else "The images of this project lie in no folders."
            )
            raise AnnotatorError(f"No image lies in a folder {wanted!r}. {hint}")
        return EventChange(SHIFT, folder=wanted, seconds=float(seconds))

    return _apply_change(db, by, uuid, change)


def undo(db: Database, by: str, uuid: str | None = None) -> EventEdit | None:
    """Undo and return the newest active change of events, or None if this uuid is stored."""
    undone: list[EventEdit] = []

    def append(sql: sqlite_utils.Database, found: Events) -> None:
        if not found.edits:
            raise AnnotatorError("Nobody has changed the events, so there is nothing to undo.")
        undone.append(found.edits[-1])
        event_edits.append_undo(sql, found.edits[-1], by, uuid)

    _apply_edit(db, uuid, append)
    return undone[0] if undone else None


def describe_change(db: Database, change: EventChange) -> str:
    """Return a change as a noun phrase: "the split before site1/0118.jpg"."""
    if change.action == GAP:
        return f"the gap of {format_exact_duration(change.seconds or 0)}"
    if change.action == SHIFT:
        return f"the shift of {change.folder or 'all folders'} by {format_exact_duration(change.seconds or 0)}"
    return f"the {change.action} before {_get_image_name(db, change.image_id)}"


def _get_image_name(db: Database, image_id: int | None) -> str:
    return db.value("SELECT name FROM image WHERE id = ?", [image_id]) or f"image {image_id}"


def _apply_change(db: Database, by: str, uuid: str | None, change: Callable[[Events], EventChange | None]) -> Events:
    def append(sql: sqlite_utils.Database, found: Events) -> None:
        if wanted := change(found):
            event_edits.append(sql, wanted, by, uuid)

    return _apply_edit(db, uuid, append)


def _apply_edit(db: Database, uuid: str | None, append: Callable[[sqlite_utils.Database, Events], None]) -> Events:
    derive_current(db)  # keeps what is read of the images in memory, before the lock
    with db.writing() as sql:
        before = _derive_events(db, sql, event_edits.load_active(sql))
        is_stored = db.get_setting(EVENTS_FOUND_SETTING) == _get_change_key(db, sql)
        if not event_edits.is_stored(sql, uuid):
            append(sql, before)
        return _store_events(db, sql, before if is_stored else None)


def _get_change_key(db: Database, sql: sqlite_utils.Database) -> list[int]:
    return [event_edits.get_newest_id(sql), *capture.get_change_key(db)]


def _derive_events(db: Database, sql: sqlite_utils.Database, made: Sequence[EventEdit]) -> Events:
    key = capture.get_change_key(db), tuple(made)
    return db.caches.get("events", key, lambda: _compute_events(db, sql, made, key[0]), CACHED_EVENT_SETS)


def _compute_events(
    db: Database, sql: sqlite_utils.Database, made: Sequence[EventEdit], stamp: tuple[int, ...]
) -> Events:
    shifts = event_edits.get_shifts(made)
    captures = db.caches.get("event captures", stamp, lambda: capture.load_captures(sql), 1)
    arrangement = db.caches.get("event arrangement", (stamp, shifts), lambda: _arrange_captures(captures, shifts), 2)
    starts = find_event_starts(arrangement, event_edits.get_gap(made), _find_boundaries(captures, made))
    events, frames = number_events_and_frames(arrangement, starts, captures.image_ids)
    return Events(captures, arrangement, starts, events, frames, tuple(made))


def _arrange_captures(captures: Captures, shifts: Sequence[tuple[str, float]]) -> Arrangement:
    times = captures.times.copy()
    for folder, seconds in shifts:
        times[captures.in_folder(folder)] += seconds
    return arrange_images(times, captures.places, captures.sequences)


def _find_boundaries(captures: Captures, made: Sequence[EventEdit]) -> list[Boundary]:
    changes = [edit.change for edit in made if edit.change.action in (SPLIT, MERGE)]
    pairs = np.array([(change.before_id, change.image_id) for change in changes], np.int64).reshape(-1, 2)
    rows, _ = find_positions(pairs.ravel(), captures.image_ids, np.argsort(captures.image_ids))
    return [
        Boundary(before, after, change.action == SPLIT, change.seconds)
        for change, (before, after) in zip(changes, rows.reshape(-1, 2).tolist(), strict=True)
    ]


def _store_events(db: Database, sql: sqlite_utils.Database, stored: Events | None) -> Events:
    """Derive events and update the changed rows of `image_event` (`stored`: its present rows, None reads them)."""
    now = _derive_events(db, sql, event_edits.load_active(sql))
    image_ids = now.captures.image_ids
    rows = np.stack([image_ids, now.events, now.frames], 1)
    before = _load_rows(db, image_ids) if stored is None else np.stack([stored.events, stored.frames], 1)
    different = rows[(before != rows[:, 1:]).any(1)]
    for start in range(0, len(different), ROWS_PER_STATEMENT):
        sql.conn.executemany(
            """INSERT INTO image_event (image_id, event_id, frame) VALUES (?, ?, ?)
            ON CONFLICT (image_id) DO UPDATE SET event_id = excluded.event_id, frame = excluded.frame""",
            different[start : start + ROWS_PER_STATEMENT].tolist(),
        )
    stamp = _get_change_key(db, sql)
    if db.get_setting(EVENTS_FOUND_SETTING) != stamp:
        db.set_setting(EVENTS_FOUND_SETTING, stamp)
    return now


def _load_rows(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return each image's stored event and frame, (N, 2) int64, or -1."""
    stored = db.integer_rows("SELECT image_id, event_id, frame FROM image_event ORDER BY image_id")
    places, are_known = find_positions(image_ids, stored[:, 0])
    rows = np.full((len(image_ids), 2), -1, np.int64)
    rows[are_known] = stored[places[are_known], 1:]
    return rows
