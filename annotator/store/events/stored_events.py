"""Stored events of a few images, for pages and exports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotator.store.database.database import Database
from annotator.store.images.stages import COMPLETE, EXCLUDED

IDS_PER_QUERY = 10_000  # ids in one SELECT


@dataclass(frozen=True)
class StoredEvent:
    """An event, or the part of a long event around one image."""

    # its smallest image id
    id: int
    # images of the whole event
    images: int
    # index in the event of the first of `image_ids`
    first: int
    image_ids: tuple[int, ...]


def format_event_name(event_id: int) -> str:
    return f"event-{event_id}"


def has_multi_image_events(db: Database) -> bool:
    """Return whether any event with several images is stored."""
    found = db.get_setting("events_found")
    statement = "SELECT EXISTS (SELECT 1 FROM image_event WHERE frame = 1)"
    return found is not None and bool(db.caches.get("events of several", tuple(found), lambda: db.value(statement), 1))


def load_event(db: Database, image_id: int, max_images: int) -> StoredEvent | None:
    """Return an image's event, cut to `max_images` around it, or None."""
    with db.reading() as sql:
        row = sql.execute(
            """SELECT e.event_id, e.frame, (SELECT max(frame) + 1 FROM image_event WHERE event_id = e.event_id)
            FROM image_event e WHERE e.image_id = ?""",
            [image_id],
        ).fetchone()
        if row is None:
            return None
        event_id, frame, images = row
        first = max(0, min(frame - max_images // 2, images - max_images))
        rows = sql.execute(
            "SELECT image_id FROM image_event WHERE event_id = ? AND frame >= ? ORDER BY frame LIMIT ?",
            [event_id, first, max_images],
        ).fetchall()
    return StoredEvent(event_id, images, first, tuple(image_id for (image_id,) in rows))


def find_open_images(db: Database, image_ids: Sequence[int], class_id: int, max_images: int) -> dict[int, list[int]]:
    """Return event id -> its images where this class is unanswered, for the events of these images.

    Events of one image or of more than `max_images` are omitted.
    """
    found: dict[int, list[int]] = {}
    for event_id, image_id in db.tuples(
        f"""SELECT e.event_id, e.image_id FROM image_event e JOIN image i ON i.id = e.image_id
            AND i.problem = '' AND i.stage != {EXCLUDED}
        WHERE e.event_id IN (SELECT event_id FROM image_event WHERE image_id IN ({",".join("?" * len(image_ids))}))
        AND EXISTS (SELECT 1 FROM image_event o WHERE o.event_id = e.event_id AND o.frame = 1)
        AND NOT EXISTS (SELECT 1 FROM image_event o WHERE o.event_id = e.event_id AND o.frame = ?)
        AND NOT EXISTS (SELECT 1 FROM label WHERE image_id = e.image_id AND class_id = ?)
        AND NOT EXISTS (SELECT 1 FROM accepted WHERE image_id = e.image_id AND class_id = ?)
        ORDER BY e.event_id, e.frame""",
        [*image_ids, max_images, class_id, class_id],
    ):
        found.setdefault(event_id, []).append(image_id)
    return found


def find_open_siblings(db: Database, image_ids: Sequence[int], max_images: int) -> dict[int, list[int]]:
    """Return image id -> the other incomplete images of its event, for events of at most `max_images`."""
    members = db.tuples(
        f"""SELECT e.event_id, e.image_id FROM image_event e JOIN image i ON i.id = e.image_id
            AND i.problem = '' AND i.stage < {COMPLETE}
        WHERE e.event_id IN (SELECT event_id FROM image_event WHERE image_id IN ({",".join("?" * len(image_ids))}))
        AND NOT EXISTS (SELECT 1 FROM image_event o WHERE o.event_id = e.event_id AND o.frame = ?)
        ORDER BY e.event_id, e.frame""",
        [*image_ids, max_images],
    )
    event_of, images_of = {image_id: event_id for event_id, image_id in members}, dict[int, list[int]]()
    for event_id, image_id in members:
        images_of.setdefault(event_id, []).append(image_id)
    found = {
        image_id: [other for other in images_of[event_of[image_id]] if other != image_id]
        for image_id in image_ids
        if image_id in event_of
    }
    return {image_id: others for image_id, others in found.items() if others}


def load_event_rows(db: Database, image_ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return event, frame and event size per image, (n, 3) int64, or zeros."""
    ids = np.asarray(image_ids, np.int64)
    rows = np.zeros((len(ids), 3), np.int64)
    for start in range(0, len(ids), IDS_PER_QUERY):
        part = ids[start : start + IDS_PER_QUERY]
        found = db.integer_rows(
            f"""SELECT image_id, event_id, frame, (SELECT max(frame) + 1 FROM image_event WHERE event_id = e.event_id)
            FROM image_event e WHERE image_id IN ({",".join("?" * len(part))}) ORDER BY image_id""",
            part.tolist(),
        )
        if len(found):
            places = np.minimum(np.searchsorted(found[:, 0], part), len(found) - 1)
            is_known = found[places, 0] == part
            rows[start : start + IDS_PER_QUERY][is_known] = found[places[is_known], 1:]
    return rows
