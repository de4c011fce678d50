"""Step 24: the camera of each image."""

from sqlite_utils import Database


def m024(db: Database) -> None:
    """Add the camera that a file names. Images of before have none until the worker has read their files again."""
    db.execute("ALTER TABLE image ADD COLUMN camera TEXT")
    db.execute("UPDATE image SET capture_read = 0")
    # What is kept of images in memory follows the rows of image_change.
    db.execute("DROP TRIGGER image_changed")
    db.execute(
        """CREATE TRIGGER image_changed AFTER UPDATE OF name, name_key, captured_at, camera ON image
        WHEN old.name IS NOT new.name OR old.name_key IS NOT new.name_key OR old.captured_at IS NOT new.captured_at
            OR old.camera IS NOT new.camera BEGIN
            INSERT INTO image_change (image_id) VALUES (new.id);
        END"""
    )
