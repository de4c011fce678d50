"""Step 1: images, files, classes, decisions, labels, runs, jobs, leases, the worker."""

from sqlite_utils import Database


def m001(db: Database) -> None:
    """Create the tables for images, files, classes, decisions, labels, runs, jobs, leases and the worker."""
    for statement in _M001.split(";\n"):
        if statement.strip():
            db.execute(statement)


_M001 = """
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE folder (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);

CREATE TABLE image (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL UNIQUE,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    -- how far people are with it: 0 untouched, 1 skipped, 2 has labels, 3 complete
    stage INTEGER NOT NULL DEFAULT 0,
    -- the decision that brought it there: skipped images come back in the order in which they were skipped
    stage_decision INTEGER NOT NULL DEFAULT 0,
    -- why its file cannot be read any more; empty when all is well
    problem TEXT NOT NULL DEFAULT ''
);
-- sha256 as the last key: people see the folder in an order that has nothing to do with how it was sorted
CREATE INDEX image_worklist ON image (stage, stage_decision, sha256);

CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    folder_id INTEGER NOT NULL REFERENCES folder (id),
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    image_id INTEGER REFERENCES image (id),
    reason TEXT NOT NULL DEFAULT '',
    UNIQUE (folder_id, path)
);
CREATE INDEX file_image ON file (image_id);

CREATE TABLE class (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    -- the newest decision when it was added: "nothing else here" said before then does not cover it
    since_decision INTEGER NOT NULL
);

CREATE TABLE decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    state INTEGER CHECK (state IN (1, -1, 0)),
    undoes INTEGER REFERENCES decision (id),
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    batch TEXT,
    run_id INTEGER,
    score REAL,
    milliseconds INTEGER,
    decided_at REAL NOT NULL
);
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;

CREATE TABLE label (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX label_class ON label (class_id, state);

CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL,
    backbone TEXT NOT NULL,
    class_ids TEXT NOT NULL,
    images INTEGER NOT NULL,
    last_decision_id INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    seconds REAL NOT NULL,
    loss TEXT NOT NULL,
    -- from which probability on this method's suggestions are worth a look
    threshold REAL NOT NULL,
    finished_at REAL NOT NULL,
    -- set in the same transaction that makes its arrays the current ones
    published INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('train', 'heatmap')),
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'failed')),
    run_id INTEGER,
    image_id INTEGER,
    class_id INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    asked_at REAL NOT NULL
);
CREATE UNIQUE INDEX job_heatmap ON job (run_id, image_id, class_id) WHERE kind = 'heatmap';

CREATE TABLE lease (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    holder TEXT NOT NULL,
    annotator TEXT NOT NULL,
    until REAL NOT NULL
);
CREATE INDEX lease_holder ON lease (holder);

CREATE TABLE worker (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    pid INTEGER,
    state TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    "of" INTEGER NOT NULL DEFAULT 0,
    heartbeat_at REAL,
    last_error TEXT NOT NULL DEFAULT '',
    last_error_at REAL
);
INSERT INTO worker (id, state) VALUES (1, 'not started');
"""
