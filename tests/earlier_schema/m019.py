"""Step 19: events found from capture times, and what people changed of them."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m019(db: Database) -> None:
    """Add the event of each image, which is empty until events are asked for, and the changes that people make."""
    for statement in split_statements(_M019):
        db.execute(statement)


_M019 = """
-- appended, never changed: the events follow from the images and from the changes that were not undone
CREATE TABLE event_edit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('gap', 'split', 'merge', 'shift', 'undo')),
    -- of a split or merge: the image before the boundary, and the one after it
    before_id INTEGER REFERENCES image (id),
    image_id INTEGER REFERENCES image (id),
    -- of a shift
    folder TEXT,
    -- the gap, how far clocks are shifted, or how far apart two merged images were taken
    seconds REAL,
    undoes INTEGER REFERENCES event_edit (id),
    annotator TEXT NOT NULL,
    edited_at REAL NOT NULL
);
CREATE UNIQUE INDEX event_edit_undoes ON event_edit (undoes) WHERE undoes NOT NULL;
-- derived, written anew by whoever finds events
CREATE TABLE image_event (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- the smallest id of its images, so that an event keeps its id while others change
    event_id INTEGER NOT NULL,
    -- from 0, in the order of the event
    frame INTEGER NOT NULL
);
CREATE INDEX image_event_event ON image_event (event_id, frame);
"""
