"""Declaration, preview, removal and undo of class relations. Each change is one transaction with all implied cells."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlite_utils

from annotator.errors import AnnotatorError, combine_problems
from annotator.humanize import format_count
from annotator.records import PRESENT
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL, build_not_undone_sql
from annotator.store.labels import implied_cells
from annotator.store.labels.derivation import build_replayed_sql, rebuild_image
from annotator.store.relations import relation_edits
from annotator.store.relations.implication import Implication, Relations, find_problems
from annotator.store.relations.relation_edits import EXACTLY_ONE, GROUP_KINDS, IS_A, Declaration, Relation

MAX_GROUP_CLASSES = 500  # what follows from a group grows with the square of its classes


@dataclass(frozen=True)
class RelationEffect:
    """The effect of a relation change on existing answers, as numbers of cells."""

    # present, absent: implied cells
    present: int
    absent: int
    # answers that conflict with implications
    contradicted: int
    # cells answered by "nothing else here" that lose this answer to the change
    reopened: int


class _PreviewRollbackError(Exception):
    pass


def load_relations(db: Database) -> Relations:
    with db.reading() as sql:
        return read_relations(sql)


def read_relations(sql: sqlite_utils.Database) -> Relations:
    active = sql.execute("SELECT id FROM class WHERE archived = 0").fetchall()
    return Relations(tuple(relation_edits.load_active(sql)), frozenset(row[0] for row in active))


def declare(db: Database, declarations: Sequence[Declaration], by: str, uuid: str | None = None) -> RelationEffect:
    """Declare class relations, all or nothing, and return their effect.

    Args:
        uuid: From the client, so that a resend changes nothing.

    Raises:
        AnnotatorError: Lists all cycles, impossible classes, single-class groups and used names.
    """
    return _apply_change(db, lambda sql: _append_declarations(sql, declarations, by, uuid), uuid)


def preview_declaration(db: Database, declarations: Sequence[Declaration]) -> RelationEffect:
    """Return the effect or errors of `declare`, without changes."""
    effects: list[RelationEffect] = []
    with suppress(_PreviewRollbackError), db.writing(right=Right.OWN) as sql:
        _append_declarations(sql, declarations, "", None)
        effects.append(_derive_implications(sql))
        raise _PreviewRollbackError
    return effects[0]


def remove(db: Database, relation_id: int, by: str, uuid: str | None = None) -> RelationEffect:
    """Remove a class relation with its implications. Raises AnnotatorError if it is unknown."""

    def append(sql: sqlite_utils.Database) -> None:
        if relation_id not in {relation.id for relation in relation_edits.load_active(sql)}:
            raise AnnotatorError(f"There is no relation {relation_id}; perhaps somebody removed it meanwhile.")
        relation_edits.append_removal(sql, relation_id, by, uuid)

    return _apply_change(db, append, uuid)


def undo(db: Database, by: str, uuid: str | None = None) -> str | None:
    """Undo the newest change of relations and describe it (None if `uuid` is stored). Raises AnnotatorError if none."""
    said: list[str] = []

    def append(sql: sqlite_utils.Database) -> None:
        newest, names = relation_edits.load_newest_edits(sql), _load_class_names(sql)
        if not newest:
            raise AnnotatorError("Nobody has declared relations of classes, so there is nothing to undo.")
        for edit_id, removed in newest:
            words = describe_relation(relation_edits.load_relation(sql, removed or edit_id).declared, names)
            said.append(f"the removal of {words}" if removed else words)
        relation_edits.append_undo(sql, [edit_id for edit_id, _ in newest], by, uuid)
        _check_relations(sql, [])

    _apply_change(db, append, uuid)
    return "; ".join(said) if said else None


def update_after_class_change(sql: sqlite_utils.Database) -> None:
    """Rebuild the implied cells of the project after classes were archived or restored."""
    if relation_edits.load_active(sql):
        _derive_implications(sql)


def describe_relation(declared: Declaration, names: dict[int, str]) -> str:
    """Return a relation in words: "time: exactly one of day, night"."""
    words = [names.get(one, f"class {one}") for one in declared.class_ids]
    if declared.kind == IS_A:
        return f"{words[0]} is a kind of {words[1]}"
    how = "exactly one" if declared.kind == EXACTLY_ONE else "at most one"
    name = f"{declared.name}: " if declared.name else ""
    return f"{name}{how} of {', '.join(words)}"


def describe_effect(effect: RelationEffect, are: str) -> str:
    """Return sentences about the effect of a relation change, with the verb `are` ("would be")."""
    told = f"{format_count(effect.present, 'cell')} {are} implied to be present, {effect.absent:,} to be absent."
    if effect.reopened:
        told += (
            f' {format_count(effect.reopened, "cell")} that "nothing else here" answered {are} implied or open again.'
        )
    if effect.contradicted:
        told += f" {format_count(effect.contradicted, 'answer')} and later ones contradict each other."
    return told


def find_contradictions(db: Database, limit: int) -> list[tuple[str, str, str, str]]:
    """Return conflicting answers: (image, class, other class, relation in words)."""
    with db.reading() as sql:
        names = _load_class_names(sql)
        held = {relation.id: relation.declared for relation in relation_edits.load_active(sql)}
        found = implied_cells.find_contradicted_answers(sql, limit=limit)
        image = "SELECT name FROM image WHERE id = ?"
        return [
            (
                sql.execute(image, [image_id]).fetchone()[0],
                names[class_id],
                names[from_id],
                describe_relation(held[relation_id], names),
            )
            for image_id, class_id, _, _, relation_id, from_id in found
        ]


def _load_class_names(sql: sqlite_utils.Database) -> dict[int, str]:
    return dict(sql.execute("SELECT id, name FROM class").fetchall())


def _append_declarations(
    sql: sqlite_utils.Database, declarations: Sequence[Declaration], by: str, uuid: str | None
) -> None:
    held = {_build_key(relation.declared) for relation in relation_edits.load_active(sql)}
    new = [one for one in dict.fromkeys(declarations) if _build_key(one) not in held]
    relation_edits.append(sql, new, by, uuid)
    _check_relations(sql, new)


def _build_key(declared: Declaration) -> tuple[object, ...]:
    """Return the key by which two declarations of a relation are equal, ignoring group name and class order."""
    return declared.kind, declared.class_ids if declared.kind == IS_A else frozenset(declared.class_ids)


def _check_relations(sql: sqlite_utils.Database, new: Sequence[Declaration]) -> None:
    names = _load_class_names(sql)
    found = [
        f"The group {one.name!r} has {len(one.class_ids):,} classes; {MAX_GROUP_CLASSES} are the most."
        for one in new
        if one.kind in GROUP_KINDS and len(one.class_ids) > MAX_GROUP_CLASSES
    ]
    found = found or find_problems(read_relations(sql), new, names)
    if found:
        raise combine_problems("These relations of classes cannot hold together:", found)


def _apply_change(db: Database, append: Callable[[sqlite_utils.Database], None], uuid: str | None) -> RelationEffect:
    with db.writing(right=Right.OWN) as sql:
        if relation_edits.is_stored(sql, uuid):
            return _count_effect(sql, 0)
        append(sql)
        return _derive_implications(sql)


def _derive_implications(sql: sqlite_utils.Database) -> RelationEffect:
    now = read_relations(sql)
    before = sql.execute("SELECT count(*) FROM label").fetchone()[0]
    _write_implications(sql, now.made, now.build_implications())
    sql.execute("UPDATE class_version SET changes = changes + 1")  # pages read classes and relations anew
    for image_id, newest in _find_reopenable_images(sql):
        rebuild_image(sql, image_id, newest)
    implied_cells.derive(sql)
    return _count_effect(sql, max(0, before - sql.execute("SELECT count(*) FROM label").fetchone()[0]))


def _write_implications(
    sql: sqlite_utils.Database, made: Sequence[Relation], implications: Sequence[Implication]
) -> None:
    sql.execute("DELETE FROM implication")
    sql.conn.executemany("INSERT INTO implication VALUES (?, ?, ?, ?, ?, ?)", implications)
    # What holds implied cells is an acceptance without a guarantee: they rest on answers, not on a model.
    sql.conn.executemany(
        """INSERT INTO acceptance (batch, class_id, state, run_id, threshold, precision, confidence, audited, wrong,
        made_at, relation_id) SELECT 'relation ' || ?1, ?2, 1, 0, 0, 0, 0, 0, 0, ?3, ?1
        WHERE NOT EXISTS (SELECT 1 FROM acceptance WHERE relation_id = ?1)""",
        [(relation.id, relation.declared.class_ids[0], relation.edited_at) for relation in made],
    )


def _find_reopenable_images(sql: sqlite_utils.Database) -> list[tuple[int, int]]:
    """Return (image, "nothing else here") whose labels or disagreements may change with the relations."""
    return sql.execute(
        f"""SELECT d.image_id, max(d.id) FROM decision d WHERE d.action = 'done'
        AND {NOT_UNDONE_SQL}
        AND ((SELECT count(*) FROM label l WHERE l.image_id = d.image_id)
            < (SELECT count(*) FROM class WHERE archived = 0)
            OR EXISTS (SELECT 1 FROM contradiction c WHERE c.image_id = d.image_id)
            OR EXISTS (SELECT 1 FROM decision o WHERE o.image_id = d.image_id AND o.annotator != d.annotator
                AND o.action = 'label' AND o.source != 'import' AND {build_not_undone_sql("o.id")}
                AND (o.state = {PRESENT} OR {build_replayed_sql("o")})))
        GROUP BY d.image_id"""
    ).fetchall()


def _count_effect(sql: sqlite_utils.Database, reopened: int) -> RelationEffect:
    counted: dict[int, int] = dict(
        sql.execute("SELECT state, count(*) FROM accepted WHERE decision_id NOT NULL GROUP BY state").fetchall()
    )
    return RelationEffect(
        counted.get(1, 0), counted.get(-1, 0), len(implied_cells.find_contradicted_answers(sql)), reopened
    )
