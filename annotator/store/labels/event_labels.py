"""Labels of camera-trap events, separate from labels of single images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlite_utils

from annotator.records import ABSENT, PRESENT
from annotator.store.database.database import Database
from annotator.store.labels.archived_classes import IS_ACTIVE_CLASS_SQL

IS_NEW_SQL = """NOT EXISTS (SELECT 1 FROM event_image h JOIN event_label l USING (import_id, event)
    WHERE h.image_id = i.image_id AND h.event = e.name AND l.class_id = coalesce(t.class_id, -c.class)
    AND l.state = c.state)"""
"""Of staged items i, their events e and the labels c of these with the target t: whether the project lacks it."""
STAGED_LABELS_SQL = """FROM staged.item i JOIN staged.event e ON e.item = i.id
    JOIN staged.event_label c ON c.event = e.name
    LEFT JOIN staged.class k ON k.id = c.class LEFT JOIN staged.target t ON t.id = k.target
    WHERE i.image_id NOT NULL AND (c.class = 0 OR t.id NOT NULL)"""


@dataclass(frozen=True)
class EventLabel:
    """A label of a camera-trap event."""

    event: str
    # "" for an empty event
    class_name: str
    state: int
    # annotator, source: "" if unknown
    annotator: str
    # unix seconds, None if unknown
    decided_at: float | None
    source: str
    # images of the event
    images: int

    def format_sentence(self) -> str:
        """Return the label as a sentence to show with an image of the event."""
        among = f"this burst of {self.images:,} images" if self.images > 1 else "this burst"
        by = f", by {self.annotator}" if self.annotator else ""
        if not self.class_name:
            return f"Source: {among} was labeled empty{by}."
        what = {PRESENT: self.class_name, ABSENT: f"without {self.class_name}"}.get(
            self.state, f"{self.class_name}, unsure"
        )
        one = "; not every image of it need show it" if self.state == PRESENT and self.images > 1 else ""
        return f"Source: {among} was labeled {what}{by}{one}."


def count_new(sql: sqlite_utils.Database) -> int:
    """Count the event labels staged for import that the project lacks."""
    return sql.execute(
        f"SELECT count(*) FROM (SELECT DISTINCT e.name, c.class {STAGED_LABELS_SQL} AND {IS_NEW_SQL})"
    ).fetchone()[0]


def import_events(sql: sqlite_utils.Database, import_id: int) -> int:
    """Store the events staged for import and return the number of new labels. Classes must have ids."""
    count = sql.execute(
        f"""INSERT OR IGNORE INTO event_label (import_id, event, class_id, state, source, annotator, decided_at)
        SELECT DISTINCT ?, e.name, coalesce(t.class_id, 0), c.state, c.source, c.annotator, c.at {STAGED_LABELS_SQL}
        AND {IS_NEW_SQL}
        AND i.image_id > 0""",
        [import_id],
    ).rowcount
    sql.execute(
        """INSERT OR IGNORE INTO event_image (image_id, import_id, event)
        SELECT i.image_id, ?1, e.name FROM staged.item i JOIN staged.event e ON e.item = i.id WHERE i.image_id > 0
        AND (EXISTS (SELECT 1 FROM event_label l WHERE l.import_id = ?1 AND l.event = e.name) OR NOT EXISTS (
            SELECT 1 FROM event_image h WHERE h.image_id = i.image_id AND h.event = e.name))""",
        [import_id],
    )
    return max(count, 0)


def remove_events(sql: sqlite_utils.Database, import_id: int) -> int:
    """Delete an import's events and return their label count."""
    sql.execute("DELETE FROM event_image WHERE import_id = ?", [import_id])
    return sql.execute("DELETE FROM event_label WHERE import_id = ?", [import_id]).rowcount


def load_for_image(db: Database, image_id: int) -> list[EventLabel]:
    return [label for _, label in _read_labels(db, "WHERE e.image_id = ?", [image_id])]


def describe_by_image(db: Database, image_ids: Sequence[int]) -> dict[int, list[str]]:
    return {
        image_id: [label.format_sentence() for label in labels]
        for image_id, labels in load_by_image(db, image_ids).items()
    }


def load_by_image(db: Database, image_ids: Sequence[int]) -> dict[int, list[EventLabel]]:
    found: dict[int, list[EventLabel]] = {}
    for image_id, label in _iterate_labels(db, image_ids):
        found.setdefault(image_id, []).append(label)
    return found


def load_by_event(db: Database, image_ids: Sequence[int]) -> dict[str, list[EventLabel]]:
    """Return event name -> labels, for the events of these images."""
    found: dict[str, dict[str, EventLabel]] = {}
    for _, label in _iterate_labels(db, image_ids):
        found.setdefault(label.event, {})[label.class_name] = label
    return {event: list(labels.values()) for event, labels in found.items()}


def load_event_names(db: Database, image_ids: Sequence[int]) -> dict[int, str]:
    """Return image id -> newest event name."""
    found: dict[int, str] = {}
    for start in range(0, len(image_ids), 500):
        some = [int(one) for one in image_ids[start : start + 500]]
        query = f"SELECT image_id, event FROM event_image WHERE image_id IN ({','.join('?' * len(some))})"
        found |= dict(db.tuples(f"{query} ORDER BY import_id", some))
    return found


def count(db: Database) -> int:
    return db.value("SELECT count(*) FROM event_label")


def _iterate_labels(db: Database, image_ids: Sequence[int]) -> Iterator[tuple[int, EventLabel]]:
    for start in range(0, len(image_ids), 500):
        some = [int(one) for one in image_ids[start : start + 500]]
        yield from _read_labels(db, f"WHERE e.image_id IN ({','.join('?' * len(some))})", some)


def _read_labels(db: Database, where: str, values: Sequence[int]) -> Iterator[tuple[int, EventLabel]]:
    rows = db.tuples(
        f"""SELECT e.image_id, e.event, coalesce(into_.name, c.name, ''), l.state, l.annotator, l.decided_at, l.source,
            (SELECT count(*) FROM event_image o WHERE o.import_id = e.import_id AND o.event = e.event)
        FROM event_image e JOIN event_label l USING (import_id, event) LEFT JOIN class c ON c.id = l.class_id
        LEFT JOIN class into_ ON into_.id = c.merged_into AND into_.{IS_ACTIVE_CLASS_SQL}
        {where} AND (l.class_id = 0 OR c.{IS_ACTIVE_CLASS_SQL} OR into_.id NOT NULL)
        ORDER BY e.image_id, e.import_id, e.event, l.class_id""",
        values,
    )
    for image_id, *fields in rows:
        yield image_id, EventLabel(*fields)
