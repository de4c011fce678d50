"""Storing what was staged: one transaction of set-based statements, so that nothing is ever half imported.

It gives what decisions.decide gives row by row: explicit answers image by image and class by class, then one "nothing
else here" for each image of which the source names all that is present. The triggers that keep tallies are dropped for
the transaction, and the tallies are changed by counts: a trigger a row takes three times as long as the row. Nobody
else can write meanwhile, and readers see what was before.
"""

import json
import secrets
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.records import ABSENT
from annotator.settings import IMPORTER
from annotator.store import class_changes, class_facts, classes
from annotator.store.archived import COUNT_ACTIVE
from annotator.store.attributes import import_attributes
from annotator.store.database import Database, new_id
from annotator.store.history import COMPLETE, LABELED
from annotator.store.staged_cells import CELLS, IMPLIED_HELD, OTHERS, REMARK_KNOWN, covers_all
from annotator.store.staging import Staging
from annotator.store.versions import class_version

CACHE_KB = 100_000  # of the connection while it imports: pages that do not fit are written several times
TRIGGERS = (
    *("decision_added", "decision_undone", "label_added", "label_changed", "label_removed", "image_moved"),
    "accepted_answered",
)


@dataclass(frozen=True)
class Source:
    """Where an import comes from, and who asked for it: the columns of `import`. uuid: a name for this import."""

    path: str
    format: str
    annotator: str
    sha256: str = ""
    uuid: str = field(default_factory=lambda: secrets.token_hex(16))


@dataclass(frozen=True)
class Imported:
    """What an import stored. images: that it added to the project; completed: "nothing else here" that it stored."""

    id: int
    images: int
    classes: Sequence[str]
    answers: int
    replaced: int
    completed: int
    attributes: int
    remarks: int


def commit(
    staging: Staging,
    db: Database,
    source: Source,
    *,
    replace: bool = False,
    replace_imports: bool | None = None,
    new_images: Sequence[int] = (),
    version: int | None = None,
) -> Imported:
    """Store everything that is staged, in one transaction; names are resolved and cells built before.

    replace            answers of people that differ are replaced; otherwise they stay
    replace_imports    the same of answers that an earlier import gave; None: as `replace`
    new_images         ids of the images that were registered for this import
    version            class_version when names were resolved; None: as it is

    Raises AnnotatorError when classes were changed since: the import is to be prepared again.
    """
    conditions = [OTHERS] if replace else []
    conditions += [f"NOT {OTHERS}"] if (replace if replace_imports is None else replace_imports) else []
    over = " OR ".join(conditions) or "0"
    with _prepared(staging, db) as sql, db.writing():
        if version is not None and class_version(db) != version:
            raise AnnotatorError("Classes were changed while the import was prepared. Nothing was stored; try again.")
        first = _newest(sql)
        added, change, came = _add_classes(sql, db, source.annotator, staging)
        import_id = new_id(
            sql.execute(
                """INSERT INTO import (uuid, source, sha256, format, annotator, imported_at, counts, class_change)
                VALUES (?, ?, ?, ?, ?, ?, '{}', ?)""",
                [source.uuid, source.path, source.sha256, source.format, source.annotator, time.time(), change],
            )
        )
        with without_triggers(sql, _cells(sql)):
            replaced = _answer(sql, over, f"import-{import_id}-{secrets.token_hex(3)}")
            dones = "SELECT count(*) FROM decision WHERE id > ? AND action = 'done'"
            completed: int = sql.execute(dones, [first]).fetchone()[0]
            answers = _newest(sql) - first - completed
            _follow(sql, first)
        attributes = import_attributes(sql, import_id, replace)
        remarks = _remark(sql, f"import-{import_id}-{secrets.token_hex(3)}", replace)
        sql.conn.executemany(
            "INSERT INTO import_image (import_id, image_id) VALUES (?, ?)", [(import_id, one) for one in new_images]
        )
        last = _newest(sql)
        done = Imported(import_id, len(new_images), added, answers, replaced, completed, attributes, remarks)
        counts = {name: value for name, value in done.__dict__.items() if name not in ("id", "classes")}
        sql.execute(
            "UPDATE import SET counts = ?, first_decision = ?, last_decision = ? WHERE id = ?",
            [
                json.dumps(counts | {"classes": len(added), "class_ids": came}),
                *((first + 1, last) if last > first else (None, None)),
                import_id,
            ],
        )
    return done


@contextmanager
def _prepared(staging: Staging, db: Database) -> Generator[sqlite_utils.Database]:
    with staging.attached(db) as sql, large_transaction(sql):
        yield sql


