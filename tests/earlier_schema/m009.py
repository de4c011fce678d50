"""Step 9: times of the speed test."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m009(db: Database) -> None:
    """Add the times that speed test tasks took a person. Their answers are not kept: they are no evidence."""
    for statement in split_statements(_M009):
        db.execute(statement)


_M009 = """
CREATE TABLE speed_test (
    annotator TEXT NOT NULL,
    -- how often this person has taken the test, from 1 on, and the place of the task in it, from 0 on
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
