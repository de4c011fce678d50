"""The events of a project: found, changed by people, kept in the table `image_event`.

A project has none until somebody asks for them. Each change is one transaction: the edit, and the rows that follow from
it. Images are read and arranged before it, so that nobody waits for the lock meanwhile; what changed since is noticed
under the lock by stamps, and read again. Of a million images only rows that differ are written.
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
    """The events of all images; rows are those of `captures`.

    Attributes:
        captures: What is known of the images.
        arrangement: Their order, and the gaps, by clocks that were put right.
        starts: (N,) bool, in this order: which images begin an event.
        events: (N,) int64: the event of each row, named by the smallest id of its images.
        frames: (N,) int64: the place in the event, from 0.
        edits: The changes that were not undone, oldest first.
    """

    captures: Captures
    arrangement: Arrangement
    starts: np.ndarray
    events: np.ndarray
    frames: np.ndarray
    edits: tuple[EventEdit, ...]

    @property
    def gap(self) -> float:
        """Return the gap in seconds that separates events."""
        return event_edits.get_gap(self.edits)

    def find_position(self, image_id: int) -> int:
        """Return the position of an image in the arrangement. Raises AnnotatorError for an unknown id."""
        [row] = np.flatnonzero(self.captures.image_ids == image_id).tolist() or [None]
        if row is None:
            raise AnnotatorError(f"There is no image with the id {image_id}.")
        return int(self.arrangement.positions[row])

    def find_start(self, position: int) -> int:
        """Return the position at which the event of a position begins."""
        return int(np.flatnonzero(self.starts[: position + 1])[-1])

    def get_image_at(self, position: int) -> int:
        """Return the id of the image at a position of the arrangement."""
        return int(self.captures.image_ids[self.arrangement.order[position]])

    def get_time_at(self, position: int) -> float | None:
        """Return when the image at a position was taken, by the clock that was put right; None where not known."""
        seconds = float(self.arrangement.times[position])
        return None if np.isnan(seconds) else seconds


def derive_current(db: Database) -> Events:
    """Return the events as they follow from the images and edits of now; nothing is stored."""
    with db.reading() as sql:
        return _derive_events(db, sql, event_edits.load_active(sql))


def preview_gap(db: Database, gap: float) -> Events:
    """Return the events as they would be with this gap; nothing is stored."""
    with db.reading() as sql:
        made = event_edits.load_active(sql)
        return _derive_events(db, sql, [*made, EventEdit(0, EventChange(GAP, seconds=gap), "", 0.0)])


def find_and_save(db: Database) -> Events:
    """Store the events as they follow from the images and edits of now, and return them."""
    derive_current(db)  # keeps what is read of the images in memory, before the lock
    with db.writing() as sql:
        return _store_events(db, sql, None)


def have_been_found(db: Database) -> bool:
    """Return whether events were ever asked for."""
    return db.get_setting(EVENTS_FOUND_SETTING) is not None


def are_current(db: Database) -> bool:
    """Return whether the stored events follow from the images and edits of now."""
    with db.reading() as sql:
        return db.get_setting(EVENTS_FOUND_SETTING) == _get_change_key(db, sql)


def find_invalid_rows(db: Database) -> list[str]:
    """Return a sentence for each row of `image_event` that does not follow from the images and edits, or is missing.

    Where images were added or facts imported since, nothing is compared: the worker finds events again.
    """
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
    """Store the events anew as they follow; in a project that never asked for events there are none."""
    if have_been_found(db):
        find_and_save(db)
    else:
        with db.writing() as sql:
            sql.execute("DELETE FROM image_event")


def set_gap(db: Database, seconds: float, by: str, uuid: str | None = None) -> Events:
    """Set the gap that separates events.

    Raises:
        AnnotatorError: It is no time from 0 on.
    """
    if not 0 <= seconds <= MAX_CLOCK_SECONDS:
        raise AnnotatorError(f"The gap between events must be 0 seconds or more, not {seconds:g}.")

    def change(found: Events) -> EventChange | None:
        return None if seconds == found.gap else EventChange(GAP, seconds=float(seconds))

    return _apply_change(db, by, uuid, change)


def split_event(db: Database, image_id: int, by: str, uuid: str | None = None) -> Events:
    """Let an event begin with this image.

    Raises:
        AnnotatorError: The image is unknown, or begins its event already.
    """

    def change(found: Events) -> EventChange:
        position = found.find_position(image_id)
        if found.starts[position]:
            raise AnnotatorError(
                f"{_get_image_name(db, image_id)} begins its event already. Name a later image of the event."
            )
        return EventChange(SPLIT, found.get_image_at(position - 1), image_id)

    return _apply_change(db, by, uuid, change)


def merge(db: Database, image_id: int, by: str, uuid: str | None = None) -> Events:
    """Join the event of this image with the event before it.

    Raises:
        AnnotatorError: The image is unknown, or its event is the first of its place.
    """

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
    """Put the clock of a folder right: its images, also those added to it later, were taken this much later.

    Args:
        db: The project's database.
        folder: As image names have it; "" for all images.
        seconds: May be negative. Shifts of a folder add up.
        by: The person who does it.
        uuid: Made where the person acted; a uuid that is stored already changes nothing. None: a new one.

    Raises:
        AnnotatorError: No image lies in the folder, or the time is 0 or longer than two centuries.
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
    """Undo the newest change that was not undone, and return it; None where this uuid is stored already.

    Raises:
        AnnotatorError: There is none.
    """
    undone: list[EventEdit] = []

    def append(sql: sqlite_utils.Database, found: Events) -> None:
        if not found.edits:
            raise AnnotatorError("Nobody has changed the events, so there is nothing to undo.")
        undone.append(found.edits[-1])
        event_edits.append_undo(sql, found.edits[-1], by, uuid)

    _apply_edit(db, uuid, append)
    return undone[0] if undone else None


def describe_change(db: Database, change: EventChange) -> str:
    """Return a change as the object of a sentence: "the split before site1/0118.jpg"."""
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
    """Return the events that follow from the images and these edits, inside a transaction."""
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
    """Write the rows of `image_event` that differ from what follows from the images and edits of now.

    Args:
        db: The project's database.
        sql: The database, in a transaction.
        stored: What the rows hold; None: they are read.
    """
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
    """Return (N, 2) int64: the stored event and frame of each image, -1 where there is none."""
    stored = db.integer_rows("SELECT image_id, event_id, frame FROM image_event ORDER BY image_id")
    places, are_known = find_positions(image_ids, stored[:, 0])
    rows = np.full((len(image_ids), 2), -1, np.int64)
    rows[are_known] = stored[places[are_known], 1:]
    return rows
