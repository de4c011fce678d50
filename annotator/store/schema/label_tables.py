"""The tables of decisions, derived labels, disagreements, counts, accepted cells and audits."""

LABEL_TABLES_SQL = """
-- Decisions and labels

-- One row per decision, appended and never changed. All tables of labels and counts follow from these rows.
CREATE TABLE decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- clear: the cell has no answer any more; comment: a note that leaves other notes valid
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo', 'flag', 'clear', 'comment')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    -- 1 present, -1 absent, 0 unsure
    state INTEGER CHECK (state IN (1, -1, 0)),
    -- of a flag or a comment; an empty flag removes the flag of the image
    note TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES decision (id),
    -- how the answer was given (records.SOURCES)
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    batch TEXT,
    -- the model that the person saw, and its probability
    run_id INTEGER,
    score REAL,
    -- how long the person took
    milliseconds INTEGER,
    decided_at REAL NOT NULL
);
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_flag ON decision (image_id, id) WHERE action = 'flag';
CREATE INDEX decision_comment ON decision (image_id, id) WHERE action = 'comment';

-- One row per answered cell: its newest state, and the decision that gave it. Derived.
CREATE TABLE label (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
-- decision_id is the last key: the newest examples of a class are the end of its index
CREATE INDEX label_class ON label (class_id, state, decision_id);

-- One row per cell on which people disagree (labels/derivation.py). Derived.
CREATE TABLE contradiction (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    -- the answer that caused the disagreement
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX contradiction_newest ON contradiction (decision_id);

-- One row per answer that ends no disagreement, because its person had no right to review when it was given.
CREATE TABLE opinion (decision_id INTEGER PRIMARY KEY REFERENCES decision (id));

-- The only row: blind answers after this decision end no disagreement. 0, but for projects from before 2026-11-24.
CREATE TABLE blind_since (decision_id INTEGER NOT NULL);
INSERT INTO blind_since VALUES (0);

-- One row per count that pages show; triggers keep it. What `one` and `two` are depends on the kind: stage (stage, ''),
-- label, accepted and apart (class, state), apart stage (stage, ''), and those of the view `counted`.
CREATE TABLE tally (
    kind TEXT NOT NULL,
    one NOT NULL,
    two NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, one, two)
) WITHOUT ROWID;

-- One row per decision and tally in which it counts until it is taken back. The sources are those of records.SOURCES
-- (labels/sources.py): a new source needs a step that creates this view again.
CREATE VIEW counted (decision_id, kind, one, two) AS
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
    AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration');

-- Answers by a model, and answers that follow from others

-- One row per time that a model, a person after a random sample, or a relation answers cells of a class.
CREATE TABLE acceptance (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT NOT NULL,
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL CHECK (state IN (1, -1)),
    run_id INTEGER NOT NULL,
    threshold REAL NOT NULL,
    -- the guarantee, and the audited decisions it rests on
    precision REAL NOT NULL,
    confidence REAL NOT NULL,
    audited INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    made_at REAL NOT NULL,
    -- why its cells were given back; '' while it holds
    withdrawn TEXT NOT NULL DEFAULT '',
    withdrawn_at REAL,
    -- who marked the class absent everywhere after a random sample; '' for a model
    annotator TEXT NOT NULL DEFAULT '',
    relation_id INTEGER REFERENCES relation_edit (id)
);
CREATE INDEX acceptance_of_a_person ON acceptance (class_id) WHERE annotator != '';
CREATE UNIQUE INDEX acceptance_of_a_relation ON acceptance (relation_id) WHERE relation_id NOT NULL;

-- One row per cell that is answered in this way and not by a person; never a label.
CREATE TABLE accepted (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL,
    -- the answer that an implied cell follows from; NULL for a model
    decision_id INTEGER REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX accepted_acceptance ON accepted (acceptance_id);
CREATE INDEX accepted_class ON accepted (class_id, state);
CREATE INDEX accepted_implied ON accepted (class_id, state) WHERE decision_id NOT NULL;

-- One row per random sample of cells that people answer without seeing predictions.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER,
    last_decision_id INTEGER NOT NULL,
    drawn_at REAL NOT NULL,
    -- 1 once its arrays are on the disk (audits/<id>/): pages show it from then on
    published INTEGER NOT NULL DEFAULT 0,
    -- how many people answer each cell, blind to each other
    people INTEGER NOT NULL DEFAULT 1,
    -- 1: events were drawn, and all their images are asked
    by_event INTEGER NOT NULL DEFAULT 0
);

-- One row per cell of an audit.
CREATE TABLE audit_cell (
    audit_id INTEGER NOT NULL REFERENCES audit (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    stratum INTEGER NOT NULL,
    -- in the random order in which the cells of a class are asked
    place INTEGER NOT NULL,
    PRIMARY KEY (audit_id, class_id, image_id)
) WITHOUT ROWID;
CREATE INDEX audit_cell_image ON audit_cell (image_id, class_id);
"""
