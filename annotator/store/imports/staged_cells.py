"""Comparison of a staged source with the project, cell by cell, before an import."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import sqlite_utils

from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT, STATE_NAMES, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.images.name_kinds import MATCH_KINDS
from annotator.store.images.name_matching import SKIPPED_REASON
from annotator.store.imports.staged_names import NEW, RESTORED
from annotator.store.imports.staging import Staging
from annotator.store.labels import event_labels
from annotator.store.labels.archived_classes import IS_ACTIVE_CLASS_SQL

MAX_EXAMPLES = 5

CELLS_SQL = "FROM staged.cell x JOIN staged.target t ON t.id = x.target"
ANSWERS_WITH_LABELS_SQL = f"""{CELLS_SQL} LEFT JOIN label l ON l.image_id = x.image_id AND l.class_id = t.class_id
    LEFT JOIN decision d ON d.id = l.decision_id WHERE NOT x.is_filled"""
"""Every answer of the source with the label that the cell has: l.state NULL where it has none."""
IMPLIED_LABELS_SQL = """FROM staged.closed z JOIN label l ON l.image_id = z.image_id
    JOIN staged.target t ON t.class_id = l.class_id JOIN decision d ON d.id = l.decision_id
    LEFT JOIN staged.cell x ON x.image_id = l.image_id AND x.target = t.id WHERE x.image_id IS NULL"""
"""Labels of cells that the source calls absent by naming all that is present."""
IS_BY_PERSON_SQL = "d.source NOT IN ('import')"
"""Of a label that a person gave."""


@dataclass(frozen=True)
class Tally:
    """A number of cases, with the first few as example texts."""

    count: int = 0
    examples: Sequence[str] = ()


@dataclass(frozen=True)
class StagedClass:
    """A class name in an import source, and the project class that it is matched to."""

    name: str
    # name of the project's class, or "" if omitted
    target: str
    how: str
    # number of answered cells, or of answered images if omitted
    answers: int


@dataclass(frozen=True)
class ImportPreview:
    """The effects that an import would have."""

    items: int
    images_known: int
    images_new: Tally
    # images whose files are in neither source nor project
    images_unknown: Tally
    # images rejected at registration
    images_skipped: Tally
    # source files with the content of a project image
    copies: int
    classes: Sequence[StagedClass]
    answers_new: int
    answers_known: int
    # conflicts_with_people, conflicts_with_imports: answers that contradict labels of annotators or imports
    conflicts_with_people: Tally
    conflicts_with_imports: Tally
    # images whose present classes are all named by the source
    completed: int
    # omitted answers
    left_out: int
    # omitted cells, filled by a model or assumption in the source
    filled: int
    scores: int
    attributes_new: int
    attributes_known: int
    # fields with another value in the project
    attributes_other: Tally
    remarks_new: int
    remarks_known: int
    warnings: Sequence[str] = ()
    # inexact match kind -> image names
    found_by: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    # name -> reason, of classes to be mapped first. Their answers are omitted
    unclear: Mapping[str, str] = field(default_factory=dict[str, str])
    event_labels: int = 0

    @property
    def has_changes(self) -> bool:
        """Return whether the import changes anything, also after mapping unclear names."""
        new = (len(self.unclear), self.images_new.count, self.answers_new, self.attributes_new, self.remarks_new)
        conflicts = (self.conflicts_with_people, self.conflicts_with_imports, self.attributes_other)
        added = any(class_.how in (NEW, RESTORED) for class_ in self.classes)
        return added or self.event_labels > 0 or any(new) or any(conflict.count for conflict in conflicts)


def build(staging: Staging, db: Database, note: Callable[[str], None]) -> None:
    """Compute the answer of the import source per cell of the project (`note` receives conflicts)."""
    with staging.attach(db) as sql:
        sql.execute("DELETE FROM staged.cell")
        sql.execute("DELETE FROM staged.closed")
        sql.execute(
            """INSERT INTO staged.cell SELECT i.image_id, c.target, g.state, g.id, g.who, coalesce(w.is_filled, 0), 0,
                i.answered FROM staged.given g JOIN staged.item i ON i.id = g.item JOIN staged.class c ON c.id = g.class
            LEFT JOIN staged.who w ON w.id = g.who WHERE i.image_id NOT NULL AND c.target NOT NULL
            ORDER BY i.image_id, c.target, g.id
            ON CONFLICT (image_id, target) DO UPDATE SET
                given = iif(who = 0, excluded.given, given), who = iif(who = 0, excluded.who, who),
                is_said = is_said OR excluded.is_said,
                is_filled = is_filled OR excluded.is_filled, is_clash = is_clash OR state != excluded.state"""
        )
        sql.execute(
            """INSERT INTO staged.closed SELECT DISTINCT image_id FROM staged.item
            WHERE (exhaustive OR (answered AND ?)) AND image_id NOT NULL ORDER BY image_id""",
            [staging.names_all],
        )
        changed = _overrule_side_files(sql)
        for cell in _iterate_clashes(sql):  # safe: the updates change no column of its WHERE clause
            winner = _choose_winner(cell)
            changed += winner is not None and any(not row["answered"] for row in cell)
            if winner is None:
                note(_describe_clash(staging, cell))
            else:
                sql.execute(
                    "UPDATE staged.cell SET state = ?, given = ?, who = ? WHERE image_id = ? AND target = ?",
                    [winner["state"], winner["id"], winner["who"], winner["image_id"], winner["target"]],
                )
        for clash in _iterate_implied_clashes(sql):
            note(_describe_implied_clash(staging, clash))
        if changed:
            differ = (
                f"{format_count(changed, 'answer differs', 'answers differ')} from what the file of their origin says"
            )
            staging.warnings.append(f"{differ}: that of the source counts.")


def _overrule_side_files(sql: sqlite_utils.Database) -> int:
    """Set present cells to absent if only unanswered items say so and a complete answered item does not. Count them."""
    return sql.execute(
        f"""UPDATE staged.cell SET state = {ABSENT}, given = NULL, who = 0 WHERE state = {PRESENT} AND NOT is_said
        AND NOT is_filled AND image_id IN (SELECT image_id FROM staged.item WHERE exhaustive AND answered)"""
    ).rowcount


def _iterate_clashes(sql: sqlite_utils.Database) -> Iterator[list[dict[str, Any]]]:
    """Yield, for each cell with conflicting answers in the import source, the rows of these answers."""
    rows = sql.query(
        """SELECT g.id, g.state, g.who, g.at, g.class, k.name AS class_name, i.place, i.name, i.answered, x.image_id,
            x.target
        FROM staged.cell x JOIN staged.item i ON i.image_id = x.image_id JOIN staged.given g ON g.item = i.id
        JOIN staged.class k ON k.id = g.class AND k.target = x.target
        WHERE x.is_clash AND NOT x.is_filled ORDER BY x.image_id, x.target, g.id"""
    )
    for _, cell in groupby(rows, lambda row: (row["image_id"], row["target"])):
        yield list(cell)


def _iterate_implied_clashes(sql: sqlite_utils.Database) -> Iterator[dict[str, Any]]:
    """Yield cells that the data of one file answers, but a complete list of the image's classes implies absent."""
    for table in _TEMP_TABLES:
        sql.execute(f"DROP TABLE IF EXISTS temp.{table}")
    sql.execute(
        """CREATE TEMP TABLE several AS SELECT image_id, sum(exhaustive) AS items FROM staged.item
        WHERE image_id NOT NULL AND answered GROUP BY image_id HAVING count(*) > 1 AND max(exhaustive)"""
    )
    if sql.execute("SELECT 1 FROM temp.several LIMIT 1").fetchone():
        # A class that fewer of an image's exhaustive items name than there are is absent by the others.
        sql.execute("CREATE INDEX IF NOT EXISTS staged.item_by_image ON item (image_id)")
        sql.execute("CREATE INDEX IF NOT EXISTS staged.given_by_item ON given (item)")
        sql.execute(
            """CREATE TEMP TABLE named AS SELECT i.image_id, c.target, count(DISTINCT i.id) AS items
            FROM temp.several v JOIN staged.item i ON i.image_id = v.image_id JOIN staged.given g ON g.item = i.id
            JOIN staged.class c ON c.id = g.class
            WHERE i.exhaustive AND i.answered AND c.target NOT NULL GROUP BY 1, 2"""
        )
        sql.execute("CREATE INDEX temp.named_by_cell ON named (image_id, target)")
        sql.execute(
            f"""CREATE TEMP TABLE implied AS SELECT x.image_id, x.target FROM temp.several v
            JOIN staged.cell x ON x.image_id = v.image_id
            LEFT JOIN temp.named n ON n.image_id = x.image_id AND n.target = x.target
            WHERE x.state != {ABSENT} AND x.is_said AND NOT x.is_filled AND NOT x.is_clash
                AND coalesce(n.items, 0) < v.items"""
        )
        names = """SELECT 1 FROM staged.given g JOIN staged.class c ON c.id = g.class
            WHERE g.item = i.id AND c.target = x.target"""
        yield from sql.query(
            f"""SELECT t.name AS class_name, o.place, o.name, g.state, e.place AS other_place, e.name AS other_name
            FROM (SELECT x.image_id, x.target,
                (SELECT min(i.id) FROM staged.item i WHERE i.image_id = x.image_id AND i.exhaustive AND i.answered
                    AND NOT EXISTS ({names})) AS silent,
                (SELECT min(g.id) FROM staged.item i JOIN staged.given g ON g.item = i.id
                    JOIN staged.class c ON c.id = g.class WHERE i.image_id = x.image_id AND i.answered
                    AND c.target = x.target AND g.state != {ABSENT}) AS given FROM temp.implied x) x
            JOIN staged.target t ON t.id = x.target JOIN staged.given g ON g.id = x.given
            JOIN staged.item o ON o.id = g.item JOIN staged.item e ON e.id = x.silent
            ORDER BY max(o.id, e.id), x.target"""
        )
    for table in _TEMP_TABLES:
        sql.execute(f"DROP TABLE IF EXISTS temp.{table}")


