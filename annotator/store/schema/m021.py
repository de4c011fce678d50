"""Step 21: twins, images that show nearly the same picture."""

from sqlite_utils import Database


def m021(db: Database) -> None:
    """Add the group of each image that has twins, named after the first image of the group.

    An image that has lost its twins is its own first. Ids only rise, as those of `appearance`.
    """
    db.execute(
        """CREATE TABLE twin (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
            first_id INTEGER NOT NULL REFERENCES image (id)
        )"""
    )
    db.execute("CREATE INDEX twin_of ON twin (first_id)")
