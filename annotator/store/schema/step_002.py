"""Step 2: accepted cells that an answer or a relation takes over return when that is undone."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements

DISPLACED_ACCEPTANCE_SQL = """
-- One row per accepted cell that now has a label or is implied. It returns to `accepted` once neither holds.
CREATE TABLE displaced_acceptance (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE INDEX displaced_acceptance_of ON displaced_acceptance (acceptance_id);

CREATE TRIGGER accepted_displaced AFTER DELETE ON accepted
WHEN old.decision_id IS NULL AND EXISTS (SELECT 1 FROM acceptance WHERE id = old.acceptance_id AND withdrawn = '') BEGIN
    INSERT OR REPLACE INTO displaced_acceptance (image_id, class_id, acceptance_id, state, score)
    VALUES (old.image_id, old.class_id, old.acceptance_id, old.state, old.score);
END;
"""


def step_002(db: Database) -> None:
    """Create the table of displaced cells and the triggers that fill and empty it."""
    for script in (DISPLACED_ACCEPTANCE_SQL, *map(_build_return_trigger, _RETURN_EVENTS)):
        for statement in split_statements(script):
            db.execute(statement)


# Trigger name -> (table, condition). Withdrawn acceptances have no displaced cells (labels/auto_accepted.py).
_RETURN_EVENTS = {
    "displaced_returns_after_label": ("label", "true"),
    "displaced_returns_after_implication": ("accepted", "old.decision_id NOT NULL"),
}


def _build_return_trigger(name: str) -> str:
    table, condition = _RETURN_EVENTS[name]
    of_cell = "image_id = old.image_id AND class_id = old.class_id"
    return f"""CREATE TRIGGER {name} AFTER DELETE ON {table}
WHEN {condition} AND EXISTS (SELECT 1 FROM displaced_acceptance WHERE {of_cell}) BEGIN
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score)
    SELECT image_id, class_id, acceptance_id, state, score FROM displaced_acceptance WHERE {of_cell}
        AND NOT EXISTS (SELECT 1 FROM label WHERE {of_cell}) AND NOT EXISTS (SELECT 1 FROM accepted WHERE {of_cell});
    DELETE FROM displaced_acceptance WHERE {of_cell}
        AND EXISTS (SELECT 1 FROM accepted WHERE {of_cell} AND decision_id IS NULL);
END;
"""
