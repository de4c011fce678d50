"""Step 7: labels that are cleared, comments, classes that change, capture times, orders of files."""

from sqlite_utils import Database

from annotator.store.pictures.name_keys import build_name_key
from annotator.store.schema.script import split_statements


def m007(db: Database) -> None:
    """Add clearing and comments, more facts of classes and their history, and the order of images.

    Decisions can clear a cell or comment on an image. Classes get an order, heading, colour, archive and synonyms.
    Images get the time when they were taken and their place among the files.

    SQLite cannot change a CHECK: `decision` is written anew, as in step 2, and with it the view and the triggers that
    read it.
    """
    for statement in split_statements(_M007):
        db.execute(statement)
    db.execute(_COUNTED)
    for statement in split_statements(_TRIGGERS):
        db.execute(statement)
    _set_name_keys(db)


def _set_name_keys(db: Database) -> None:
    # Of several files with its content an image is named by the one that comes first here.
    files = db.execute(
        """SELECT i.id, f.folder_id, f.path FROM image i JOIN file f ON f.image_id = i.id
        ORDER BY i.id, f.path = i.name, f.folder_id DESC, f.path DESC"""
    ).fetchall()
    keys = {image_id: build_name_key(folder_id, path) for image_id, folder_id, path in files}  # the last of each holds
    db.conn.executemany(
        "UPDATE image SET name_key = ? WHERE id = ?", [(key, image_id) for image_id, key in keys.items()]
    )


_M007 = """
DROP VIEW counted;
CREATE TABLE decision_new (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- clear: the cell has no answer any more, whoever gave it; comment: a note that stands beside others
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo', 'flag', 'clear', 'comment')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    state INTEGER CHECK (state IN (1, -1, 0)),
    -- what a flag or a comment says; an empty flag takes the image's flag away
    note TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES decision (id),
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    batch TEXT,
    run_id INTEGER,
    score REAL,
    milliseconds INTEGER,
    decided_at REAL NOT NULL
);
INSERT INTO decision_new (id, uuid, action, image_id, class_id, state, note, undoes, source, annotator, batch, run_id,
    score, milliseconds, decided_at)
SELECT id, uuid, action, image_id, class_id, state, note, undoes, source, annotator, batch, run_id, score, milliseconds,
    decided_at FROM decision ORDER BY id;
DROP TABLE decision;
ALTER TABLE decision_new RENAME TO decision;
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_flag ON decision (image_id, id) WHERE action = 'flag';
CREATE INDEX decision_comment ON decision (image_id, id) WHERE action = 'comment';

-- where a class stands in lists; arrays and exports keep the order of ids
ALTER TABLE class ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE class SET position = id;
-- classes of one heading stand together under it; empty: under none
ALTER TABLE class ADD COLUMN heading TEXT NOT NULL DEFAULT '';
-- "#rrggbb"; empty: none
ALTER TABLE class ADD COLUMN colour TEXT NOT NULL DEFAULT '';
-- 1: nobody is asked about it, nothing is trained or exported of it; its decisions stay, its labels are taken out
ALTER TABLE class ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
-- of an archived class: the newest decision when it was archived, the class that later answers to it count for, and
-- whether both were names of one thing
ALTER TABLE class ADD COLUMN archived_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE class ADD COLUMN merged_into INTEGER REFERENCES class (id);
ALTER TABLE class ADD COLUMN merged_same INTEGER NOT NULL DEFAULT 0;
CREATE INDEX class_archived ON class (id, archived_since, merged_into, merged_same) WHERE archived = 1;

-- from after which decision to which one a class was archived: "nothing else here" said then does not cover it
CREATE TABLE class_away (
    class_id INTEGER NOT NULL REFERENCES class (id),
    since_decision INTEGER NOT NULL,
    until_decision INTEGER NOT NULL,
    PRIMARY KEY (class_id, since_decision, until_decision)
) WITHOUT ROWID;

-- other names by which people find a class
CREATE TABLE synonym (
    name TEXT PRIMARY KEY,
    class_id INTEGER NOT NULL REFERENCES class (id)
) WITHOUT ROWID;
CREATE INDEX synonym_class ON synonym (class_id);

-- images that people chose to show what a class means
CREATE TABLE example (
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    place INTEGER NOT NULL,
    PRIMARY KEY (class_id, image_id)
) WITHOUT ROWID;

-- what was changed in classes: appended, never edited
CREATE TABLE class_change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- add, edit, merge, split, archive, restore, undo
    kind TEXT NOT NULL,
    annotator TEXT NOT NULL,
    changed_at REAL NOT NULL,
    -- JSON: class id -> what is kept of the class (class_changes.py), before and after
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    -- the decisions that were stored with it; empty: none
    batch TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES class_change (id)
);
CREATE UNIQUE INDEX class_change_undoes ON class_change (undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER class_change_added AFTER INSERT ON class_change BEGIN
    UPDATE class_version SET changes = changes + 1;
END;

-- seconds since 1970 by the camera's clock, read from the file's EXIF; NULL: not read yet, or it has none
ALTER TABLE image ADD COLUMN captured_at REAL;
-- 1: the file was asked for it
ALTER TABLE image ADD COLUMN capture_read INTEGER NOT NULL DEFAULT 0;
CREATE INDEX image_capture_unread ON image (id) WHERE capture_read = 0 AND problem = '';

-- by which images stand in the order of their files (name_keys.py)
ALTER TABLE image ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
ALTER TABLE image ADD COLUMN folder_key TEXT AS (substr(name_key, 1, instr(name_key, char(1))));
-- images without a capture time come last; not an expression, because row values are searched by columns only
ALTER TABLE image ADD COLUMN time_key REAL AS (coalesce(captured_at, 9e999));
CREATE INDEX image_by_name ON image (name_key, id) WHERE problem = '';
CREATE INDEX image_by_time ON image (folder_key, time_key, name_key, id) WHERE problem = '';
CREATE INDEX image_open_by_name ON image (name_key, id) WHERE stage IN (0, 2) AND problem = '';
CREATE INDEX image_open_by_time ON image (time_key, name_key, id) WHERE stage IN (0, 2) AND problem = '';
-- how far people have come in these orders: the last image that each has left
CREATE TABLE reached (
    annotator TEXT NOT NULL,
    sequence TEXT NOT NULL,
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (annotator, sequence)
) WITHOUT ROWID;
-- images that were renamed or whose capture time was read: what is kept of them in memory follows these rows
CREATE TABLE image_change (id INTEGER PRIMARY KEY AUTOINCREMENT, image_id INTEGER NOT NULL);
"""

# As sources.counted_view() made it when this step was written; a later source has a step of its own.
_COUNTED = """CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER),
    CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END
FROM decision WHERE action != 'undo' AND source NOT IN ('import')
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration')
UNION ALL
SELECT id, 'run', run_id, state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration')"""

_TRIGGERS = """
CREATE TRIGGER image_changed AFTER UPDATE OF name, name_key, captured_at ON image
WHEN old.name IS NOT new.name OR old.name_key IS NOT new.name_key OR old.captured_at IS NOT new.captured_at BEGIN
    INSERT INTO image_change (image_id) VALUES (new.id);
END;
CREATE TRIGGER decision_added AFTER INSERT ON decision WHEN new.action != 'undo' BEGIN
    INSERT INTO tally SELECT kind, one, two, 1 FROM counted WHERE decision_id = new.id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER decision_undone AFTER INSERT ON decision WHEN new.undoes IS NOT NULL BEGIN
    INSERT INTO tally SELECT kind, one, two, -1 FROM counted WHERE decision_id = new.undoes
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;
"""
