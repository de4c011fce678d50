"""One number that says whether what was read of stages, labels and classes is still true."""

from annotator.store.database import Database


def version(db: Database) -> int:
    """A number that grows with every decision and every change of a class, at the cost of two look-ups.

    Stages and labels follow from decisions, but for one thing: a new class reopens complete images. Whatever shows
    stages, labels or the list of classes, and is kept, is kept under this number.
    """
    return db.value("SELECT (SELECT coalesce(max(id), 0) FROM decision) + (SELECT changes FROM class_version)")


def class_version(db: Database) -> int:
    """How often a class was added or changed: the part of `version` that no decision explains."""
    return db.value("SELECT changes FROM class_version")
