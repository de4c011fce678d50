"""Step 2: keys, flags, leases of single cells, tallies."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m002(db: Database) -> None:
    """Add keys of classes, flags, leases of single cells, and tallies, so that no page ever counts a million rows.

    SQLite cannot change a CHECK or a primary key: `decision` and `lease` are written anew. The caller switches foreign
    keys off before, because that is not possible inside a transaction.
    """
    for statement in split_statements(_M002):
        db.execute(statement)
    keys = "1234567890qwertyuiopasdfghjklzxcvbnm"
    classes = [row[0] for row in db.execute("SELECT id FROM class ORDER BY id LIMIT ?", [len(keys)]).fetchall()]
    for class_id, key in zip(classes, keys, strict=False):
        db.execute("UPDATE class SET key = ? WHERE id = ?", [key, class_id])


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
