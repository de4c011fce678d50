"""Events for tests whose images have no times."""

from annotator.store.database.database import Database
from annotator.store.events import membership


def in_events(db: Database, size: int) -> None:
    """Make events of so many images, in the order of ids, as if they had been found."""
    with db.writing() as sql:
        sql.execute("DELETE FROM image_event")
        sql.execute("INSERT INTO image_event SELECT id, id - (id - 1) % ?, (id - 1) % ? FROM image", [size, size])
    db.set_setting(membership.EVENTS_FOUND_SETTING, [size])
