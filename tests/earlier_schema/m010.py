"""Step 10: projects that were analyzed with the earlier default network keep it."""

from sqlite_utils import Database


def m010(db: Database) -> None:
    """Record `efficientnet_lite2` as the network of projects that have images and chose none.

    It was the default until now. Naming it keeps a version with another default from computing everything anew.
    """
    db.execute(
        """INSERT OR IGNORE INTO setting (key, value)
        SELECT 'backbone', '"efficientnet_lite2"' WHERE EXISTS (SELECT 1 FROM image)"""
    )
