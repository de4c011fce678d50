"""Derivation of an image's labels, stage and disagreements from its decisions, also in bulk.

Archived classes have no labels. For many images, SQL finds labels that are simply the newest answer. Votes and
opinions do not replace another annotator's label, so images with such answers are replayed one by one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlite_utils

from annotator.records import ABSENT, CELL_ACTIONS, PRESENT, SOURCES, UNSURE
from annotator.store.database.database import get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.images.excluded_images import EXCLUSION_SOURCE
from annotator.store.images.stages import COMPLETE, EXCLUDED, LABELED, SKIPPED, UNTOUCHED
from annotator.store.labels import image_overlap, implied_cells
from annotator.store.labels.archived_classes import (
    COUNT_ACTIVE_CLASSES_SQL,
    IS_ACTIVE_CLASS_SQL,
    ClassArchive,
    DecisionTarget,
)
from annotator.store.labels.sources import format_source_list


def set_label(sql: sqlite_utils.Database, image_id: int, class_id: int, state: int, decision_id: int) -> bool:
    """Set a cell's label and return whether it had one."""
    before = sql.execute("SELECT 1 FROM label WHERE image_id = ? AND class_id = ?", [image_id, class_id]).fetchone()
    sql.execute(
        """INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET state = excluded.state, decision_id = excluded.decision_id""",
        [image_id, class_id, state, decision_id],
    )
    return before is not None


def clear_label(sql: sqlite_utils.Database, image_id: int, class_id: int) -> bool:
    """Delete a cell's label and return whether it had one."""
    deleted = sql.execute("DELETE FROM label WHERE image_id = ? AND class_id = ?", [image_id, class_id])
    return deleted.rowcount > 0