@contextmanager
def large_transaction(sql: sqlite_utils.Database) -> Generator[None]:
    """A larger cache, and no check of foreign keys, which the joins below cannot break."""
    (cache,) = sql.execute("PRAGMA cache_size").fetchone()
    sql.conn.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    sql.conn.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        sql.conn.execute("PRAGMA foreign_keys = ON")
        sql.conn.execute(f"PRAGMA cache_size = {cache}")


@contextmanager
def without_triggers(sql: sqlite_utils.Database, cells: int) -> Generator[None]:
    """Inside a transaction: no trigger runs for a row of decisions and labels. If it fails, they are there again
    because the transaction is rolled back.

    cells    how many labels change, about: when they are most of all labels, their index is made anew at the end, which
             takes half as long as keeping it up to date
    """
    labels = sql.execute("SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'label'").fetchone()[0]
    names = [*TRIGGERS, *(["label_class"] if cells > max(labels / 2, 10_000) else [])]
    marks = ",".join("?" * len(names))
    rows = sql.execute(f"SELECT type, name, sql FROM sqlite_master WHERE name IN ({marks})", names)
    dropped: list[tuple[str, str, str]] = rows.fetchall()
    for kind, name, _ in dropped:
        sql.execute(f"DROP {kind} {name}")
    yield
    for _, _, statement in dropped:
        sql.execute(statement)


def _cells(sql: sqlite_utils.Database) -> int:
    return sql.execute(
        f"SELECT (SELECT count(*) FROM staged.cell) + (SELECT count(*) FROM staged.closed) * ({COUNT_ACTIVE})"
    ).fetchone()[0]


def _newest(sql: sqlite_utils.Database) -> int:
    return sql.execute("SELECT coalesce(max(id), 0) FROM decision").fetchone()[0]


def _add_classes(
    sql: sqlite_utils.Database, db: Database, by: str, staging: Staging
) -> tuple[list[str], int | None, list[int]]:
    """Add the classes that the project does not have, in the order of the source's list, others by name; bring back
    those that were archived when an import was taken back.

    returns    the names that were added, the change in the history of classes, and the ids of both kinds
    """
    back = "SELECT class_id FROM staged.target WHERE class_id IN (SELECT id FROM class WHERE archived = 1)"
    ids: list[int] = [row[0] for row in sql.execute(back).fetchall()]
    if ids:
        class_changes.restore(db, by, ids)
    rows: list[tuple[str, str]] = sql.execute(
        """SELECT t.name, coalesce(max(CASE WHEN c.name = t.name THEN c.description END), '') FROM staged.target t
        JOIN staged.class c ON c.target = t.id WHERE t.class_id IS NULL
        GROUP BY t.id ORDER BY max(c.is_listed) DESC, min(CASE WHEN c.is_listed THEN c.id END), t.name"""
    ).fetchall()
    if not rows:
        return [], None, ids
    added = classes.add_classes(db, rows, by)
    sql.execute(
        "UPDATE staged.target SET class_id = (SELECT id FROM class c WHERE c.name = target.name) WHERE class_id IS NULL"
    )
    change, after = sql.execute("SELECT id, after FROM class_change ORDER BY id DESC LIMIT 1").fetchone()
    new = [*map(int, json.loads(after))]
    name_of = classes.names(db)
    facts = {one: staging.class_facts[name_of[one]] for one in new if name_of[one] in staging.class_facts}
    if facts:
        class_facts.give(db, by, facts)
    return added, change, [*ids, *new]


