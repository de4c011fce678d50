"""The tables of imports, exports and events."""

IMPORT_TABLES_SQL = """
-- Imports and exports

-- One row per import of images, labels or fields.
CREATE TABLE import (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- the path or address that the person gave
    source TEXT NOT NULL,
    -- of the file that was read; '' for a folder
    sha256 TEXT NOT NULL DEFAULT '',
    format TEXT NOT NULL,
    annotator TEXT NOT NULL,
    imported_at REAL NOT NULL,
    -- JSON: how many images, classes, answers and conflicts it had
    counts TEXT NOT NULL,
    -- its decisions: one transaction stored them, so their ids are consecutive; NULL: none
    first_decision INTEGER REFERENCES decision (id),
    last_decision INTEGER REFERENCES decision (id),
    -- the classes that it added
    class_change INTEGER REFERENCES class_change (id),
    undone_at REAL,
    undone_by TEXT NOT NULL DEFAULT ''
);

-- One row per image that an import added to the project.
CREATE TABLE import_image (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (import_id, image_id)
) WITHOUT ROWID;

-- One row per imported answer whose source says how, by whom or when it was given.
CREATE TABLE origin (
    decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
    source TEXT NOT NULL DEFAULT '',
    annotator TEXT NOT NULL DEFAULT '',
    decided_at REAL
);

-- One row per export with a name; its cells are an array file.
CREATE TABLE export_tag (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    annotator TEXT NOT NULL,
    tagged_at REAL NOT NULL,
    last_decision INTEGER NOT NULL,
    format TEXT NOT NULL,
    target TEXT NOT NULL,
    -- JSON: the options, and the data card
    choices TEXT NOT NULL,
    card TEXT NOT NULL
);

-- Events: images that were taken shortly after one another

-- One row per image of an event that an import names.
CREATE TABLE event_image (
    image_id INTEGER NOT NULL REFERENCES image (id),
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    PRIMARY KEY (image_id, import_id, event)
) WITHOUT ROWID;
CREATE INDEX event_image_event ON event_image (import_id, event);

-- One row per class label of an imported event. It says that an image of the event shows the class and not which one,
-- so it is not a decision about any of them.
CREATE TABLE event_label (
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    -- 0: the event shows nothing
    class_id INTEGER NOT NULL,
    -- 1 at least one image shows it, -1 none does, 0 unsure
    state INTEGER NOT NULL,
    -- how and by whom it was given; '' where the source does not say
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    decided_at REAL,
    PRIMARY KEY (import_id, event, class_id)
) WITHOUT ROWID;

-- One row per change that a person made to the events that are found by capture times, appended and never changed.
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

-- One row per image with an event. Derived: written again when events are found.
CREATE TABLE image_event (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- the smallest id of its images, so that an event keeps its id while others change
    event_id INTEGER NOT NULL,
    -- from 0, in the order of the event
    frame INTEGER NOT NULL
);
CREATE INDEX image_event_event ON image_event (event_id, frame);

-- One row per decision on an event as a whole (source "event"): the decision on the image in front that it repeats.
CREATE TABLE event_answer (
    decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
    from_id INTEGER NOT NULL REFERENCES decision (id)
);
"""
