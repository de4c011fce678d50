"""Step 16: labels of events, such as the burst of a camera trap: no label of one image."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m016(db: Database) -> None:
    """Add the images of the events that sources name, and what the sources say of each event as a whole.

    "Deer in this burst" says that at least one of its images shows a deer, so it is no decision about any of them.
    """
    for statement in split_statements(_M016):
        db.execute(statement)


_M016 = """
CREATE TABLE event_image (
    image_id INTEGER NOT NULL REFERENCES image (id),
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    PRIMARY KEY (image_id, import_id, event)
) WITHOUT ROWID;
CREATE INDEX event_image_event ON event_image (import_id, event);
CREATE TABLE event_label (
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    -- 0: the event shows nothing
    class_id INTEGER NOT NULL,
    -- as in label: 1 at least one image shows it, -1 none does, 0 unsure
    state INTEGER NOT NULL,
    -- how and by whom it was given, '' where the source does not say
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    decided_at REAL,
    PRIMARY KEY (import_id, event, class_id)
) WITHOUT ROWID;
"""