def _answer(sql: sqlite_utils.Database, over: str, name: str) -> int:
    """Append the decisions; returns how many replace an answer.

    over    which labels d are replaced, as SQL
    """
    values = {"name": name, "at": time.time(), "by": IMPORTER}
    first = _newest(sql)
    done = covers_all(sql)
    if not done:  # some class is not the source's: absent is said of those that are
        sql.execute(
            f"""INSERT INTO staged.cell SELECT z.image_id, t.id, {ABSENT}, NULL, 0, 0, 0
            FROM staged.closed z CROSS JOIN staged.target t WHERE true ON CONFLICT DO NOTHING"""
        )
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, decided_at)
        SELECT :name || ':' || x.image_id || '-' || t.class_id, 'label', x.image_id, t.class_id, x.state, 'import', :by,
            :at {CELLS} LEFT JOIN label l ON l.image_id = x.image_id AND l.class_id = t.class_id
            LEFT JOIN decision d ON d.id = l.decision_id
        WHERE NOT x.is_filled AND x.image_id > 0 AND (l.state IS NULL OR (l.state != x.state AND ({over})))
        ORDER BY x.image_id, x.target""",
        values,
    )
    if done:
        _answer_rest(sql, over, values)
    sql.execute(
        """INSERT INTO origin (decision_id, source, annotator, decided_at)
        SELECT d.id, coalesce(w.source, ''), coalesce(w.annotator, ''), g.at FROM decision d
        JOIN staged.target t ON t.class_id = d.class_id
        JOIN staged.cell x ON x.image_id = d.image_id AND x.target = t.id
        JOIN staged.given g ON g.id = x.given LEFT JOIN staged.who w ON w.id = g.who
        WHERE d.id > ? AND d.action = 'label' AND (g.who OR g.at NOT NULL) ORDER BY d.id""",
        [first],
    )
    return sql.execute(
        """SELECT count(*) FROM decision d JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id
        WHERE d.id > ? AND d.action = 'label'""",
        [first],
    ).fetchone()[0]


def _answer_rest(sql: sqlite_utils.Database, over: str, values: Mapping[str, object]) -> None:
    """The classes that the source does not name on images of which it names all."""
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, decided_at)
        SELECT :name || ':' || z.image_id || '-' || t.class_id, 'label', z.image_id, t.class_id, {ABSENT}, 'import',
            :by, :at {IMPLIED_HELD} AND l.state != {ABSENT} AND ({over}) ORDER BY z.image_id, t.id""",
        values,
    )
    # Cells that were filled in are nobody's answer: of such images each class is answered by itself.
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, decided_at)
        SELECT :name || ':' || z.image_id || '-' || t.class_id, 'label', z.image_id, t.class_id, {ABSENT}, 'import',
            :by, :at FROM (SELECT DISTINCT z.image_id FROM staged.closed z JOIN staged.cell f ON f.image_id = z.image_id
                WHERE f.is_filled) z CROSS JOIN staged.target t
        WHERE NOT EXISTS (SELECT 1 FROM staged.cell x WHERE x.image_id = z.image_id AND x.target = t.id)
            AND NOT EXISTS (SELECT 1 FROM label l WHERE l.image_id = z.image_id AND l.class_id = t.class_id)
        ORDER BY z.image_id, t.id""",
        values,
    )
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, source, annotator, decided_at)
        SELECT :name || ':' || z.image_id, 'done', z.image_id, 'import', :by, :at FROM staged.closed z
        WHERE z.image_id > 0
        AND NOT EXISTS (SELECT 1 FROM staged.cell f WHERE f.image_id = z.image_id AND f.is_filled)
        AND (SELECT count(*) FROM label l WHERE l.image_id = z.image_id)
            + (SELECT count(*) FROM staged.cell x JOIN staged.target t ON t.id = x.target WHERE x.image_id = z.image_id
                AND NOT EXISTS (SELECT 1 FROM label l WHERE l.image_id = z.image_id AND l.class_id = t.class_id))
            < ({COUNT_ACTIVE}) ORDER BY z.image_id""",
        values,
    )


