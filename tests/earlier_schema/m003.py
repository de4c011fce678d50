"""Step 3: audits, automatic acceptance, versions of runs, contradictions between people."""

from collections.abc import Iterator

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m003(db: Database) -> None:
    """Add audit drawings, automatically accepted cells, versions of runs, and disagreements between people."""
    for statement in split_statements(_M003):
        db.execute(statement)
    several = """SELECT image_id FROM decision WHERE action IN ('label', 'done') AND source != 'import'
        GROUP BY image_id HAVING min(annotator) != max(annotator)"""
    for (image_id,) in db.execute(several).fetchall():
        for class_id, decision_id in _contradictions(db, image_id).items():
            db.execute(
                "INSERT INTO contradiction (image_id, class_id, decision_id) VALUES (?, ?, ?)",
                [image_id, class_id, decision_id],
            )


# A copy of what history.py did when this step was written: an applied step never changes.
def _contradictions(db: Database, image_id: int) -> dict[int, int]:
    """Return the cells of an image on which people disagree: class id -> the decision that caused the disagreement."""
    standing: dict[int, dict[str, int]] = {}
    disagreements: dict[int, int] = {}
    for decision_id, class_id, state, annotator in _answers(db, image_id):
        if disagreements.pop(class_id, None) is not None:
            standing[class_id] = {}
        states = standing.setdefault(class_id, {})
        states.pop(annotator, None)
        if state != 0:  # unsure
            states[annotator] = state
        if len(set(states.values())) > 1:
            disagreements[class_id] = decision_id
    return disagreements


def _answers(db: Database, image_id: int) -> Iterator[tuple[int, int, int, str]]:
    """Yield people's valid answers, oldest first, as (decision, class, state, person); a "done" yields many."""
    history = db.execute(
        """SELECT d.id, d.action, d.class_id, d.state, d.source, d.annotator, u.id FROM decision d
        LEFT JOIN decision u ON u.undoes = d.id
        WHERE d.image_id = ? AND d.action IN ('label', 'done', 'skip') ORDER BY d.id""",
        [image_id],
    ).fetchall()
    classes = db.execute("SELECT id, since_decision FROM class").fetchall()
    for decision_id, action, class_id, state, source, annotator, undone_by in history:
        if undone_by is not None or source == "import":
            continue
        if action == "label":
            yield decision_id, class_id, state, annotator
        elif action == "done":
            answered = {
                other_class
                for other, other_action, other_class, _, _, _, undone in history
                if other_action == "label" and other < decision_id and (undone is None or undone > decision_id)
            }
            for open_class, since in classes:
                if since < decision_id and open_class not in answered:
                    yield decision_id, open_class, -1, annotator


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
