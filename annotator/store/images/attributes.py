"""Imported image fields (split, location, license), their storage and undo."""

import sqlite_utils

from annotator.store.database.database import Database


def load_names(db: Database) -> list[str]:
    """Return the names of all imported fields in use, sorted."""
    # Each name is looked up after the one before: a project has few names and many rows.
    query = """WITH RECURSIVE found(name) AS (SELECT min(name) FROM attribute UNION ALL
        SELECT (SELECT min(name) FROM attribute WHERE name > found.name) FROM found WHERE name NOT NULL)
        SELECT name FROM found WHERE name NOT NULL"""
    return [name for (name,) in db.tuples(query)]


def load_values(db: Database, name: str, limit: int) -> list[str]:
    """Return up to `limit` values of an imported field, sorted."""
    query = "SELECT DISTINCT value FROM attribute WHERE name = ? ORDER BY value LIMIT ?"
    return [value for (value,) in db.tuples(query, [name, limit])]


def get_change_key(db: Database) -> tuple[int, int]:
    """Return a key that changes with every import or its undo."""
    return db.tuples("SELECT coalesce(max(id), 0), count(undone_at) FROM import")[0]


def import_attributes(sql: sqlite_utils.Database, import_id: int, replace: bool) -> int:
    """Store an import's staged fields, and return how many changed (`replace` also changes existing values)."""
    said = """FROM staged.attribute a JOIN staged.item i ON i.id = a.item WHERE i.image_id > 0
        GROUP BY i.image_id, a.name HAVING a.rowid = max(a.rowid)"""
    if replace:
        sql.execute(
            f"""INSERT INTO attribute_before (import_id, image_id, name, value, before_id)
            SELECT ?, h.image_id, h.name, h.value, h.import_id FROM (SELECT i.image_id, a.name, a.value {said}) s
            JOIN attribute h ON h.image_id = s.image_id AND h.name = s.name AND h.value != s.value""",
            [import_id],
        )
    keep = "DO UPDATE SET value = excluded.value, import_id = excluded.import_id WHERE value != excluded.value"
    return sql.execute(
        f"""INSERT INTO attribute (image_id, name, value, import_id) SELECT i.image_id, a.name, a.value, ? {said}
        ON CONFLICT (image_id, name) {keep if replace else "DO NOTHING"}""",
        [import_id],
    ).rowcount


def undo_attributes(sql: sqlite_utils.Database, import_id: int) -> int:
    """Undo the changes of an import to image fields, and return how many changed."""
    mine = "attribute_before b WHERE b.import_id = :id AND b.image_id = a.image_id AND b.name = a.name"
    changed = sql.execute("SELECT count(*) FROM attribute WHERE import_id = :id", {"id": import_id}).fetchone()[0]
    for table, of_import in (("attribute", "import_id"), ("attribute_before", "before_id")):
        sql.execute(
            f"""UPDATE {table} AS a SET (value, {of_import}) = (SELECT b.value, b.before_id FROM {mine})
            WHERE {of_import} = :id AND EXISTS (SELECT 1 FROM {mine})""",
            {"id": import_id},
        )
    sql.execute("DELETE FROM attribute_before WHERE import_id = :id", {"id": import_id})
    for table, of_import in (("attribute", "import_id"), ("attribute_before", "before_id")):
        sql.execute(f"DELETE FROM {table} WHERE {of_import} = :id", {"id": import_id})
    return changed
