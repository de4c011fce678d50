"""The tables of trainings, the worker, and external predictions."""

RUN_TABLES_SQL = """
-- One row per training. Its arrays are in runs/<id>/, and those of later versions in runs/<id>/v<version>/.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL,
    backbone TEXT NOT NULL,
    class_ids TEXT NOT NULL,
    images INTEGER NOT NULL,
    -- the newest decision that its version has seen
    last_decision_id INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    seconds REAL NOT NULL,
    loss TEXT NOT NULL,
    -- the probability from which suggestions of this method are shown
    threshold REAL NOT NULL,
    finished_at REAL NOT NULL,
    -- 1: set in the transaction that makes its arrays the current ones
    published INTEGER NOT NULL DEFAULT 0,
    -- how often its probabilities were updated since the training
    version INTEGER NOT NULL DEFAULT 0,
    -- the newest decision that the training has seen
    trained_decision_id INTEGER NOT NULL DEFAULT 0,
    -- JSON: per class, slope and shift from the logits of the model to the probabilities; '': none
    calibration TEXT NOT NULL DEFAULT ''
);

-- One row per training or heat map that is requested.
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

-- The only row: what the worker does, and when it last said so.
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

-- One row per source of predictions from outside the project; its scores are an array file per version.
CREATE TABLE prediction_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- probability: in [0, 1]; score: any finite number, used for the order within a class only
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

-- One row per decision and source: the score of the source for the cell when a person answered it.
CREATE TABLE prediction_score (
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (decision_id, prediction_source_id)
) WITHOUT ROWID;

-- One row per run and source of predictions that it used.
CREATE TABLE run_source (
    run_id INTEGER NOT NULL REFERENCES run (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    -- JSON: class id -> the logit that one unit of the source adds; {} if it only fills in
    weights TEXT NOT NULL,
    PRIMARY KEY (run_id, prediction_source_id)
) WITHOUT ROWID;
"""
