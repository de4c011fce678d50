"""Step 6: a version of the classes."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m006(db: Database) -> None:
    """Add a counter of class changes (versions.py): a new class reopens complete images without a decision."""
    for statement in split_statements(_M006):
        db.execute(statement)


_M006 = """
CREATE TABLE class_version (changes INTEGER NOT NULL);
INSERT INTO class_version VALUES (0);
CREATE TRIGGER class_added AFTER INSERT ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_changed AFTER UPDATE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_removed AFTER DELETE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
"""
