"""Relations of classes as people declare, preview, remove and undo them.

Each change is one transaction: the edit, what follows from all relations, and every implied cell, derived anew.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlite_utils

from annotator.errors import AnnotatorError, several
from annotator.roles import Right
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.labels import implied
from annotator.store.labels.derivation import rebuild
from annotator.store.relations import edits
from annotator.store.relations.edits import EXACTLY_ONE, GROUPS, IS_A, Declared, Relation
from annotator.store.relations.implication import Implication, Relations, problems

MOST_IN_GROUP = 500  # what follows from a group grows with the square of its classes


@dataclass(frozen=True)
class Effect:
    """What a change of relations does to existing answers.

    Attributes:
        present, absent: Cells that will be implied, of all relations.
        contradicted: Answers that contradict what other answers imply.
        reopened: Cells that "nothing else here" answered, and that it spares now: they are implied, or open again.
    """

    present: int
    absent: int
    contradicted: int
    reopened: int


class _OnlyPreviewError(Exception):
    pass


def relations(db: Database) -> Relations:
    """Return the relations of the project's classes."""
    with db.reading() as sql:
        return read(sql)


def read(sql: sqlite_utils.Database) -> Relations:
    """Return the relations inside a transaction."""
    active = sql.execute("SELECT id FROM class WHERE archived = 0").fetchall()
    return Relations(tuple(edits.in_force(sql)), frozenset(row[0] for row in active))


def declare(db: Database, wanted: Sequence[Declared], by: str, uuid: str | None = None) -> Effect:
    """Declare relations, all or none, and return what they do to existing answers.

    Args:
        db: The project's database.
        wanted: The relations; one that holds already changes nothing.
        by: The person who declares them.
        uuid: Made where the person acted; a uuid that is stored already changes nothing. None: a new one.

    Raises:
        AnnotatorError: A circle, a class that could never be present, a group of one class, or a name in use; all of
            these at once.
    """
    return _change(db, lambda sql: _append(sql, wanted, by, uuid), uuid)


def preview(db: Database, wanted: Sequence[Declared]) -> Effect:
    """Return what `declare` would do, and change nothing.

    Raises:
        AnnotatorError: As `declare`.
    """
    effects: list[Effect] = []
    with suppress(_OnlyPreviewError), db.writing(right=Right.OWN) as sql:
        _append(sql, wanted, "", None)
        effects.append(_derive(sql))
        raise _OnlyPreviewError
    return effects[0]


def remove(db: Database, relation_id: int, by: str, uuid: str | None = None) -> Effect:
    """Remove a relation; what it implied is taken back.

    Raises:
        AnnotatorError: No such relation holds.
    """

    def append(sql: sqlite_utils.Database) -> None:
        if relation_id not in {relation.id for relation in edits.in_force(sql)}:
            raise AnnotatorError(f"There is no relation {relation_id}; perhaps somebody removed it meanwhile.")
        edits.append_removal(sql, relation_id, by, uuid)

    return _change(db, append, uuid)


def undo(db: Database, by: str, uuid: str | None = None) -> str | None:
    """Undo the newest change of relations, and return it in words; None where this uuid is stored already.

    Raises:
        AnnotatorError: There is none.
    """
    said: list[str] = []

    def append(sql: sqlite_utils.Database) -> None:
        newest, names = edits.newest(sql), _names(sql)
        if not newest:
            raise AnnotatorError("Nobody has declared relations of classes, so there is nothing to undo.")
        for edit_id, removed in newest:
            words = in_words(edits.relation(sql, removed or edit_id).declared, names)
            said.append(f"the removal of {words}" if removed else words)
        edits.append_undo(sql, [edit_id for edit_id, _ in newest], by, uuid)
        _check(sql, [])

    _change(db, append, uuid)
    return "; ".join(said) if said else None


def follow_classes(sql: sqlite_utils.Database) -> None:
    """Derive everything anew after classes were archived or restored, in their transaction."""
    if edits.in_force(sql):
        _derive(sql)


def in_words(declared: Declared, names: dict[int, str]) -> str:
    """Return a relation as people say it: "spaniel is a kind of dog", "time: exactly one of day, night"."""
    words = [names.get(one, f"class {one}") for one in declared.class_ids]
    if declared.kind == IS_A:
        return f"{words[0]} is a kind of {words[1]}"
    how = "exactly one" if declared.kind == EXACTLY_ONE else "at most one"
    name = f"{declared.name}: " if declared.name else ""
    return f"{name}{how} of {', '.join(words)}"


