"""Checking that the derived tables agree with the decisions; for tests and measurements that kill processes.

Labels, stages and annotator disagreements are rebuilt from all decisions in a copy in memory, and tallies are counted.
A million images take minutes, so no page calls this.
"""

import sqlite3
from typing import Any

import sqlite_utils

from annotator.store import history
from annotator.store.database import Database

_FOLLOW = {  # derived tables, and the columns that are compared
    "label": "SELECT image_id, class_id, state, decision_id FROM label",
    "stage": "SELECT id, stage FROM image",
    "contradiction": "SELECT image_id, class_id FROM contradiction",
}
_COUNTED = """SELECT kind, one, two, sum(n) FROM (
    SELECT 'stage' AS kind, stage AS one, '' AS two, count(*) AS n FROM image GROUP BY stage
    UNION ALL SELECT 'label', class_id, state, count(*) FROM label GROUP BY class_id, state
    UNION ALL SELECT 'accepted', class_id, state, count(*) FROM accepted GROUP BY class_id, state
    UNION ALL SELECT kind, one, two, count(*) FROM counted c
        WHERE NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = c.decision_id) GROUP BY kind, one, two
) GROUP BY kind, one, two HAVING sum(n) != 0"""
_OF_ARCHIVED = """SELECT 'auto-accepted' AS kind, image_id, class_id FROM accepted
    UNION ALL SELECT 'leased', image_id, class_id FROM lease"""
_TALLY = "SELECT kind, one, two, n FROM tally WHERE n != 0"


def problems(db: Database) -> list[str]:
    """All inconsistencies, one sentence each; [] when there are none. Raises AnnotatorError for a damaged file.

    Checked are SQLite's own integrity check, foreign keys, tallies against counts, what is left of archived classes,
    and labels, stages and annotator disagreements against a rebuild from the decisions.
    """
    sentences = [f"integrity check: {row[0]}" for row in db.tuples("PRAGMA integrity_check") if row[0] != "ok"]
    if sentences:
        return sentences
    copy = _copy(db)
    sentences = [f"foreign key: {tuple(row)}" for row in copy.execute("PRAGMA foreign_key_check").fetchall()]
    sentences += _differences("tally", set(copy.execute(_COUNTED).fetchall()), set(copy.execute(_TALLY).fetchall()))
    sentences += [
        f"archived class: {row} is still there"
        for row in copy.execute(
            f"SELECT * FROM ({_OF_ARCHIVED}) WHERE class_id IN (SELECT id FROM class WHERE archived = 1)"
        ).fetchall()
    ]
    before = {name: set(copy.execute(statement).fetchall()) for name, statement in _FOLLOW.items()}
    _rebuild(copy)
    for name, statement in _FOLLOW.items():
        sentences += _differences(name, set(copy.execute(statement).fetchall()), before[name])
    return sentences


def _differences(name: str, expected: set[tuple[Any, ...]], stored: set[tuple[Any, ...]]) -> list[str]:
    return [
        *(f"{name}: {row} is missing" for row in sorted(expected - stored, key=repr)),
        *(f"{name}: {row} follows from nothing" for row in sorted(stored - expected, key=repr)),
    ]


def _copy(db: Database) -> sqlite_utils.Database:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    with db.reading() as sql:
        sql.conn.backup(memory)
    return sqlite_utils.Database(memory)


def _rebuild(sql: sqlite_utils.Database) -> None:
    sql.execute("DELETE FROM label")
    for (image_id,) in sql.execute("SELECT id FROM image").fetchall():
        history.rebuild(sql, image_id, 0)