_TEMP_TABLES = ("several", "named", "implied")


def _choose_winner(cell: list[dict[str, Any]]) -> dict[str, Any] | None:
    said = [row for row in cell if row["answered"]]
    if 0 < len(said) < len(cell) and len({row["state"] for row in said}) == 1:
        return said[0]
    times = [row["at"] for row in cell]
    by_class = {row["class"]: row["state"] for row in cell}
    if None not in times and len(set(times)) == len(times):
        return max(cell, key=lambda row: row["at"])
    if all(row["state"] == by_class[row["class"]] for row in cell):
        return next(row for state in (PRESENT, UNSURE) for row in cell if row["state"] == state)
    return None


def _describe_clash(staging: Staging, cell: list[dict[str, Any]]) -> str:
    first = cell[0]
    other = next(row for row in cell if row["state"] != first["state"])
    same = "" if other["name"] == first["name"] else ", which is the same picture"
    return (
        f"{staging.format_place(other['place'])}: {other['class_name']!r} is {STATE_NAMES[other['state']]} on "
        f"{other['name']!r}, but {STATE_NAMES[first['state']]} on {first['name']!r} "
        f"({staging.format_place(first['place'])}){same}"
    )


def _describe_implied_clash(staging: Staging, clash: Mapping[str, Any]) -> str:
    same = "" if clash["other_name"] == clash["name"] else ", which is the same picture"
    return (
        f"{staging.format_place(clash['place'])}: {clash['class_name']!r} is {STATE_NAMES[clash['state']]} on "
        f"{clash['name']!r}, but absent on {clash['other_name']!r} ({staging.format_place(clash['other_place'])}){same}"
    )