def _follow(sql: sqlite_utils.Database, first: int) -> None:
    """Labels, stages, auto-accepted cells and tallies after decisions newer than `first`, as history.py has them."""
    labels: dict[tuple[object, object], int] = {}

    def count(sign: int, query: str) -> None:
        for class_id, state, cells in sql.execute(query, [first]).fetchall():
            labels[class_id, state] = labels.get((class_id, state), 0) + sign * cells

    new = "decision d WHERE d.id > ? AND d.action = 'label'"
    held = new.replace("WHERE", "JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id WHERE")
    count(-1, f"SELECT l.class_id, l.state, count(*) FROM {held} GROUP BY 1, 2")
    count(1, f"SELECT d.class_id, d.state, count(*) FROM {new} GROUP BY 1, 2")
    sql.execute(
        f"""INSERT INTO label (image_id, class_id, state, decision_id) SELECT image_id, class_id, state, id FROM {new}
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [first],
    )
    closed = "decision d WHERE d.id > ? AND d.action = 'done'"
    count(1, f"SELECT c.id, {ABSENT}, (SELECT count(*) FROM {closed}) FROM class c WHERE c.archived = 0")
    count(
        -1,
        f"""SELECT l.class_id, {ABSENT}, count(*)
        FROM {closed.replace("WHERE", "JOIN label l ON l.image_id = d.image_id WHERE")} GROUP BY 1""",
    )
    sql.execute(
        f"""INSERT INTO label (image_id, class_id, state, decision_id) SELECT d.image_id, c.id, {ABSENT}, d.id
        FROM decision d CROSS JOIN class c WHERE d.id > ? AND d.action = 'done' AND c.archived = 0
        ON CONFLICT DO NOTHING""",
        [first],
    )
    add_to_tallies(sql, (("label", class_id, state, cells) for (class_id, state), cells in labels.items()))
    sql.execute(
        """DELETE FROM accepted WHERE EXISTS (SELECT 1 FROM label l WHERE l.image_id = accepted.image_id
        AND l.class_id = accepted.class_id AND l.decision_id > ?)""",
        [first],
    )
    _set_stages(sql, first)
    count_decisions(sql, first + 1, _newest(sql), 1)


def _set_stages(sql: sqlite_utils.Database, first: int) -> None:
    sql.execute(
        f"""CREATE TEMP TABLE staged_stage AS SELECT d.image_id, max(d.id) AS newest, i.stage AS before, CASE
            WHEN (SELECT count(*) FROM label l WHERE l.image_id = d.image_id) >= ({COUNT_ACTIVE})
            THEN {COMPLETE} ELSE {LABELED} END AS stage
        FROM decision d JOIN image i ON i.id = d.image_id WHERE d.id > ? GROUP BY d.image_id""",
        [first],
    )
    write_stages(sql)


def write_stages(sql: sqlite_utils.Database) -> None:
    """Write the stages of temp.staged_stage (image_id, newest, before, stage) and count them; drops the table."""
    sql.execute(
        """UPDATE image SET stage = s.stage, stage_decision = s.newest FROM temp.staged_stage s
        WHERE s.image_id = image.id"""
    )
    moved = sql.execute("SELECT before, stage, count(*) FROM temp.staged_stage GROUP BY 1, 2").fetchall()
    add_to_tallies(sql, (("stage", before, "", -images) for before, _, images in moved))
    add_to_tallies(sql, (("stage", stage, "", images) for _, stage, images in moved))
    sql.execute("DROP TABLE temp.staged_stage")


def count_decisions(sql: sqlite_utils.Database, low: int, high: int, sign: int) -> None:
    """Count decisions low .. high of imports in the tallies, or take them out of them, as the triggers do: the view
    `counted`, a row at a time, takes half as long as storing them."""
    query = "SELECT action, source, annotator, count(*) FROM decision WHERE id BETWEEN ? AND ? GROUP BY 1, 2, 3"
    for action, source, annotator, many in sql.execute(query, [low, high]).fetchall():
        is_answer = action in ("label", "done")
        changes = [("annotator", annotator, "", sign * many)] if is_answer else []
        add_to_tallies(sql, [*changes, ("source", source if is_answer else action, "", sign * many)])


def add_to_tallies(sql: sqlite_utils.Database, changes: Iterable[tuple[object, object, object, int]]) -> None:
    """Change tallies: kind, one, two and by how much."""
    sql.conn.executemany(
        "INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + excluded.n",
        [change for change in changes if change[3]],
    )


def _remark(sql: sqlite_utils.Database, name: str, replace: bool) -> int:
    """Append flags and comments that the images do not have yet, with who wrote them; an image has one flag."""
    first = _newest(sql)
    flagged = """r.kind = 'flag' AND '' != coalesce((SELECT d.note FROM decision d WHERE d.image_id = i.image_id
        AND d.action = 'flag' AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)
        ORDER BY d.id DESC LIMIT 1), '')"""
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, note, source, annotator, decided_at)
        SELECT ? || ':note-' || r.id, r.kind, i.image_id, r.text, 'import', ?, ?
        FROM staged.remark r JOIN staged.item i ON i.id = r.item WHERE i.image_id > 0 AND NOT {REMARK_KNOWN}
        {"" if replace else f"AND NOT ({flagged})"} GROUP BY i.image_id, r.kind, r.text HAVING r.id = min(r.id)
        ORDER BY r.id""",
        [name, IMPORTER, time.time()],
    )
    sql.execute(
        """INSERT INTO origin (decision_id, source, annotator, decided_at)
        SELECT d.id, '', r.annotator, r.at FROM decision d
        JOIN staged.remark r ON r.id = CAST(substr(d.uuid, instr(d.uuid, ':note-') + 6) AS INTEGER)
        WHERE d.id > ? AND (r.annotator != '' OR r.at NOT NULL)""",
        [first],
    )
    return _newest(sql) - first