def close_image(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Label an image's unanswered classes absent ("nothing else here"), except those of `find_spared_classes`."""
    rows = sql.execute("SELECT class_id FROM label WHERE image_id = ? AND state = ?", [image_id, PRESENT])
    spared = implied_cells.find_spared_classes(sql, [row[0] for row in rows.fetchall()])
    sql.execute(
        f"""INSERT INTO label (image_id, class_id, state, decision_id) SELECT ?, id, ?, ? FROM class
        WHERE {IS_ACTIVE_CLASS_SQL} AND id NOT IN ({",".join("?" * len(spared))})
        ON CONFLICT (image_id, class_id) DO NOTHING""",
        [image_id, ABSENT, decision_id, *spared],
    )


def update_stage(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Set an image's stage from its exclusion, labels or skip."""
    if is_excluded(sql, image_id):
        sql.execute("UPDATE image SET stage = ?, stage_decision = ? WHERE id = ?", [EXCLUDED, decision_id, image_id])
        return
    answered = sql.execute("SELECT count(*) FROM label WHERE image_id = ?", [image_id]).fetchone()[0]
    if answered:
        answered += implied_cells.count_in_image(sql, image_id)
        classes = sql.execute(COUNT_ACTIVE_CLASSES_SQL).fetchone()[0]
        stage = COMPLETE if answered >= classes else LABELED
    else:
        active = (row for row in _load_history(sql, image_id) if row["undone_by"] is None)
        stage = SKIPPED if any(row["action"] == "skip" for row in active) else UNTOUCHED
    # An untouched image returns to its place in the order, a skipped one queues behind those skipped earlier.
    since = 0 if stage == UNTOUCHED else decision_id
    sql.execute("UPDATE image SET stage = ?, stage_decision = ? WHERE id = ?", [stage, since, image_id])


def is_excluded(sql: sqlite_utils.Database, image_id: int) -> bool:
    """Return whether the newest active flag excludes the image."""
    # INDEXED BY: an image has few flags and may have many decisions.
    newest = sql.execute(
        f"""SELECT source = ? AND note != '' FROM decision d INDEXED BY decision_flag
        WHERE action = 'flag' AND source != 'import' AND image_id = ?
            AND {NOT_UNDONE_SQL}
        ORDER BY id DESC LIMIT 1""",
        [EXCLUSION_SOURCE, image_id],
    ).fetchone()
    return bool(newest and newest[0])


def update_after_flag(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    """Update the stage if a flag changed the exclusion."""
    (stage,) = sql.execute("SELECT stage FROM image WHERE id = ?", [image_id]).fetchone()
    if is_excluded(sql, image_id) != (stage == EXCLUDED):
        update_stage(sql, image_id, decision_id)


def rebuild_image(sql: sqlite_utils.Database, image_id: int, decision_id: int) -> None:
    wanted = _derive_labels(sql, image_id)
    rows = sql.execute("SELECT class_id, state, decision_id FROM label WHERE image_id = ?", [image_id]).fetchall()
    present = {class_id: (state, source) for class_id, state, source in rows}
    sql.conn.executemany(
        "DELETE FROM label WHERE image_id = ? AND class_id = ?",
        [(image_id, class_id) for class_id in present.keys() - wanted.keys()],
    )
    for class_id, answer in wanted.items():
        if present.get(class_id) != answer:
            set_label(sql, image_id, class_id, *answer)
    update_stage(sql, image_id, decision_id)
    update_disagreements(sql, image_id)
    image_overlap.update_answer_count(sql, image_id)


def update_disagreements(sql: sqlite_utils.Database, image_id: int) -> None:
    sql.execute("DELETE FROM contradiction WHERE image_id = ?", [image_id])
    sql.conn.executemany(
        "INSERT INTO contradiction (image_id, class_id, decision_id) VALUES (?, ?, ?)",
        [(image_id, class_id, newest) for class_id, (newest, _) in compute_disagreements(sql, image_id).items()],
    )


def compute_disagreements(
    sql: sqlite_utils.Database, image_id: int
) -> dict[int, tuple[int, dict[str, tuple[int, int]]]]:
    """Return open disagreements: class id -> (causing decision, annotator -> (state, decision)).

    A disagreement starts when two annotators' answers differ. The next answer by an annotator who could see it
    resolves it and discards earlier answers. Blind answers and opinions do not resolve it. Unsure answers never
    disagree. Clearing a cell discards its answers. Imported labels do not count.
    """
    standing: dict[int, dict[str, tuple[int, int]]] = {}
    caused_by: dict[int, int] = {}
    (blind_since,) = sql.execute("SELECT decision_id FROM blind_since").fetchone()
    for answer in iterate_answers(sql, image_id):
        if answer.source == "known":  # known answers test the person, not the image
            continue
        class_id = answer.class_id
        is_blind = answer.decision_id > blind_since and answer.source in SOURCES and SOURCES[answer.source].blind
        if caused_by.pop(class_id, None) is not None and not (is_blind or answer.is_vote):
            standing[class_id] = {}
        states = standing.setdefault(class_id, {})
        states.pop(answer.annotator, None)
        if answer.state is None and not answer.is_vote:
            states.clear()
        elif answer.state not in (None, UNSURE):
            states[answer.annotator] = answer.state, answer.decision_id
        if len({state for state, _ in states.values()}) > 1:
            caused_by[class_id] = answer.decision_id
    return {class_id: (newest, standing[class_id]) for class_id, newest in caused_by.items()}


class CellAnswer(NamedTuple):
    """A decision's answer to one class of an image."""

    decision_id: int
    class_id: int
    # None if the decision clears the cell
    state: int | None
    annotator: str
    source: str
    # whether the answer leaves another annotator's label unchanged
    is_vote: bool


def iterate_answers(sql: sqlite_utils.Database, image_id: int, *, imports: bool = False) -> Iterator[CellAnswer]:
    """Yield an image's active answers, oldest first, if several annotators decided about it.

    A "nothing else here" yields one answer per covered class.
    """
    history = _load_history(sql, image_id)
    if len({row["annotator"] for row in history}) < 2:
        return
    for row, class_id, state in _Replay(sql, history).iterate_answers():
        if imports or row["source"] != "import":
            yield CellAnswer(row["id"], class_id, state, row["annotator"], row["source"], _is_vote_row(row))


def _derive_labels(sql: sqlite_utils.Database, image_id: int) -> dict[int, tuple[int, int]]:
    """Return an image's labels: class id -> (state, decision)."""
    replay = _Replay(sql, _load_history(sql, image_id))
    for _ in replay.iterate_answers():
        pass
    return {class_id: (cell.state, cell.decision_id) for class_id, cell in replay.cells.items()}


@dataclass(frozen=True)
class _CellLabel:
    """A cell's label during a replay."""

    state: int
    decision_id: int
    # the annotator, "" for an import
    giver: str
    # whether it was given to a class merged into this one
    is_merged: bool = False


@dataclass(frozen=True)
class _Coverage:
    """The decisions that answer a class by "nothing else here": ids after `since`, outside the ranges `away`."""

    class_id: int
    since: int
    away: list[tuple[int, int]] = field(default_factory=list)

    def covers(self, decision_id: int) -> bool:
        return self.since < decision_id and not any(start < decision_id <= end for start, end in self.away)


class _Replay:
    """A replay of an image's decisions, which collects the resulting labels in `cells`."""

    def __init__(self, sql: sqlite_utils.Database, history: Sequence[dict[str, Any]]):
        self.cells: dict[int, _CellLabel] = {}
        self._history, self._archive = history, ClassArchive(sql)
        has_done = any(row["action"] == "done" for row in history)
        self._coverages = _load_coverages(sql) if has_done else []
        self._spared = self._find_spared_classes(sql) if has_done else set[int]()

    def iterate_answers(self) -> Iterator[tuple[dict[str, Any], int, int | None]]:
        """Yield active decisions, oldest first, each with class and state (None if cleared)."""
        for row in self._history:
            if row["undone_by"] is not None:
                continue
            if row["action"] in CELL_ACTIONS:
                effect = _compute_effect(self._archive, self.cells, row)
                if effect:
                    _apply_answer(self.cells, row, *effect)
                    yield row, effect[0].class_id, effect[1]
            elif row["action"] == "done":
                for class_id in self.find_covered_classes(row):
                    self.cells.setdefault(class_id, _CellLabel(ABSENT, row["id"], _find_giver(row)))
                    yield row, class_id, ABSENT

    def _find_spared_classes(self, sql: sqlite_utils.Database) -> set[int]:
        cells: dict[int, _CellLabel] = {}
        for row in self._history:
            if row["undone_by"] is None and row["action"] in CELL_ACTIONS:
                effect = _compute_effect(self._archive, cells, row)
                if effect:
                    _apply_answer(cells, row, *effect)
        return implied_cells.find_spared_classes(
            sql, [class_id for class_id, cell in cells.items() if cell.state == PRESENT]
        )

    def find_covered_classes(self, done: dict[str, Any]) -> list[int]:
        """Return the classes that a "nothing else here" answers."""
        # The classes that were open at the time, even if an answer of that time was taken back since.
        answered: dict[int, _CellLabel] = {}
        for other in self._history:
            if other["id"] >= done["id"]:
                break
            held = other["undone_by"] is None or other["undone_by"] > done["id"]
            if held and other["action"] in CELL_ACTIONS and (effect := _compute_effect(self._archive, answered, other)):
                _apply_answer(answered, other, *effect)
        return [
            coverage.class_id
            for coverage in self._coverages
            if coverage.covers(done["id"])
            and coverage.class_id not in answered
            and coverage.class_id not in self._spared
        ]


def _compute_effect(
    archive: ClassArchive, cells: dict[int, _CellLabel], row: dict[str, Any]
) -> tuple[DecisionTarget, int | None] | None:
    """Return the class and state that a decision sets, or None if it has no effect."""
    target = archive.find_target(row["class_id"], row["id"])
    if target is None:
        return None
    cell = cells.get(target.class_id)
    counts, state = target.compute_effect(row["state"], cell is None, cell is not None and cell.is_merged)
    return (target, state) if counts else None


def _apply_answer(cells: dict[int, _CellLabel], row: dict[str, Any], target: DecisionTarget, state: int | None) -> None:
    cell = cells.get(target.class_id)
    if (
        cell is not None
        and cell.giver != row["annotator"]
        and (row["is_opinion"] or (cell.giver and _is_vote_row(row)))
    ):
        return
    if state is None:
        cells.pop(target.class_id, None)
    else:
        is_merged = target.is_other or row["source"] == "merge"
        cells[target.class_id] = _CellLabel(state, row["id"], _find_giver(row), is_merged)


def _find_giver(row: dict[str, Any]) -> str:
    """Return the annotator whose label a vote does not replace, "" for an import."""
    return "" if row["source"] == "import" else row["annotator"]


def _is_vote_row(row: dict[str, Any]) -> bool:
    return is_vote(row["source"]) or bool(row["is_opinion"])


def is_vote(source: str) -> bool:
    """Return whether answers from a decision source ("reading", "known") leave others' labels unchanged."""
    return source in SOURCES and SOURCES[source].is_vote


def _load_coverages(sql: sqlite_utils.Database) -> list[_Coverage]:
    rows = sql.execute(f"SELECT id, since_decision FROM class WHERE {IS_ACTIVE_CLASS_SQL}").fetchall()
    coverages = {class_id: _Coverage(class_id, since) for class_id, since in rows}
    for class_id, start, end in sql.execute("SELECT class_id, since_decision, until_decision FROM class_away"):
        if class_id in coverages:
            coverages[class_id].away.append((start, end))
    return list(coverages.values())


def load_covered_classes(sql: sqlite_utils.Database, image_id: int) -> dict[int, list[int]]:
    """Return the classes answered by each "nothing else here", even undone: decision id -> class ids."""
    history = _load_history(sql, image_id)
    replay = _Replay(sql, history)
    return {row["id"]: replay.find_covered_classes(row) for row in history if row["action"] == "done"}


def _load_history(sql: sqlite_utils.Database, image_id: int) -> list[dict[str, Any]]:
    return list(
        sql.query(
            """SELECT d.id, d.action, d.class_id, d.state, d.source, d.annotator, u.id AS undone_by,
            o.decision_id IS NOT NULL AS is_opinion FROM decision d
            LEFT JOIN decision u ON u.undoes = d.id LEFT JOIN opinion o ON o.decision_id = d.id
            WHERE d.image_id = ? AND d.action IN ('label', 'clear', 'done', 'skip') ORDER BY d.id""",
            [image_id],
        )
    )


def build_replayed_sql(decision: str) -> str:
    """Return the SQL condition that a decision (its alias) is a vote or an opinion, which needs a replay."""
    return f"""({decision}.source IN {format_source_list(is_vote=True)}
        OR EXISTS (SELECT 1 FROM opinion WHERE decision_id = {decision}.id))"""


def insert_newest_answers(sql: sqlite_utils.Database, decisions: str, values: Mapping[str, object]) -> None:
    """Insert the labels of unlabeled cells from the newest active answer to each.

    Args:
        decisions: SQL from FROM on, with a WHERE, that selects decisions `d` about active classes.
        values: Its parameters.
    """
    sql.execute(
        f"""INSERT INTO label (image_id, class_id, state, decision_id)
        SELECT image_id, class_id, state, id FROM (
            SELECT d.image_id, d.class_id, d.state, d.action, max(d.id) AS id {decisions}
            AND d.action IN ('label', 'clear') AND {NOT_UNDONE_SQL} GROUP BY d.image_id, d.class_id
        ) WHERE action = 'label' ON CONFLICT DO NOTHING""",
        dict(values),
    )


def rebuild_images(sql: sqlite_utils.Database, image_ids: Iterable[int]) -> None:
    """Rebuild all data derived from decisions about these images."""
    newest = get_newest_decision_id(sql)
    for image_id in image_ids:
        rebuild_image(sql, image_id, newest)
