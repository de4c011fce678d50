"""The tables of classes and of the relations between them."""

CLASS_TABLES_SQL = """
-- One row per class, archived ones included.
CREATE TABLE class (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    -- the newest decision when it was added: "nothing else here" from before does not cover it
    since_decision INTEGER NOT NULL,
    -- the key on the keyboard; '': none
    key TEXT NOT NULL DEFAULT '',
    -- its place in lists; arrays and exports keep the order of ids
    position INTEGER NOT NULL DEFAULT 0,
    -- the heading under which lists show it; '': none
    heading TEXT NOT NULL DEFAULT '',
    -- "#rrggbb"; '': none
    colour TEXT NOT NULL DEFAULT '',
    -- 1: it is not asked, trained or exported; its decisions stay, and it has no rows in `label`
    archived INTEGER NOT NULL DEFAULT 0,
    -- of an archived class: the newest decision when it was archived, the class that later answers to it count for,
    -- and whether both were names of the same thing
    archived_since INTEGER NOT NULL DEFAULT 0,
    merged_into INTEGER REFERENCES class (id),
    merged_same INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX class_key ON class (key) WHERE key != '';
CREATE INDEX class_archived ON class (id, archived_since, merged_into, merged_same) WHERE archived = 1;

-- One row per time that a class was archived: "nothing else here" from between these decisions does not cover it.
CREATE TABLE class_away (
    class_id INTEGER NOT NULL REFERENCES class (id),
    since_decision INTEGER NOT NULL,
    until_decision INTEGER NOT NULL,
    PRIMARY KEY (class_id, since_decision, until_decision)
) WITHOUT ROWID;

-- One row per other name by which people find a class.
CREATE TABLE synonym (
    name TEXT PRIMARY KEY,
    class_id INTEGER NOT NULL REFERENCES class (id)
) WITHOUT ROWID;
CREATE INDEX synonym_class ON synonym (class_id);

-- One row per image that people chose to show what a class means.
CREATE TABLE example (
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    place INTEGER NOT NULL,
    PRIMARY KEY (class_id, image_id)
) WITHOUT ROWID;

-- One row per change of classes, appended and never changed.
CREATE TABLE class_change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- add, edit, merge, split, archive, restore, undo
    kind TEXT NOT NULL,
    annotator TEXT NOT NULL,
    changed_at REAL NOT NULL,
    -- JSON: class id -> what is kept of the class (classes/class_changes.py), before and after
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    -- of the decisions that were stored with it; '': none
    batch TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES class_change (id)
);
CREATE UNIQUE INDEX class_change_undoes ON class_change (undoes) WHERE undoes IS NOT NULL;

-- The only row: how many times classes were changed, which decisions do not tell. Triggers count.
CREATE TABLE class_version (changes INTEGER NOT NULL);
INSERT INTO class_version VALUES (0);

-- One row per relation that people declared or removed, appended and never changed.
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
    batch TEXT NOT NULL,
    annotator TEXT NOT NULL,
    edited_at REAL NOT NULL
);
CREATE UNIQUE INDEX relation_edit_undoes ON relation_edit (undoes) WHERE undoes NOT NULL;
CREATE INDEX relation_edit_removes ON relation_edit (removes) WHERE removes NOT NULL;

-- One row per implication of the relations that hold: `needed` answers like the first imply the other one. Derived.
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
"""
