"""The tables of members, access, leases, assignments, blind work and speed tests."""

PEOPLE_TABLES_SQL = """
-- One row per member. A project that one person labels on their own computer has none.
CREATE TABLE member (
    id INTEGER PRIMARY KEY,
    -- the annotator of their decisions
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('none', 'guest', 'annotator', 'reviewer', 'owner')),
    -- "issuer subject" of a login provider
    subject TEXT UNIQUE,
    email TEXT NOT NULL DEFAULT '',
    -- of the invitation link
    secret_sha256 TEXT UNIQUE,
    -- sessions from before have ended
    sessions_since REAL NOT NULL DEFAULT 0,
    made_at REAL NOT NULL,
    signed_in_at REAL
);

-- One row per change of who may do what. Triggers refuse anything but appending.
CREATE TABLE access_log (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    by TEXT NOT NULL,
    what TEXT NOT NULL,
    member TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT ''
);

-- One row per secret by which a program may do one thing; only its hash is stored.
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

-- One row per image or cell that an open page has, so that others do not get it.
CREATE TABLE lease (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- 0: the whole image
    class_id INTEGER NOT NULL DEFAULT 0,
    -- the open page
    holder TEXT NOT NULL,
    annotator TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
);
CREATE INDEX lease_holder ON lease (holder);

-- One row per assignment of work to a person.
CREATE TABLE assignment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('folder', 'images', 'class')),
    -- a folder, the name of a list of images, or the id of a class
    what TEXT NOT NULL,
    given_at REAL NOT NULL
);

-- One row per image of an assigned list.
CREATE TABLE assigned_image (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (assignment_id, image_id)
) WITHOUT ROWID;

-- The only row, if the owner wants some images answered by several people, blind to each other.
CREATE TABLE overlap (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    people INTEGER NOT NULL,
    -- 8 hexadecimal digits: images are chosen whose sha256 is below them after its first 8 digits
    below TEXT NOT NULL
);

-- One row per image chosen for that.
CREATE TABLE reading (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- people who have answered it, and how many more are to answer it
    had INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL
);
CREATE INDEX reading_due ON reading (had) WHERE due > 0;

-- The only row: it grows when an image starts or stops to wait for answers. A trigger counts.
CREATE TABLE reading_version (n INTEGER NOT NULL);
INSERT INTO reading_version VALUES (0);

-- One row per reference image: complete, and answered once by everybody, to see how well they do.
CREATE TABLE known_answer (image_id INTEGER PRIMARY KEY REFERENCES image (id));

-- One row per image whose labels are hidden from people who may be asked blind.
CREATE VIEW kept_apart AS SELECT image_id FROM reading WHERE due > 0
    UNION ALL SELECT image_id FROM known_answer k
    WHERE NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = k.image_id AND r.due > 0);

-- One row per person and blind image whose labels this person has been shown.
CREATE TABLE revealed (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- '': everybody
    annotator TEXT NOT NULL,
    -- the newest decision then: later answers of this person to the image are not blind
    decision_id INTEGER NOT NULL,
    PRIMARY KEY (image_id, annotator)
) WITHOUT ROWID;

-- One row per task of a speed test. The answers are not kept: they are no evidence.
CREATE TABLE speed_test (
    annotator TEXT NOT NULL,
    -- how often this person has taken the test, from 1, and the place of the task in it, from 0
    round INTEGER NOT NULL,
    task INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('grid', 'image', 'click')),
    cells INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    tested_at REAL NOT NULL,
    PRIMARY KEY (annotator, round, task)
) WITHOUT ROWID;
"""
