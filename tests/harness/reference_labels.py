"""Labels, disagreements and implied labels, computed from the stored decisions in the plainest way.

It is the reference that the store is compared with: slow, without caches, and without code of the store but the
tables of decisions and classes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from annotator.records import ABSENT, PRESENT, SOURCES, UNSURE
from annotator.store.database.database import Database
from annotator.store.relations import declared_relations
from annotator.store.relations.implication import Relations

UNTOUCHED, SKIPPED, LABELED, COMPLETE, EXCLUDED = range(5)


@dataclass(frozen=True)
class Row:
    """A stored decision. `undone_by` is the id of its undo, or None."""

    id: int
    action: str
    image: int
    class_id: int | None
    state: int | None
    source: str
    person: str
    undone_by: int | None
    is_opinion: bool
    note: str

    @property
    def is_vote(self) -> bool:
        return self.is_opinion or SOURCES[self.source].is_vote


@dataclass(frozen=True)
class Cell:
    """The label of an image and class, and the decision that gave it."""

    state: int
    row: Row
    is_merged: bool


@dataclass(frozen=True)
class ClassRow:
    id: int
    added_after: int
    archived: bool
    archived_after: int
    merged_into: int | None
    is_same: bool
    away: tuple[tuple[int, int], ...]


@dataclass
class Reference:
    """What the store must hold, for all images.

    Attributes:
        labels: (image, class) -> (state, decision).
        implied: (image, class) -> state.
        stages: image -> stage.
    """

    labels: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    disagreements: set[tuple[int, int]] = field(default_factory=set)
    implied: dict[tuple[int, int], int] = field(default_factory=dict)
    stages: dict[int, int] = field(default_factory=dict)


def compute_reference(db: Database) -> Reference:
    """Compute everything from the tables of decisions, classes and relations."""
    classes, relations = _load_classes(db), declared_relations.load_relations(db)
    rows = _load_rows(db)
    result = Reference()
    for (image,) in db.tuples("SELECT id FROM image"):
        history = _History([row for row in rows if row.image == image], classes, relations)
        cells = history.replay(lambda row: row.undone_by is None).cells
        implied = relations.compute_implied({class_id: cell.state for class_id, cell in cells.items()})
        result.labels |= {(image, class_id): (cell.state, cell.row.id) for class_id, cell in cells.items()}
        result.implied |= {(image, class_id): state for class_id, state in implied.items()}
        result.disagreements |= {(image, class_id) for class_id in history.find_disagreements()}
        result.stages[image] = history.find_stage(len(cells), len(implied))
    return result


def _load_rows(db: Database) -> list[Row]:
    rows = db.tuples(
        """SELECT d.id, d.action, d.image_id, d.class_id, d.state, d.source, d.annotator,
        (SELECT u.id FROM decision u WHERE u.undoes = d.id),
        EXISTS (SELECT 1 FROM opinion o WHERE o.decision_id = d.id), d.note
        FROM decision d WHERE d.action != 'undo' ORDER BY d.id"""
    )
    return [Row(*row[:8], bool(row[8]), row[9]) for row in rows]


def _load_classes(db: Database) -> dict[int, ClassRow]:
    away: dict[int, list[tuple[int, int]]] = {}
    for class_id, since, until in db.tuples("SELECT class_id, since_decision, until_decision FROM class_away"):
        away.setdefault(class_id, []).append((since, until))
    columns = "id, since_decision, archived, archived_since, merged_into, merged_same"
    return {
        row[0]: ClassRow(row[0], row[1], bool(row[2]), row[3], row[4], bool(row[5]), tuple(away.get(row[0], ())))
        for row in db.tuples(f"SELECT {columns} FROM class")
    }


@dataclass
class _Replay:
    cells: dict[int, Cell] = field(default_factory=dict)
    answers: list[tuple[Row, int, int | None]] = field(default_factory=list)


@dataclass(frozen=True)
class _History:
    """The decisions about one image, oldest first."""

    rows: list[Row]
    classes: dict[int, ClassRow]
    relations: Relations

    def replay(self, counts: Callable[[Row], bool], *, with_done: bool = True) -> _Replay:
        """Apply the decisions that `counts` selects, one by one."""
        replay = _Replay()
        spared = self._find_spared_classes() if with_done and any(row.action == "done" for row in self.rows) else set()
        for row in self.rows:
            if not counts(row):
                continue
            if row.action in ("label", "clear"):
                self._answer(replay, row)
            elif row.action == "done" and with_done:
                for class_id in sorted(self._find_covered_classes(row) - spared):
                    replay.cells.setdefault(class_id, Cell(ABSENT, row, False))
                    replay.answers.append((row, class_id, ABSENT))
        return replay

    def _answer(self, replay: _Replay, row: Row) -> None:
        assert row.class_id is not None
        routed = self._route(row.class_id, row.id)
        if routed is None:
            return
        class_id, is_other, is_same = routed
        state, before = row.state if row.action == "label" else None, replay.cells.get(class_id)
        if is_other and state == ABSENT and not is_same:
            state = None  # the absence of a kind says nothing about the class above it
        # Of answers to a merged class, only present replaces an answer to the class that remains.
        fills = state is not None if before is None else before.is_merged
        if is_other and state != PRESENT and not fills:
            return
        replay.answers.append((row, class_id, state))
        if before is not None and self._protects(before.row, row):
            return
        if state is None:
            replay.cells.pop(class_id, None)
        else:
            replay.cells[class_id] = Cell(state, row, is_other or row.source == "merge")

    def _protects(self, before: Row, row: Row) -> bool:
        """Return whether a label stays although a later decision answers its cell."""
        if before.source == "import":
            return row.is_opinion
        return before.person != row.person and row.is_vote

    def _route(self, class_id: int, decision: int) -> tuple[int, bool, bool] | None:
        """Return the active class that gets this answer, whether it is another one, and whether it means the same."""
        is_other, is_same = False, True
        while self.classes[class_id].archived:
            class_ = self.classes[class_id]
            if class_.merged_into is None or decision <= class_.archived_after:
                return None
            class_id, is_other, is_same = class_.merged_into, True, is_same and class_.is_same
        return class_id, is_other, is_same

    def _find_covered_classes(self, done: Row) -> set[int]:
        """Return the classes that were active and unanswered when "nothing else here" was given."""
        earlier = _History([row for row in self.rows if row.id < done.id], self.classes, self.relations)
        cells = earlier.replay(lambda row: row.undone_by is None or row.undone_by > done.id, with_done=False).cells
        return {
            class_.id
            for class_ in self.classes.values()
            if not class_.archived
            and class_.added_after < done.id
            and not any(since < done.id <= until for since, until in class_.away)
            and class_.id not in cells
        }

    def _find_spared_classes(self) -> set[int]:
        cells = self.replay(lambda row: row.undone_by is None, with_done=False).cells
        present = {class_id for class_id, cell in cells.items() if cell.state == PRESENT}
        above = {ancestor for class_id in present for ancestor in self.relations.find_ancestors(class_id)}
        exact = [set(group.class_ids) for group in self.relations.groups if group.exactly_one]
        return above | _join(group for group in exact if not group & (present | above))

    def find_disagreements(self) -> set[int]:
        """Return the classes on which people's standing answers differ."""
        standing: dict[int, dict[str, int]] = {}
        open_: set[int] = set()
        for row, class_id, state in self.replay(lambda row: row.undone_by is None).answers:
            if row.source in ("import", "known"):
                continue
            by_person = standing.setdefault(class_id, {})
            if class_id in open_ and not (row.is_vote or SOURCES[row.source].blind):
                by_person.clear()
            open_.discard(class_id)
            by_person.pop(row.person, None)
            if state is None and not row.is_vote:
                by_person.clear()
            if state not in (None, UNSURE):
                by_person[row.person] = state
            if len(set(by_person.values())) > 1:
                open_.add(class_id)
        return open_

    def find_stage(self, labels: int, implied: int) -> int:
        flags = [row for row in self.rows if row.action == "flag" and row.undone_by is None and row.source != "import"]
        if flags and flags[-1].source == "aside" and flags[-1].note:
            return EXCLUDED
        if labels:
            active = sum(not class_.archived for class_ in self.classes.values())
            return COMPLETE if labels + implied >= active else LABELED
        skips = (row.action == "skip" and row.undone_by is None for row in self.rows)
        return SKIPPED if any(skips) else UNTOUCHED


def _join(groups: Iterable[set[int]]) -> set[int]:
    return set().union(*groups)
