"""Facts of images that are no labels: split, location, licence, ...; blocks.py reads them for exports."""

from collections.abc import Mapping

from annotator.store.database import Database


def attributes(db: Database, image_id: int) -> dict[str, str]:
    """The facts of an image, by name."""
    return dict(db.tuples("SELECT name, value FROM attribute WHERE image_id = ? ORDER BY name", [image_id]))


def counts(db: Database) -> dict[str, int]:
    """Name -> how many images have such a fact."""
    return dict(db.tuples("SELECT name, count(*) FROM attribute GROUP BY name"))


def set_attributes(db: Database, image_id: int, facts: Mapping[str, str]) -> None:
    """Set facts of an image; "" takes one away."""
    with db.writing() as sql:
        sql.conn.executemany(
            "DELETE FROM attribute WHERE image_id = ? AND name = ?", [(image_id, name) for name in facts]
        )
        sql.conn.executemany(
            "INSERT INTO attribute (image_id, name, value) VALUES (?, ?, ?)",
            [(image_id, name, value) for name, value in facts.items() if value],
        )
