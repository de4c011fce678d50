"""A later step of the schema, as a future version would have it: for tests of upgrades."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlite_utils import Database

from annotator.store.schema import MIGRATIONS, STEP_NAMES, add_step


def step_900(db: Database) -> None:
    """Add the aperture of each image, and a table with a row per decision."""
    db.execute("CREATE TABLE remark (decision_id INTEGER PRIMARY KEY REFERENCES decision (id), text TEXT NOT NULL)")
    db.execute("INSERT INTO remark SELECT id, uuid FROM decision")
    db.execute("ALTER TABLE image ADD COLUMN aperture TEXT")
    db.execute("UPDATE setting SET value = '2' WHERE key = 'registrations'")


@contextmanager
def add_later_step() -> Iterator[None]:
    """Have this process know step_900, as a newer version does."""
    add_step(step_900)
    try:
        yield
    finally:
        STEP_NAMES.remove("step_900")
        MIGRATIONS._migrations.pop()
