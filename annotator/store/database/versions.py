"""Version numbers that serve as cache keys for stages, labels and classes."""

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL


def get_label_version(db: Database) -> int:
    """Return a number that grows with every decision and class change."""
    return db.value(f"SELECT {NEWEST_DECISION_ID_SQL} + (SELECT changes FROM class_version)")


def get_class_version(db: Database) -> int:
    """Return how often classes were added or changed, or annotators renamed."""
    return db.value("SELECT changes FROM class_version")
