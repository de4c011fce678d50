"""Past imports of a project, and their undo in one step."""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.store.classes import class_changes
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.images.attributes import undo_attributes
from annotator.store.images.stages import COMPLETE, EXCLUDED, LABELED, SKIPPED, UNTOUCHED
from annotator.store.imports.commit import (
    add_decisions_to_tallies,
    add_to_tallies,
    large_transaction,
    suspend_triggers,
    write_stages,
)
from annotator.store.labels import auto_accepted, implied_cells
from annotator.store.labels.archived_classes import COUNT_ACTIVE_CLASSES_SQL, IS_ACTIVE_CLASS_SQL
from annotator.store.labels.derivation import build_replayed_sql, insert_newest_answers, rebuild_image
from annotator.store.labels.event_labels import remove_events
from annotator.store.pictures.files import escape_path

UNDONE_PROBLEM = "taken back with import"  # the kind of problem of an image that came with an import


@dataclass(frozen=True)
class Import:
    """An import of labels or images."""

    id: int
    source: str
    format: str
    annotator: str
    imported_at: float
    # name -> number stored
    counts: dict[str, Any]
    # unix seconds, or None
    undone_at: float | None
    # annotator, or ""
    undone_by: str


@dataclass(frozen=True)
class ImportUndo:
    """The effects of undoing an import."""

    id: int
    # appended undo decisions
    decisions: int
    # images, images_kept: images withdrawn, and kept because of other decisions
    images: int
    images_kept: int
    archived: Sequence[str]
    # classes kept because of other uses
    kept: Sequence[str]
    # removed or restored fields
    attributes: int
    event_labels: int = 0


def load_imports(db: Database) -> list[Import]:
    """Return all imports, newest first."""
    rows = db.rows(
        """SELECT id, source, format, annotator, imported_at, counts, undone_at, undone_by FROM import
        ORDER BY id DESC"""
    )
    return [Import(**(row | {"counts": json.loads(row["counts"])})) for row in rows]


def find_undone_files(db: Database, folder: Path) -> set[str]:
    """Return a folder's files of undone imports, whose registration restores the images."""
    rows = db.tuples(
        """SELECT f.path FROM image i JOIN file f ON f.image_id = i.id JOIN folder d ON d.id = f.folder_id
        WHERE d.path = ? AND i.problem LIKE ? || '%'""",
        [escape_path(str(folder.resolve())), UNDONE_PROBLEM],
    )
    return {row[0] for row in rows}


class _PreviewRollbackError(Exception):
    """An exception that ends the preview of an undo: it rolls back the changes and carries their counts."""

    def __init__(self, undone: ImportUndo):
        super().__init__()
        self.undone = undone


def preview_undo(db: Database, import_id: int) -> ImportUndo:
    """Return the effects of `undo`, which is run and rolled back. Other writers wait during it."""
    try:
        return undo(db, import_id, "", only_preview=True)
    except _PreviewRollbackError as preview:
        return preview.undone


def undo(db: Database, import_id: int, by: str, *, only_preview: bool = False) -> ImportUndo:
    """Undo an import in one step, including unused classes and unanswered images.

    Importing the source again restores them.

    Args:
        only_preview: Roll back and raise _PreviewRollbackError.

    Raises:
        AnnotatorError: Unknown or undone import, or its classes were merged.
    """
    with large_transaction(db.sql), db.writing() as sql:
        row = sql.execute(
            "SELECT first_decision, last_decision, undone_by, undone_at, counts FROM import WHERE id = ?",
            [import_id],
        ).fetchone()
        if row is None:
            raise AnnotatorError(f"There is no import {import_id}. See: annotator imports {db.paths.project}")
        low, high, undone_by, undone_at, counts = row
        if undone_at is not None:
            raise AnnotatorError(f"Import {import_id} was taken back already, by {undone_by}.")
        low, high = low or 0, high or -1
        _check_not_merged(sql, import_id, low, high)
        first = get_newest_decision_id(sql)
        with suspend_triggers(sql, high - low):
            # Before the undos are appended: decisions undone one by one are no longer in the tallies.
            _subtract_from_tallies(sql, low, high)
            _append_undos(sql, by, low, high, f"import-{import_id}-undo-{secrets.token_hex(3)}")
            one_by_one = _update_derived_tables(sql, first, low, high)
        for image_id, newest in one_by_one:
            rebuild_image(sql, image_id, newest)
        implied_cells.derive(sql)
        facts = undo_attributes(sql, import_id)
        events = remove_events(sql, import_id)
        images, images_kept = _withdraw_images(sql, import_id)
        archived, kept = _archive_unused_classes(sql, db, by, json.loads(counts).get("class_ids", []))
        names: dict[int, str] = dict(sql.execute("SELECT id, name FROM class").fetchall())
        sql.execute(
            "UPDATE import SET undone_at = ?, undone_by = ?, counts = ? WHERE id = ?",
            [time.time(), by, json.dumps(json.loads(counts) | {"archived": archived}), import_id],
        )
        decisions = sql.execute("SELECT count(*) FROM decision WHERE id > ?", [first]).fetchone()[0]
        taken, left = [names[one] for one in archived], [names[one] for one in kept]
        undone = ImportUndo(import_id, decisions, images, images_kept, taken, left, facts, events)
        if only_preview:
            raise _PreviewRollbackError(undone)
    return undone


