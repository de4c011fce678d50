"""Step 8: imports and what they brought, predictions from elsewhere, tags of exports, access tokens."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m008(db: Database) -> None:
    """Add tables for data from outside and for exported data sets, so that both can be named and compared."""
    for statement in split_statements(_M008):
        db.execute(statement)


_M008 = """
-- what was brought in from outside, and by whom
CREATE TABLE import (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- the path or address that a person gave
    source TEXT NOT NULL,
    -- sha256 of the file that was read, empty for a folder
    sha256 TEXT NOT NULL DEFAULT '',
    format TEXT NOT NULL,
    annotator TEXT NOT NULL,
    imported_at REAL NOT NULL,
    -- JSON: how many images, classes, answers, conflicts it brought
    counts TEXT NOT NULL,
    -- its decisions: one transaction stored them, so that their ids follow each other; NULL: none
    first_decision INTEGER REFERENCES decision (id),
    last_decision INTEGER REFERENCES decision (id),
    -- the classes that it added
    class_change INTEGER REFERENCES class_change (id),
    undone_at REAL,
    undone_by TEXT NOT NULL DEFAULT ''
);
-- images that came with it and were not there before
CREATE TABLE import_image (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (import_id, image_id)
) WITHOUT ROWID;
-- who gave an imported answer, and how, in the project or tool that it comes from
CREATE TABLE origin (
    decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
    source TEXT NOT NULL DEFAULT '',
    annotator TEXT NOT NULL DEFAULT '',
    decided_at REAL
);

-- facts of an image that are no labels: split, location, licence, ...
CREATE TABLE attribute (
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    import_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name)
) WITHOUT ROWID;
CREATE INDEX attribute_name ON attribute (name, value);
-- what a fact was before an import replaced it, and which import that was from
CREATE TABLE attribute_before (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    before_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name, import_id)
) WITHOUT ROWID;

-- predictions of a model from elsewhere; its scores are an array file a version
CREATE TABLE prediction_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- probability: in [0, 1]; score: any finite number, of which only the order within a class counts
    scale TEXT NOT NULL CHECK (scale IN ('probability', 'score')),
    annotator TEXT NOT NULL,
    added_at REAL NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    -- JSON: class ids, in the order of the columns
    class_ids TEXT NOT NULL DEFAULT '[]',
    images INTEGER NOT NULL DEFAULT 0,
    cells INTEGER NOT NULL DEFAULT 0,
    removed_at REAL
);
-- what it said of a cell when a person answered it
CREATE TABLE prediction_score (
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (decision_id, prediction_source_id)
) WITHOUT ROWID;

-- which predictions from elsewhere a run used, and how much
CREATE TABLE run_source (
    run_id INTEGER NOT NULL REFERENCES run (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    -- JSON: class id -> what one unit of the source's input adds to the logit; {} when it only fills in
    weights TEXT NOT NULL,
    PRIMARY KEY (run_id, prediction_source_id)
) WITHOUT ROWID;

-- exports that got a name; the cells of each are an array file
CREATE TABLE export_tag (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    annotator TEXT NOT NULL,
    tagged_at REAL NOT NULL,
    last_decision INTEGER NOT NULL,
    format TEXT NOT NULL,
    target TEXT NOT NULL,
    -- JSON: the choices, and the data card
    choices TEXT NOT NULL,
    card TEXT NOT NULL
);

-- secrets by which programs may do one thing each; only their hash is kept
CREATE TABLE access_token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    secret_sha256 TEXT NOT NULL UNIQUE,
    -- predictions
    right_to TEXT NOT NULL,
    annotator TEXT NOT NULL,
    made_at REAL NOT NULL,
    used_at REAL,
    revoked_at REAL
);
"""
