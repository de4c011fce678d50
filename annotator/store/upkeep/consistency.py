"""Checks that derived tables agree with the decisions, and their repair.

A replay takes minutes for a million images, so pages never call it.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

import sqlite_utils

from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import build_not_undone_sql
from annotator.store.events import project_events
from annotator.store.images import near_duplicate_groups
from annotator.store.labels import auto_accepted, blind_visibility, derivation, implied_cells

COPY_CACHE_KB = 200_000  # cache of the temporary copy
MAX_LISTED_DIFFERENCES = 1000  # largest number of differences listed of one kind
IMAGES_PER_PROGRESS = 500  # between two calls of the progress

_DERIVED_TABLES = {  # derived tables, and the columns that are compared
    "label": "SELECT image_id, class_id, state, decision_id FROM label",
    "stage": "SELECT id, stage FROM image",
    "contradiction": "SELECT image_id, class_id FROM contradiction",
    "reading": "SELECT image_id, had, due FROM reading",
    "implied": "SELECT image_id, class_id, state FROM accepted WHERE decision_id NOT NULL",
}
_COUNT_TALLIES_SQL = f"""SELECT kind, one, two, sum(n) FROM (
    SELECT 'stage' AS kind, stage AS one, '' AS two, count(*) AS n FROM image GROUP BY stage
    UNION ALL SELECT 'label', class_id, state, count(*) FROM label GROUP BY class_id, state
    UNION ALL SELECT 'accepted', class_id, state, count(*) FROM accepted GROUP BY class_id, state
    UNION ALL {blind_visibility.HIDDEN_TALLIES_SQL}
    UNION ALL SELECT kind, one, two, count(*) FROM counted c
        WHERE {build_not_undone_sql("c.decision_id")} GROUP BY kind, one, two
) GROUP BY kind, one, two HAVING sum(n) != 0"""
_ARCHIVED_REMAINS_SQL = """SELECT 'auto-accepted' AS kind, image_id, class_id FROM accepted
    UNION ALL SELECT 'leased', image_id, class_id FROM lease"""
_SELECT_TALLY_SQL = "SELECT kind, one, two, n FROM tally WHERE n != 0"


@dataclass
class Differences:
    """The differences that a consistency check found, as sentences."""

    # integrity, foreign_keys: damage that cannot be rebuilt
    integrity: list[str] = field(default_factory=list[str])
    foreign_keys: list[str] = field(default_factory=list[str])
    derived: list[str] = field(default_factory=list[str])
    # images with different derived data
    images: set[int] = field(default_factory=set[int])


def find_problems(db: Database) -> list[str]:
    """Return all inconsistencies. Raises AnnotatorError if unreadable."""
    found = find_differences(db)
    return [*found.integrity, *found.foreign_keys, *found.derived]


def find_differences(db: Database, progress: ProgressCallback | None = None) -> Differences:
    """Compare derived tables with decisions and check database integrity.

    A failed integrity check skips the rest.

    Args:
        progress: Called with (images done, all images).

    Raises:
        AnnotatorError: The file is unreadable.
    """
    found = Differences()
    found.integrity = [f"integrity check: {row[0]}" for row in db.tuples("PRAGMA integrity_check") if row[0] != "ok"]
    if found.integrity:
        return found
    with closing(_copy_database(db)) as copy:
        found.foreign_keys = [f"foreign key: {tuple(row)}" for row in copy.execute("PRAGMA foreign_key_check")]
        copy.execute(f"CREATE TEMP TABLE stored_tally AS {_SELECT_TALLY_SQL}")
        found.derived += _compare_tables(copy, "tally", _COUNT_TALLIES_SQL, "SELECT * FROM stored_tally")
        archived = (
            f"SELECT * FROM ({_ARCHIVED_REMAINS_SQL}) WHERE class_id IN (SELECT id FROM class WHERE archived = 1)"
        )
        found.derived += [f"archived class: {row} is still there" for row in copy.execute(archived).fetchall()]
        found.derived += [
            f"displaced: image {image_id}, class {class_id} is neither answered nor implied"
            for image_id, class_id in copy.execute(
                f"{auto_accepted.OPEN_DISPLACED_CELLS_SQL} LIMIT ?", [MAX_LISTED_DIFFERENCES]
            )
        ]
        for name, statement in _DERIVED_TABLES.items():
            copy.execute(f"CREATE TEMP TABLE stored_{name} AS {statement}")
        _rebuild_copy(copy, progress)
        for name, statement in _DERIVED_TABLES.items():
            stored = f"SELECT * FROM stored_{name}"
            found.derived += _compare_tables(copy, name, statement, stored)
            image = "id" if name == "stage" else "image_id"
            for one, other in ((statement, stored), (stored, statement)):
                rows = copy.execute(f"SELECT DISTINCT {image} FROM (SELECT * FROM ({one}) EXCEPT {other})")
                found.images.update(row[0] for row in rows.fetchall())
    found.derived += project_events.find_invalid_rows(db)[:MAX_LISTED_DIFFERENCES]
    found.derived += [
        f"twins: image {image_id} is of a group of no image"
        for image_id in near_duplicate_groups.find_invalid_groups(db)[:MAX_LISTED_DIFFERENCES]
    ]
    return found


def repair(db: Database, image_ids: set[int], progress: ProgressCallback | None = None) -> None:
    """Rebuild the derived data of these images, and all stored counts, in one transaction.

    Near-duplicate groups are deleted for the worker. An image with a changed stage is queued by its newest decision.
    """
    with db.writing() as sql:
        for done, image_id in enumerate(sorted(image_ids)):
            newest = "SELECT coalesce(max(id), 0) FROM decision WHERE image_id = ?"
            derivation.rebuild_image(sql, image_id, sql.execute(newest, [image_id]).fetchone()[0])
            if progress and done % IMAGES_PER_PROGRESS == 0:
                progress(done, len(image_ids))
        implied_cells.derive(sql)
        auto_accepted.return_displaced_cells(sql)
        for table in ("accepted", "lease"):
            sql.execute(f"DELETE FROM {table} WHERE class_id IN (SELECT id FROM class WHERE archived = 1)")
        sql.execute("DELETE FROM tally")
        sql.execute(f"INSERT INTO tally (kind, one, two, n) {_COUNT_TALLIES_SQL}")
        if project_events.find_invalid_rows(db):
            project_events.repair(db)
        if near_duplicate_groups.find_invalid_groups(db):
            near_duplicate_groups.delete_groups(db)


def _compare_tables(copy: sqlite3.Connection, name: str, expected: str, stored: str) -> list[str]:
    def describe_rows(one: str, other: str, what: str) -> list[str]:
        rows = copy.execute(
            f"SELECT * FROM (SELECT * FROM ({one}) EXCEPT SELECT * FROM ({other})) LIMIT {MAX_LISTED_DIFFERENCES}"
        )
        return [f"{name}: {row} {what}" for row in sorted(rows.fetchall(), key=repr)]

    return [*describe_rows(expected, stored, "is missing"), *describe_rows(stored, expected, "follows from nothing")]


def _copy_database(db: Database) -> sqlite3.Connection:
    copy = sqlite3.connect("", isolation_level=None)  # a temporary file, removed when it is closed
    with db.reading() as sql:
        sql.conn.backup(copy)
    copy.execute(f"PRAGMA cache_size = -{COPY_CACHE_KB}")
    return copy


def _rebuild_copy(copy: sqlite3.Connection, progress: ProgressCallback | None) -> None:
    sql = sqlite_utils.Database(copy)
    copy.execute("BEGIN")
    copy.execute("DELETE FROM label")
    image_ids = [row[0] for row in copy.execute("SELECT id FROM image").fetchall()]
    for done, image_id in enumerate(image_ids):
        derivation.rebuild_image(sql, image_id, 0)
        if progress and done % IMAGES_PER_PROGRESS == 0:
            progress(done, len(image_ids))
