"""Step 12: how many people are to answer each cell of an audit, blind to each other."""

from sqlite_utils import Database


def m012(db: Database) -> None:
    """Record that audits drawn until now ask one person."""
    db.execute("ALTER TABLE audit ADD COLUMN people INTEGER NOT NULL DEFAULT 1")
