"""The tables of settings, images and files."""

FILE_TABLES_SQL = """
-- One row per setting of the project.
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);

-- One row per folder of images, or address (such as s3://...) under which images are stored.
CREATE TABLE folder (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);

-- One row per content (sha256). An image is never deleted, so ids only rise.
CREATE TABLE image (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL UNIQUE,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    -- how far people are (images/stages.py): 0 untouched, 1 skipped, 2 has labels, 3 complete, 4 excluded
    stage INTEGER NOT NULL DEFAULT 0,
    -- the decision that led to this stage: skipped images come back in the order in which they were skipped
    stage_decision INTEGER NOT NULL DEFAULT 0,
    -- why its file cannot be read; '' if it can
    problem TEXT NOT NULL DEFAULT '',
    -- from the EXIF block, by the clock of the camera; NULL: not read yet, or not given
    captured_at REAL,
    -- 1: the EXIF block was read
    capture_read INTEGER NOT NULL DEFAULT 0,
    -- the key of the order by file name (pictures/name_keys.py), and its part for the folder
    name_key TEXT NOT NULL DEFAULT '',
    folder_key TEXT AS (substr(name_key, 1, instr(name_key, char(1)))),
    -- images without a capture time come last; a column, because row values are searched by columns only
    time_key REAL AS (coalesce(captured_at, 9e999)),
    -- which bands are shown of an image with many; '' for others
    bands TEXT NOT NULL DEFAULT '',
    -- from the EXIF block
    camera TEXT
);
-- sha256 is the last key, so that the order of work is independent of the order in the folder
CREATE INDEX image_worklist ON image (stage, stage_decision, sha256);
CREATE INDEX image_problem ON image (name) WHERE problem != '';
CREATE INDEX image_capture_unread ON image (id) WHERE capture_read = 0 AND problem = '';
CREATE INDEX image_by_name ON image (name_key, id) WHERE problem = '';
CREATE INDEX image_by_time ON image (folder_key, time_key, name_key, id) WHERE problem = '';
CREATE INDEX image_open_by_name ON image (name_key, id) WHERE stage IN (0, 2) AND problem = '';
CREATE INDEX image_open_by_time ON image (time_key, name_key, id) WHERE stage IN (0, 2) AND problem = '';
CREATE INDEX image_of_many_bands ON image (id) WHERE bands != '';

-- One row per change of a column of an image that is kept in memory; a trigger adds it. Memory follows these rows.
CREATE TABLE image_change (id INTEGER PRIMARY KEY AUTOINCREMENT, image_id INTEGER NOT NULL);

-- One row per file: a place where the content of an image is stored, or a file that is not a usable image.
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    folder_id INTEGER NOT NULL REFERENCES folder (id),
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    image_id INTEGER REFERENCES image (id),
    -- why it is not a usable image; '' for images
    reason TEXT NOT NULL DEFAULT '',
    -- inode and time of the last change of any kind, or ETag; '': not known, so files are compared by content
    stamp TEXT NOT NULL DEFAULT '',
    UNIQUE (folder_id, path)
);
CREATE INDEX file_image ON file (image_id);
CREATE INDEX file_reason ON file (path) WHERE reason != '';

-- One row per earlier name of an image, from before its file was renamed or moved. Names and paths of today go first.
CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES image (id)
) WITHOUT ROWID;

-- One row per field of an image from an import: split, location, license, ...
CREATE TABLE attribute (
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    import_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name)
) WITHOUT ROWID;
CREATE INDEX attribute_name ON attribute (name, value);

-- One row per field that an import replaced: its value before, and the import of that value.
CREATE TABLE attribute_before (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    before_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name, import_id)
) WITHOUT ROWID;

-- One row per image that was measured on its pixels. Ids only rise: memory reads the rows that are new.
CREATE TABLE appearance (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
    brightness REAL NOT NULL,
    sharpness REAL NOT NULL,
    overexposed REAL NOT NULL,
    underexposed REAL NOT NULL,
    hash INTEGER NOT NULL
);

-- One row per image in a group of near-duplicates, which is named by its first image. An image that has left its group
-- is its own first image. Ids only rise, as in `appearance`.
CREATE TABLE twin (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
    first_id INTEGER NOT NULL REFERENCES image (id)
);
CREATE INDEX twin_of ON twin (first_id);

-- One row per person and order of files: the last image that this person has left in that order.
CREATE TABLE reached (
    annotator TEXT NOT NULL,
    sequence TEXT NOT NULL,
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (annotator, sequence)
) WITHOUT ROWID;
"""