def compute_preview(staging: Staging, db: Database) -> ImportPreview:
    """Return the effects that the import would have now, after `build`."""
    with staging.attach(db) as sql, db.reading():
        values = sql.execute(
            f"""SELECT coalesce(sum(l.state IS NULL), 0), coalesce(sum(l.state = x.state), 0),
            coalesce(sum(l.state != x.state AND {IS_BY_PERSON_SQL}), 0), coalesce(sum(l.state != x.state AND NOT
            {IS_BY_PERSON_SQL}), 0)
            {ANSWERS_WITH_LABELS_SQL}"""
        ).fetchone()
        implied = sql.execute(
            f"""SELECT count(*), coalesce(sum(l.state = -1), 0), coalesce(sum(l.state != -1 AND {IS_BY_PERSON_SQL}), 0),
            coalesce(sum(l.state != -1 AND NOT {IS_BY_PERSON_SQL}), 0) {IMPLIED_LABELS_SQL}"""
        ).fetchone()
        closed, open_cells = sql.execute(
            """SELECT count(*), count(*) * (SELECT count(*) FROM staged.target)
                - (SELECT count(*) FROM staged.cell WHERE image_id IN (SELECT image_id FROM staged.closed))
            FROM staged.closed"""
        ).fetchone()
        people, imports = (
            Tally(
                values[2 + place] + implied[2 + place],
                _find_conflicts(staging, sql, IS_BY_PERSON_SQL if place == 0 else f"NOT {IS_BY_PERSON_SQL}"),
            )
            for place in range(2)
        )
        staged = _load_staged_classes(sql)
        new = [class_.name for class_ in staged if class_.how == NEW]
        facts = _compare_attributes(staging, sql)
        remarks, known_remarks = sql.execute(
            f"""SELECT count(*), coalesce(sum(is_known), 0) FROM (SELECT {IS_KNOWN_REMARK_SQL} AS is_known FROM
                staged.remark r
            JOIN staged.item i ON i.id = r.item WHERE i.image_id NOT NULL GROUP BY i.image_id, r.kind, r.text)"""
        ).fetchone()
        return ImportPreview(
            staging.items,
            sql.execute("SELECT count(DISTINCT image_id) FROM staged.item WHERE image_id > 0").fetchone()[0],
            Tally(*_count_coming_files(sql)),
            _tally_images(
                staging, sql, f"image_id IS NULL AND substr(reason, 1, {len(SKIPPED_REASON)}) != '{SKIPPED_REASON}'"
            ),
            _tally_images(
                staging, sql, f"image_id IS NULL AND substr(reason, 1, {len(SKIPPED_REASON)}) = '{SKIPPED_REASON}'"
            ),
            sql.execute("SELECT count(*) FROM staged.coming WHERE number > 0").fetchone()[0],
            staged,
            values[0] + open_cells - implied[0],
            values[1] + implied[1],
            people,
            imports,
            closed,
            sql.execute(
                """SELECT count(*) FROM (SELECT DISTINCT coalesce(i.image_id, i.name), g.class FROM staged.given g
                JOIN staged.item i ON i.id = g.item JOIN staged.class c ON c.id = g.class
                WHERE i.image_id IS NULL OR c.target IS NULL)"""
            ).fetchone()[0],
            sql.execute("SELECT count(*) FROM staged.cell WHERE is_filled").fetchone()[0],
            sql.execute("SELECT count(*) FROM staged.score").fetchone()[0],
            *facts,
            remarks - known_remarks,
            known_remarks,
            [*staging.warnings, *classes.find_name_warnings(new, classes.load_classes_by_name(db))],
            count_names_by_kind(staging, sql),
            dict(staging.unclear),
            event_labels.count_new(sql),
        )