def _check_not_merged(sql: sqlite_utils.Database, import_id: int, low: int, high: int) -> None:
    rows = sql.execute(
        """SELECT name FROM class WHERE archived = 1 AND merged_into NOT NULL AND archived_since >= ?
        AND EXISTS (SELECT 1 FROM decision d WHERE d.id BETWEEN ? AND ? AND d.class_id = class.id)""",
        [high, low, high],
    ).fetchall()
    if rows:
        listed = ", ".join(repr(name) for (name,) in rows)
        raise AnnotatorError(
            f"Import {import_id} cannot be taken back: {listed} was merged into another class since, which has its "
            "answers now. Take the merging back first (annotator classes undo)."
        )


def _subtract_from_tallies(sql: sqlite_utils.Database, low: int, high: int) -> None:
    add_decisions_to_tallies(sql, low, high, -1)
    alone = f"SELECT d.id FROM decision d WHERE d.id BETWEEN ? AND ? AND d.action != 'undo' AND NOT ({NOT_UNDONE_SQL})"
    for (decision_id,) in sql.execute(alone, [low, high]).fetchall():
        add_decisions_to_tallies(sql, decision_id, decision_id, 1)


def _append_undos(sql: sqlite_utils.Database, by: str, low: int, high: int, name: str) -> None:
    sql.execute(
        f"""INSERT INTO decision (uuid, action, image_id, undoes, source, annotator, decided_at)
        SELECT ? || ':' || d.id, 'undo', d.image_id, d.id, 'import', ?, ? FROM decision d
        WHERE d.id BETWEEN ? AND ? AND d.action != 'undo' AND {NOT_UNDONE_SQL} ORDER BY d.id""",
        [name, by, time.time(), low, high],
    )


def _update_derived_tables(sql: sqlite_utils.Database, first: int, low: int, high: int) -> list[tuple[int, int]]:
    """Update derived tables after undos. Return (image id, newest undo) of images still to rebuild."""
    sql.execute(
        f"""CREATE TEMP TABLE touched AS SELECT d.image_id, max(u.id) AS newest, EXISTS (
            SELECT 1 FROM decision o WHERE o.image_id = d.image_id AND o.id NOT BETWEEN :low AND :high
            AND (o.action IN ('clear', 'done') OR o.class_id IN (SELECT id FROM class WHERE merged_into NOT NULL)
                OR {build_replayed_sql("o")})
        ) AS is_alone FROM decision u JOIN decision d ON d.id = u.undoes
        WHERE u.id > :first AND d.action IN ('label', 'done') GROUP BY d.image_id""",
        {"low": low, "high": high, "first": first},
    )
    labels: dict[tuple[int, int], int] = {}
    for sign in (-1, 1):
        rows = sql.execute(
            """SELECT l.class_id, l.state, count(*) FROM temp.touched t JOIN label l ON l.image_id = t.image_id
            WHERE NOT t.is_alone GROUP BY 1, 2"""
        ).fetchall()
        for class_id, state, cells in rows:
            labels[class_id, state] = labels.get((class_id, state), 0) + sign * cells
        if sign < 0:
            _derive_labels(sql, low, high)
    add_to_tallies(sql, (("label", class_id, state, cells) for (class_id, state), cells in labels.items()))
    skipped = (
        f"EXISTS (SELECT 1 FROM decision d WHERE d.image_id = t.image_id AND d.action = 'skip' AND {NOT_UNDONE_SQL})"
    )
    sql.execute(
        f"""CREATE TEMP TABLE staged_stage AS
        SELECT image_id, iif(stage = {UNTOUCHED}, 0, newest) AS newest, before, stage FROM (
            SELECT t.image_id, t.newest, i.stage AS before, CASE
            WHEN i.stage = {EXCLUDED} THEN {EXCLUDED}
            WHEN answered >= ({COUNT_ACTIVE_CLASSES_SQL}) THEN {COMPLETE} WHEN answered THEN {LABELED}
            WHEN {skipped} THEN {SKIPPED} ELSE {UNTOUCHED} END AS stage
        FROM (SELECT image_id, newest, (SELECT count(*) FROM label l WHERE l.image_id = z.image_id) AS answered
            FROM temp.touched z WHERE NOT is_alone) t JOIN image i ON i.id = t.image_id)"""
    )
    write_stages(sql)
    alone = sql.execute("SELECT image_id, newest FROM temp.touched WHERE is_alone").fetchall()
    sql.execute("DROP TABLE temp.touched")
    return alone


