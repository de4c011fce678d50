"""Step 23: audits that draw events instead of images."""

from sqlite_utils import Database


def m023(db: Database) -> None:
    """Add to each audit whether it drew events, whose images are all asked; those of before drew images."""
    db.execute("ALTER TABLE audit ADD COLUMN by_event INTEGER NOT NULL DEFAULT 0")