IS_KNOWN_REMARK_SQL = f"""EXISTS (SELECT 1 FROM decision d WHERE d.image_id = i.image_id AND d.action = r.kind
    AND d.note = r.text AND {NOT_UNDONE_SQL})"""
"""Of remarks r of items i: whether the image has one with the same text."""


def count_names_by_kind(staging: Staging, sql: sqlite_utils.Database) -> dict[str, Tally]:
    """Return kind of inexact match -> image names matched by it."""
    query = "SELECT kind, count(DISTINCT name) FROM staged.item WHERE kind != '' AND image_id NOT NULL GROUP BY kind"
    counts: dict[str, int] = dict(sql.execute(query).fetchall())
    examples = """SELECT place, name, found FROM staged.item WHERE kind = ? AND image_id NOT NULL GROUP BY name
        ORDER BY min(id) LIMIT ?"""
    return {
        kind: Tally(
            counts[kind],
            [
                f"{staging.format_place(place)}: {name!r} is {found!r}"
                for place, name, found in sql.execute(examples, [kind, MAX_EXAMPLES]).fetchall()
            ],
        )
        for kind in MATCH_KINDS
        if kind in counts
    }


def _tally_images(staging: Staging, sql: sqlite_utils.Database, where: str) -> Tally:
    count = sql.execute(f"SELECT count(DISTINCT name) FROM staged.item WHERE {where}").fetchone()[0]
    rows = sql.execute(
        f"""SELECT min(place), name, reason FROM staged.item WHERE {where} GROUP BY name
        ORDER BY min(id) LIMIT {MAX_EXAMPLES}"""
    ).fetchall()
    said = [f"{staging.format_place(place)}: {name!r}{f': {reason}' if reason else ''}" for place, name, reason in rows]
    return Tally(count, said)


