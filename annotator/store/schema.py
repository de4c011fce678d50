"""The tables of project.db, as numbered steps: new ones are added at the end, old ones are never edited.

Decisions are appended and never changed; `label` holds the newest state of each image-class cell and can be rebuilt
from them. `image` is a content, `file` a place where that content lies, so a moved or doubled file is never a second
image. Whether something is newer is asked of ids, never of clocks.
"""

import sqlite3
from collections.abc import Iterator

from sqlite_utils import Database, Migrations

from annotator.store.history import set_contradictions
from annotator.store.sources import counted_view

MIGRATIONS = Migrations("annotator")


@MIGRATIONS()
def m001(db: Database) -> None:
    """Everything the first loop needs."""
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


@MIGRATIONS()
def m002(db: Database) -> None:
    """Keys of classes, flags, leases of single cells, and tallies, so that no page ever counts a million rows.

    SQLite cannot change a CHECK or a primary key: `decision` and `lease` are written anew, with foreign keys switched
    off by whoever applies this (they cannot be switched inside a transaction).
    """
    for statement in _statements(_M002):
        db.execute(statement)
    keys = "1234567890qwertyuiopasdfghjklzxcvbnm"
    classes = [row[0] for row in db.execute("SELECT id FROM class ORDER BY id LIMIT ?", [len(keys)]).fetchall()]
    for class_id, key in zip(classes, keys, strict=False):
        db.execute("UPDATE class SET key = ? WHERE id = ?", [key, class_id])


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one (a trigger has semicolons inside); executescript would commit first."""
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


_M002 = """
-- the key that labels with this class; it moves only when somebody moves it
ALTER TABLE class ADD COLUMN key TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX class_key ON class (key) WHERE key != '';

CREATE TABLE decision_new (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo', 'flag')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    state INTEGER CHECK (state IN (1, -1, 0)),
    -- what a flag says; empty takes the image's flag away
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
INSERT INTO decision_new (id, uuid, action, image_id, class_id, state, undoes, source, annotator, batch, run_id, score,
    milliseconds, decided_at)
SELECT id, uuid, action, image_id, class_id, state, undoes, source, annotator, batch, run_id, score, milliseconds,
    decided_at FROM decision ORDER BY id;
DROP TABLE decision;
ALTER TABLE decision_new RENAME TO decision;
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_flag ON decision (image_id, id) WHERE action = 'flag';

-- decision_id as the last key: the newest examples of a class are the end of its index
DROP INDEX label_class;
CREATE INDEX label_class ON label (class_id, state, decision_id);

CREATE TABLE lease_new (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- 0: the whole image
    class_id INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL,
    annotator TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
);
INSERT INTO lease_new (image_id, holder, annotator, until) SELECT image_id, holder, annotator, until FROM lease;
DROP TABLE lease;
ALTER TABLE lease_new RENAME TO lease;
CREATE INDEX lease_holder ON lease (holder);

-- the few that are wrong among a million
CREATE INDEX image_problem ON image (name) WHERE problem != '';
CREATE INDEX file_reason ON file (path) WHERE reason != '';

-- how many there are of each kind; kept by the triggers below, counted by nobody
CREATE TABLE tally (
    kind TEXT NOT NULL,
    one NOT NULL,
    two NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, one, two)
) WITHOUT ROWID;

-- in which tallies a decision counts for as long as it is not taken back
CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER), CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END
FROM decision WHERE action != 'undo' AND source != 'import'
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state
FROM decision WHERE action = 'label' AND score IS NOT NULL AND source IN ('suggestion', 'grid', 'audit')
UNION ALL
SELECT id, 'run', run_id, state
FROM decision WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN ('suggestion', 'grid', 'audit');

INSERT INTO tally SELECT 'stage', stage, '', count(*) FROM image GROUP BY stage;
INSERT INTO tally SELECT 'label', class_id, state, count(*) FROM label GROUP BY class_id, state;
INSERT INTO tally SELECT kind, one, two, count(*) FROM counted c
WHERE NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = c.decision_id) GROUP BY kind, one, two;

CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
    INSERT INTO tally VALUES ('stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER image_moved AFTER UPDATE OF stage ON image WHEN old.stage != new.stage BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'stage' AND one = old.stage AND two = '';
    INSERT INTO tally VALUES ('stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_added AFTER INSERT ON label BEGIN
    INSERT INTO tally VALUES ('label', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_changed AFTER UPDATE OF state ON label WHEN old.state != new.state BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'label' AND one = old.class_id AND two = old.state;
    INSERT INTO tally VALUES ('label', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_removed AFTER DELETE ON label BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'label' AND one = old.class_id AND two = old.state;
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


@MIGRATIONS()
def m003(db: Database) -> None:
    """Drawings of cells to audit, what a model filled in under a guarantee, runs that are brought up to date, and where
    people contradict each other."""
    for statement in _statements(_M003):
        db.execute(statement)
    several = """SELECT image_id FROM decision WHERE action IN ('label', 'done') AND source != 'import'
        GROUP BY image_id HAVING min(annotator) != max(annotator)"""
    for (image_id,) in db.execute(several).fetchall():
        set_contradictions(db, image_id)


_M003 = """
-- how often its probabilities were brought up to date since its training: arrays of version 0 lie in runs/<id>/, later
-- ones in runs/<id>/v<version>/
ALTER TABLE run ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
-- the newest decision its training has seen; last_decision_id is the newest that its version has seen
ALTER TABLE run ADD COLUMN trained_decision_id INTEGER NOT NULL DEFAULT 0;
UPDATE run SET trained_decision_id = last_decision_id;
-- per class, slope and shift that turned the model's logits into the probabilities people see; JSON, empty: none
ALTER TABLE run ADD COLUMN calibration TEXT NOT NULL DEFAULT '';

-- one random drawing of cells that people answer without being told what the model thinks
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER,
    last_decision_id INTEGER NOT NULL,
    drawn_at REAL NOT NULL,
    -- set when its arrays are on the disk (audits/<id>/): before that nobody sees it
    published INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE audit_cell (
    audit_id INTEGER NOT NULL REFERENCES audit (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    stratum INTEGER NOT NULL,
    -- in the random order in which a class's cells are asked
    place INTEGER NOT NULL,
    PRIMARY KEY (audit_id, class_id, image_id)
) WITHOUT ROWID;
CREATE INDEX audit_cell_image ON audit_cell (image_id, class_id);

-- one decision to let the model fill in cells of a class; never a person's label
CREATE TABLE acceptance (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- those made at one time share it, and are undone as one
    batch TEXT NOT NULL,
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL CHECK (state IN (1, -1)),
    run_id INTEGER NOT NULL,
    threshold REAL NOT NULL,
    -- what was promised, and the audited decisions it rests on
    precision REAL NOT NULL,
    confidence REAL NOT NULL,
    audited INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    made_at REAL NOT NULL,
    -- why its cells were given back; empty while it holds
    withdrawn TEXT NOT NULL DEFAULT '',
    withdrawn_at REAL
);
CREATE TABLE accepted (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX accepted_acceptance ON accepted (acceptance_id);
CREATE INDEX accepted_class ON accepted (class_id, state);
-- a person's answer takes the cell away from the model; taken back, the cell is open until the next look at promises
CREATE TRIGGER accepted_answered AFTER INSERT ON label BEGIN
    DELETE FROM accepted WHERE image_id = new.image_id AND class_id = new.class_id;
END;
CREATE TRIGGER accepted_added AFTER INSERT ON accepted BEGIN
    INSERT INTO tally VALUES ('accepted', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER accepted_removed AFTER DELETE ON accepted BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'accepted' AND one = old.class_id AND two = old.state;
END;

-- cells on which people contradict each other until somebody answers once more (history.py); they follow from the
-- decisions, like the labels
CREATE TABLE contradiction (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    -- the answer that brought it
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX contradiction_newest ON contradiction (decision_id);
"""


@MIGRATIONS()
def m006(db: Database) -> None:
    """How often classes were changed (versions.py): a new class reopens complete images without a decision."""
    for statement in _statements(_M006):
        db.execute(statement)


_M006 = """
CREATE TABLE class_version (changes INTEGER NOT NULL);
INSERT INTO class_version VALUES (0);
CREATE TRIGGER class_added AFTER INSERT ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_changed AFTER UPDATE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_removed AFTER DELETE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
"""


@MIGRATIONS()
def m005(db: Database) -> None:
    """What tells that a file was replaced by one of the same size and time, and former names of images."""
    for statement in _statements(_M005):
        db.execute(statement)


_M005 = """
-- inode and time of the last change of any kind; empty: recorded by an older version, to be compared by content
ALTER TABLE file ADD COLUMN stamp TEXT NOT NULL DEFAULT '';

-- what an image was called before its file was renamed or moved; its name, and the paths of files, come first
CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES image (id)
) WITHOUT ROWID;
"""


@MIGRATIONS()
def m004(db: Database) -> None:
    """Random images, lessons, second looks and settled disagreements have sources of their own, which the tallies of
    scores count as well. No older decision has one of them, so the tallies stay as they are."""
    db.execute("DROP VIEW counted")
    db.execute(counted_view())
