"""Version numbers under which caches keep stages, labels and classes."""

from annotator.store.database.database import Database


def version(db: Database) -> int:
    """A number that grows with every decision and every change of a class, at the cost of two look-ups.

    Stages and labels follow from decisions, except that a new class reopens complete images. Caches of stages, labels
    or the list of classes use it as their key.
    """
    return db.value("SELECT (SELECT coalesce(max(id), 0) FROM decision) + (SELECT changes FROM class_version)")


def class_version(db: Database) -> int:
    """How often a class was added or changed: the part of `version` that no decision explains."""
    return db.value("SELECT changes FROM class_version")
