"""Writing project.db as an older version made it, and reading one of any version: for tests and measurements."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.store.schema import MIGRATIONS

COPIED_TABLES = ("image", "class", "decision", "label", "folder", "file")  # that are carried over
_ROW_QUERIES = {
    "decisions": "SELECT id, uuid, action, image_id, class_id, state, undoes, annotator FROM decision ORDER BY id",
    "labels": "SELECT image_id, class_id, state FROM label ORDER BY 1, 2",
    "images": "SELECT id, name, sha256 FROM image ORDER BY id",
}


def write_older(database: Path, target: Path, step: str) -> None:
    """Write a new project.db without this step of the schema and all later ones, with the rows of `database`.

    Args:
        database: The project.db to copy rows from, as far as the older tables have their columns.
        target: The file to write.
        step: The name of the first step to leave out.
    """
    with closing(sqlite3.connect(database)) as new, closing(sqlite3.connect(target)) as connection:
        old = sqlite_utils.Database(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = OFF")
        MIGRATIONS.apply(old, stop_before=step)
        with connection:
            for table in COPIED_TABLES:
                there = _columns(new, table)
                columns = ", ".join(name for name in _columns(connection, table) if name in there)
                rows = new.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
                marks = ", ".join("?" * (columns.count(",") + 1))
                connection.executemany(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", rows)


def read_any_version(database: Path) -> dict[str, Any]:
    """Return the number of schema steps of a project.db, and its decisions, labels and images.

    A copy is read, so that the file itself does not change.

    Returns:
        "steps": the number; "decisions", "labels", "images": lists of rows.

    Raises:
        AnnotatorError: The file is damaged.
    """
    with tempfile.TemporaryDirectory() as place:
        for name in (database.name, f"{database.name}-wal"):
            if database.with_name(name).exists():
                shutil.copyfile(database.with_name(name), Path(place) / name)
        try:
            with closing(sqlite3.connect(Path(place) / database.name)) as sql:
                damaged = sql.execute("PRAGMA integrity_check").fetchone() != ("ok",)
                steps = sql.execute("SELECT count(*) FROM _sqlite_migrations").fetchone()[0]
                found = {name: sql.execute(query).fetchall() for name, query in _ROW_QUERIES.items()}
        except sqlite3.DatabaseError as error:
            raise AnnotatorError(f"{database} cannot be read: {error}") from error
    if damaged:
        raise AnnotatorError(f"{database} is damaged.")
    return {"steps": steps, **found}


def _columns(sql: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in sql.execute(f"PRAGMA table_info({table})").fetchall()]