def _derive_labels(sql: sqlite_utils.Database, low: int, high: int) -> None:
    """Derive the labels of images that need no rebuild from the newest remaining answer per cell."""
    sql.execute(
        """DELETE FROM label WHERE decision_id BETWEEN ? AND ?
        AND image_id IN (SELECT image_id FROM temp.touched WHERE NOT is_alone)""",
        [low, high],
    )
    insert_newest_answers(
        sql,
        f"""FROM temp.touched t CROSS JOIN decision d ON d.image_id = t.image_id
        WHERE NOT t.is_alone AND d.id NOT BETWEEN :low AND :high
        AND d.class_id IN (SELECT id FROM class WHERE {IS_ACTIVE_CLASS_SQL})""",
        {"low": low, "high": high},
    )
    auto_accepted.displace_answered_cells(sql, "image_id IN (SELECT image_id FROM temp.touched)")


def _withdraw_images(sql: sqlite_utils.Database, import_id: int) -> tuple[int, int]:
    """Withdraw an import's images without decisions, and return how many were withdrawn and kept."""
    came = "id IN (SELECT image_id FROM import_image WHERE import_id = ?)"
    count = sql.execute(f"SELECT count(*) FROM image WHERE {came}", [import_id]).fetchone()[0]
    taken = sql.execute(
        f"""UPDATE image SET problem = ? WHERE {came} AND problem = '' AND NOT EXISTS (
            SELECT 1 FROM decision d WHERE d.image_id = image.id AND d.action != 'undo' AND {NOT_UNDONE_SQL})""",
        [f"{UNDONE_PROBLEM} {import_id}", import_id],
    ).rowcount
    # Other images are passed to the imports that decided about them, and withdrawn if those are taken back.
    sql.execute(
        f"""INSERT OR IGNORE INTO import_image (import_id, image_id) SELECT DISTINCT i.id, d.image_id
        FROM import_image c JOIN decision d ON d.image_id = c.image_id AND d.source = 'import' AND {NOT_UNDONE_SQL}
        JOIN import i ON i.undone_at IS NULL AND i.id != c.import_id
            AND d.id BETWEEN i.first_decision AND i.last_decision
        WHERE c.import_id = ?""",
        [import_id],
    )
    return taken, count - taken


def _archive_unused_classes(
    sql: sqlite_utils.Database, db: Database, by: str, added: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Archive the classes that only this import used. Return their ids and those of its classes still in use."""
    archived = {row[0] for row in sql.execute("SELECT id FROM class WHERE archived = 1")}
    used = {
        class_id
        for class_id in added
        if sql.execute("SELECT 1 FROM label WHERE class_id = ? LIMIT 1", [class_id]).fetchone()
        or sql.execute("SELECT 1 FROM event_label WHERE class_id = ? LIMIT 1", [class_id]).fetchone()
        or sql.execute(
            f"SELECT 1 FROM decision d WHERE d.class_id = ? AND d.action IN ('label', 'clear') AND {NOT_UNDONE_SQL} "
            "LIMIT 1",
            [class_id],
        ).fetchone()
    }
    unused = [class_id for class_id in added if class_id not in used | archived]
    for class_id in used:  # passed to the imports that use it, and archived if those are taken back
        users = sql.execute(
            f"""SELECT DISTINCT i.id, i.counts FROM import i JOIN decision d ON d.class_id = ? AND {NOT_UNDONE_SQL}
            AND d.id BETWEEN i.first_decision AND i.last_decision WHERE i.undone_at IS NULL""",
            [class_id],
        ).fetchall()
        for user, counts in users:
            known = json.loads(counts)
            known["class_ids"] = sorted({*known.get("class_ids", ()), class_id})
            sql.execute("UPDATE import SET counts = ? WHERE id = ?", [json.dumps(known), user])
    if unused:
        class_changes.archive(db, by, unused)
    return unused, sorted(used)
