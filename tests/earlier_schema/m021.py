"""Step 21: relations of classes, what follows from them, and the cells that answers imply."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m021(db: Database) -> None:
    """Add the relations that people declare, and hold what answers imply like auto-accepted cells.

    An implied cell is a row of `accepted` with the decision that it follows from, so whatever leaves auto-accepted
    cells out of questions leaves it out, too. Triggers keep these rows in the transaction of the label they follow
    from; without relations they do nothing.
    """
    for statement in split_statements(_TABLES):
        db.execute(statement)
    for name, event, of, states, own in (
        ("label_implies", "INSERT", "new", "(new.state)", "0"),
        ("label_implies_otherwise", "UPDATE OF state, decision_id", "new", "(old.state, new.state)", "0"),
        ("label_implied_no_more", "DELETE", "old", "(old.state)", "old.class_id"),
    ):
        targets = _TARGETS.format(of=of, states=states, own=own)
        cells = _CELLS.format(of=of, targets=targets)
        for statement in split_statements(_TRIGGER.format(name=name, event=event, of=of, targets=targets, cells=cells)):
            db.execute(statement)


_TABLES = """
-- appended, never changed: the relations are those that were neither removed nor undone
CREATE TABLE relation_edit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('is_a', 'at_most_one', 'exactly_one', 'remove', 'undo')),
    -- of a group
    name TEXT NOT NULL DEFAULT '',
    -- JSON: of is_a [child, parent], of a group its classes
    class_ids TEXT NOT NULL DEFAULT '[]',
    removes INTEGER REFERENCES relation_edit (id),
    undoes INTEGER REFERENCES relation_edit (id),
    -- those made at one time share it, and are undone as one
    batch TEXT NOT NULL,
    annotator TEXT NOT NULL,
    edited_at REAL NOT NULL
);
CREATE UNIQUE INDEX relation_edit_undoes ON relation_edit (undoes) WHERE undoes NOT NULL;
CREATE INDEX relation_edit_removes ON relation_edit (removes) WHERE removes NOT NULL;
-- derived: an answer to a class means an answer to another one, once as many answers mean it as are needed
CREATE TABLE implication (
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL CHECK (state IN (1, -1)),
    other_id INTEGER NOT NULL REFERENCES class (id),
    other_state INTEGER NOT NULL CHECK (other_state IN (1, -1)),
    relation_id INTEGER NOT NULL REFERENCES relation_edit (id),
    needed INTEGER NOT NULL,
    PRIMARY KEY (class_id, state, other_id, other_state, relation_id)
) WITHOUT ROWID;
CREATE INDEX implication_of ON implication (other_id);
ALTER TABLE acceptance ADD COLUMN relation_id INTEGER REFERENCES relation_edit (id);
CREATE UNIQUE INDEX acceptance_of_a_relation ON acceptance (relation_id) WHERE relation_id NOT NULL;
-- the answer that an implied cell follows from; nothing for what a model answers
ALTER TABLE accepted ADD COLUMN decision_id INTEGER REFERENCES decision (id);
CREATE INDEX accepted_implied ON accepted (class_id, state) WHERE decision_id NOT NULL;
"""

# What the label that changed can imply, or imply no more, is derived anew. A cell has no implied answer where people
# have answered it, or where answers imply both states of it.
_TRIGGER = """
CREATE TRIGGER {name} AFTER {event} ON label WHEN EXISTS (SELECT 1 FROM implication) BEGIN
    DELETE FROM accepted WHERE image_id = {of}.image_id AND decision_id NOT NULL AND class_id IN ({targets});
    DELETE FROM accepted WHERE image_id = {of}.image_id AND class_id IN (SELECT other_id FROM ({cells}));
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
    SELECT {of}.image_id, c.other_id, a.id, c.other_state, c.other_state > 0, c.decision_id
    FROM ({cells}) c JOIN acceptance a ON a.relation_id = c.relation_id;
END;
"""
_TARGETS = """SELECT other_id FROM implication WHERE class_id = {of}.class_id AND state IN {states}
        UNION ALL SELECT {own}"""
_CELLS = """SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = {of}.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN ({targets})
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = {of}.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1"""
