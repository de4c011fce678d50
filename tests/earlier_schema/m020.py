"""Step 20: how images look: brightness, sharpness, exposure and a hash; and twins, which look nearly the same."""

from sqlite_utils import Database


def m020(db: Database) -> None:
    """Add what is measured on pixels, and the group of each image that has twins.

    Neither is part of `image`, whose rows are read all the time. The worker measures images that were embedded before.
    A group is named after its first image; an image that has lost its twins is its own first. Ids only rise: pages read
    the rows that are new to them.
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
    db.execute(
        """CREATE TABLE twin (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
            first_id INTEGER NOT NULL REFERENCES image (id)
        )"""
    )
    db.execute("CREATE INDEX twin_of ON twin (first_id)")