def _count_coming_files(sql: sqlite_utils.Database) -> tuple[int, list[str]]:
    count = sql.execute("SELECT count(*) FROM staged.coming WHERE number < 0").fetchone()[0]
    rows = sql.execute(
        "SELECT path FROM staged.coming WHERE number < 0 ORDER BY number DESC LIMIT ?", [MAX_EXAMPLES]
    ).fetchall()
    return count, [repr(path) for (path,) in rows]


def _load_staged_classes(sql: sqlite_utils.Database) -> list[StagedClass]:
    rows = sql.execute(
        """SELECT c.name, coalesce(t.name, ''), c.how, coalesce(CASE WHEN t.id IS NULL
            THEN (SELECT count(*) FROM (SELECT DISTINCT coalesce(i.image_id, i.name) FROM staged.given g
                JOIN staged.item i ON i.id = g.item WHERE g.class = c.id))
            ELSE n END, 0) FROM staged.class c
        LEFT JOIN staged.target t ON t.id = c.target
        LEFT JOIN (SELECT target, count(*) AS n FROM staged.cell WHERE NOT is_filled GROUP BY target) x
            ON x.target = t.id ORDER BY c.id"""
    ).fetchall()
    return [StagedClass(*row) for row in rows]


def _find_conflicts(staging: Staging, sql: sqlite_utils.Database, whose: str) -> list[str]:
    explicit = sql.execute(
        f"""SELECT (SELECT i.place FROM staged.given g JOIN staged.item i ON i.id = g.item WHERE g.id = x.given),
            m.name, t.name, x.state, l.state, d.annotator
        {ANSWERS_WITH_LABELS_SQL.replace("WHERE", "JOIN image m ON m.id = x.image_id WHERE")}
        AND l.state != x.state AND {whose} LIMIT {MAX_EXAMPLES}"""
    ).fetchall()
    implied = sql.execute(
        f"""SELECT (SELECT i.place FROM staged.item i WHERE i.image_id = z.image_id
            AND (i.exhaustive OR i.answered) ORDER BY i.exhaustive DESC LIMIT 1),
            m.name, t.name, -1, l.state, d.annotator
        {IMPLIED_LABELS_SQL.replace("WHERE", "JOIN image m ON m.id = z.image_id WHERE")}
        AND l.state != -1 AND {whose} LIMIT {MAX_EXAMPLES}"""
    ).fetchall()
    return [
        f"{staging.format_place(place)}: {class_!r} is {STATE_NAMES[state]} on {image!r}, but {annotator} says "
        f"{STATE_NAMES[held]}"
        for place, image, class_, state, held, annotator in [*explicit, *implied][:MAX_EXAMPLES]
    ]


def _compare_attributes(staging: Staging, sql: sqlite_utils.Database) -> tuple[int, int, Tally]:
    joined = """FROM staged.attribute a JOIN staged.item i ON i.id = a.item
        LEFT JOIN attribute h ON h.image_id = i.image_id AND h.name = a.name WHERE i.image_id NOT NULL"""
    new, known, other = sql.execute(
        f"""SELECT coalesce(sum(h.value IS NULL), 0), coalesce(sum(h.value = a.value), 0),
        coalesce(sum(h.value != a.value), 0) {joined}"""
    ).fetchone()
    rows = sql.execute(
        f"SELECT i.place, i.name, a.name, a.value, h.value {joined} AND h.value != a.value LIMIT {MAX_EXAMPLES}"
    ).fetchall()
    said = [
        f"{staging.format_place(place)}: {name} of {image!r} is {value[:60]!r}, but {held[:60]!r} here"
        for place, image, name, value, held in rows
    ]
    return new, known, Tally(other, said)


def covers_all_classes(sql: sqlite_utils.Database) -> bool:
    """Return whether the import source names all classes of the project."""
    query = (
        f"SELECT 1 FROM class WHERE {IS_ACTIVE_CLASS_SQL} AND id NOT IN (SELECT class_id FROM staged.target WHERE "
        "class_id NOT NULL)"
    )
    return sql.execute(f"{query} LIMIT 1").fetchone() is None
