"""Step 5: what tells that a file was replaced, and former names."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m005(db: Database) -> None:
    """Add file stamps, which tell that a file was replaced by one of the same size and time, and former names."""
    for statement in split_statements(_M005):
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
