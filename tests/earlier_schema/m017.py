"""Step 17: which bands of an image of many are shown."""

from sqlite_utils import Database


def m017(db: Database) -> None:
    """Add to each image what was shown of it when it was read, "" for images without a choice of bands.

    Images from before this step had three channels or fewer, or were not read.
    """
    db.execute("ALTER TABLE image ADD COLUMN bands TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX image_of_many_bands ON image (id) WHERE bands != ''")
