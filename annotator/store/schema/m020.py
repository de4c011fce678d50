"""Step 20: how images look: brightness, sharpness, exposure, and a hash by which twins are found."""

from sqlite_utils import Database


def m020(db: Database) -> None:
    """Add a table of what is measured on pixels; the worker measures images that were embedded before.

    It is no part of `image`, whose rows are read all the time. Ids only rise: pages read the rows that are new to them.
    """
    db.execute(
        """CREATE TABLE appearance (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
            brightness REAL NOT NULL,
            sharpness REAL NOT NULL,
            overexposed REAL NOT NULL,
            underexposed REAL NOT NULL,
            hash INTEGER NOT NULL
        )"""
    )
