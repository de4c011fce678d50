"""Version numbers under which caches keep stages, labels and classes."""

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL


def get_label_version(db: Database) -> int:
    """Return a number that grows with every decision and every change of a class, at the cost of two look-ups.

    Stages and labels follow from decisions, except that a new class reopens complete images. Caches of stages, labels
    or the list of classes use this number as their key.
    """
    return db.value(f"SELECT {NEWEST_DECISION_ID_SQL} + (SELECT changes FROM class_version)")


def get_class_version(db: Database) -> int:
    """Return how many times classes were added or changed: the part of `version` that decisions do not explain.

    It grows when a person is renamed, too (store/people/renaming.py): what is kept by it may hold names of people.
    """
    return db.value("SELECT changes FROM class_version")