def effect_in_words(effect: Effect, are: str) -> str:
    """Return what a change of relations does to existing answers, in sentences."""
    told = f"{counted(effect.present, 'cell')} {are} implied to be present, {effect.absent:,} to be absent."
    if effect.reopened:
        told += f' {counted(effect.reopened, "cell")} that "nothing else here" answered {are} implied or open again.'
    if effect.contradicted:
        told += f" {counted(effect.contradicted, 'answer')} and later ones contradict each other."
    return told


def contradictions(db: Database, most: int) -> list[tuple[str, str, str, str]]:
    """Return answers that contradict what others imply: (image, class, the other class, the relation in words)."""
    with db.reading() as sql:
        names = _names(sql)
        held = {relation.id: relation.declared for relation in edits.in_force(sql)}
        found = implied.contradicted(sql, most=most)
        image = "SELECT name FROM image WHERE id = ?"
        return [
            (
                sql.execute(image, [image_id]).fetchone()[0],
                names[class_id],
                names[from_id],
                in_words(held[relation_id], names),
            )
            for image_id, class_id, _, _, relation_id, from_id in found
        ]


def _names(sql: sqlite_utils.Database) -> dict[int, str]:
    return dict(sql.execute("SELECT id, name FROM class").fetchall())


def _append(sql: sqlite_utils.Database, wanted: Sequence[Declared], by: str, uuid: str | None) -> None:
    held = {_key(relation.declared) for relation in edits.in_force(sql)}
    new = [one for one in dict.fromkeys(wanted) if _key(one) not in held]
    edits.append(sql, new, by, uuid)
    _check(sql, new)


def _key(declared: Declared) -> tuple[object, ...]:
    """Return what makes two relations the same: the name of a group and the order of its classes do not."""
    return declared.kind, declared.class_ids if declared.kind == IS_A else frozenset(declared.class_ids)


def _check(sql: sqlite_utils.Database, new: Sequence[Declared]) -> None:
    names = _names(sql)
    found = [
        f"The group {one.name!r} has {len(one.class_ids):,} classes; {MOST_IN_GROUP} are the most."
        for one in new
        if one.kind in GROUPS and len(one.class_ids) > MOST_IN_GROUP
    ]
    found = found or problems(read(sql), new, names)
    if found:
        raise several("These relations of classes cannot hold together:", found)


def _change(db: Database, append: Callable[[sqlite_utils.Database], None], uuid: str | None) -> Effect:
    with db.writing(right=Right.OWN) as sql:
        if edits.is_stored(sql, uuid):
            return _effect(sql, 0)
        append(sql)
        return _derive(sql)


def _derive(sql: sqlite_utils.Database) -> Effect:
    """Write what follows from the relations that hold, and derive all cells anew."""
    now = read(sql)
    before = sql.execute("SELECT count(*) FROM label").fetchone()[0]
    _write(sql, now.made, now.implications())
    sql.execute("UPDATE class_version SET changes = changes + 1")  # pages read classes and relations anew
    for image_id, newest in _closed_and_open(sql):
        rebuild(sql, image_id, newest)
    implied.derive(sql)
    return _effect(sql, max(0, before - sql.execute("SELECT count(*) FROM label").fetchone()[0]))


def _write(sql: sqlite_utils.Database, made: Sequence[Relation], implications: Sequence[Implication]) -> None:
    sql.execute("DELETE FROM implication")
    sql.conn.executemany("INSERT INTO implication VALUES (?, ?, ?, ?, ?, ?)", implications)
    # What holds implied cells is an acceptance without a guarantee: they rest on answers, not on a model.
    sql.conn.executemany(
        """INSERT INTO acceptance (batch, class_id, state, run_id, threshold, precision, confidence, audited, wrong,
        made_at, relation_id) SELECT 'relation ' || ?1, ?2, 1, 0, 0, 0, 0, 0, 0, ?3, ?1
        WHERE NOT EXISTS (SELECT 1 FROM acceptance WHERE relation_id = ?1)""",
        [(relation.id, relation.declared.class_ids[0], relation.edited_at) for relation in made],
    )


def _closed_and_open(sql: sqlite_utils.Database) -> list[tuple[int, int]]:
    """Return images of which somebody said "nothing else here" and a class is open: a relation may have spared it."""
    return sql.execute(
        """SELECT d.image_id, max(d.id) FROM decision d WHERE d.action = 'done'
        AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)
        AND (SELECT count(*) FROM label l WHERE l.image_id = d.image_id)
            < (SELECT count(*) FROM class WHERE archived = 0) GROUP BY d.image_id"""
    ).fetchall()


def _effect(sql: sqlite_utils.Database, reopened: int) -> Effect:
    counted: dict[int, int] = dict(
        sql.execute("SELECT state, count(*) FROM accepted WHERE decision_id NOT NULL GROUP BY state").fetchall()
    )
    return Effect(counted.get(1, 0), counted.get(-1, 0), len(implied.contradicted(sql)), reopened)
