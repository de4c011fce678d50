"""Step 22: answers that were given to an event as a whole name the answer that they repeat."""

from sqlite_utils import Database


def m022(db: Database) -> None:
    """Add the decision on the image in front that each decision of the source "event" repeats."""
    db.execute(
        """CREATE TABLE event_answer (
            decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
            from_id INTEGER NOT NULL REFERENCES decision (id)
        )"""
    )
