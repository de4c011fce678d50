"""Step 3: the worker row also has the time of the main loop's last progress."""

from sqlite_utils import Database


def step_003(db: Database) -> None:
    """Add the column `progress_at`, beside `heartbeat_at`, which a thread of the worker writes."""
    db.execute("ALTER TABLE worker ADD COLUMN progress_at REAL")
