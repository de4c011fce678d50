"""Image data as in-memory columns, for filters and orders over a million images.

`refresh` reads only changes. Rows are images by ascending id and never change. Columns change in place, so
hold `lock` and a `Database.reading` transaction during use.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import sqlite_utils

from annotator.indexing import find_positions
from annotator.memory_allocator import release_freed_memory
from annotator.records import ABSENT, PRESENT, STATE_NAMES, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL, NOT_UNDONE_SQL
from annotator.store.database.invalid_rows import VALID_LABEL_STATES_SQL
from annotator.store.gallery.appearance_columns import AppearanceColumns
from annotator.store.gallery.class_states import ClassStates, locate_bits
from annotator.store.gallery.image_names import ImageNames
from annotator.store.gallery.near_duplicate_column import NearDuplicateColumn
from annotator.store.gallery.values import Membership, TextColumn, extend_array
from annotator.store.images.excluded_images import EXCLUSION_SOURCE
from annotator.store.images.stages import COMPLETE
from annotator.store.pictures.exif import CAPTURE_COLUMNS, Capture

ROWS_PER_FETCH = 20_000  # rows read, or images looked up, at a time
# changed images from which on all are read again; for decisions, if they are also a third of all images
MAX_CHANGED_IMAGES = 50_000
MAX_CACHED_CLASSES = 200  # of which the states are kept: two bits an image each


class ColumnsStamp(NamedTuple):
    """A version stamp: the newest changes that the columns include."""

    # decision, image, appearance, twin: highest row ids read
    decision: int
    # number of class changes
    classes: int
    image: int
    # newest change of an image's name or capture time
    change: int
    appearance: int
    twin: int


NOTHING_READ = ColumnsStamp(0, -1, 0, 0, 0, 0)


def load_stamp(db: Database) -> ColumnsStamp:
    return ColumnsStamp(
        *db.tuples(
            f"""SELECT {NEWEST_DECISION_ID_SQL}, (SELECT changes FROM class_version),
            (SELECT coalesce(max(id), 0) FROM image), (SELECT coalesce(max(id), 0) FROM image_change),
            (SELECT coalesce(max(id), 0) FROM appearance), (SELECT coalesce(max(id), 0) FROM twin)"""
        )[0]
    )


class ImageColumns:
    """The in-memory columns of image data, one row per image.

    Attributes:
        image_ids: (N,) int64, ascending.
        facts: Capture fields by name, (N,) float64 with nan, or texts.
        complete: (N,) bool, every class is answered.
        positives: (N,) int16, number of present labels.
        newest: (N,) int64, newest active decision, or 0.
        newest_at: (N,) float64, Unix seconds of that decision, or nan.
        flagged, aside: (N,) bool, flagged and excluded images.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self.stamp = NOTHING_READ
        self.names = ImageNames()
        self.image_ids = np.zeros(0, np.int64)
        self.facts: dict[str, np.ndarray | TextColumn] = {
            field.name: TextColumn() if isinstance(field.default, str) else np.zeros(0) for field in fields(Capture)
        }
        self.looks, self.twins = AppearanceColumns(), NearDuplicateColumn()
        self.newest_at = np.zeros(0)
        self.complete, self.flagged, self.aside = (np.zeros(0, bool) for _ in range(3))
        self.positives, self.newest = np.zeros(0, np.int16), np.zeros(0, np.int64)
        self.people, self.sources = Membership(), Membership()
        self._class_ids: list[int] = []  # without archived ones, so the newest class may be missing
        self._newest_class = self._restored = 0
        self._states: OrderedDict[int, ClassStates] = OrderedDict()
        self._orders: dict[str, np.ndarray] = {}
        self._moved: dict[str, list[np.ndarray]] = {}  # rows whose place in an order is no longer right

    def __len__(self) -> int:
        return len(self.image_ids)

    def refresh(self, db: Database) -> None:
        """Update the columns, inside `db.reading()`."""
        with db.reading() as sql:
            now = load_stamp(db)
            if now == self.stamp:
                return
            if now.change - self.stamp.change > MAX_CHANGED_IMAGES:
                self._reset()
            try:
                self._read_changes(db, sql, now)
            except BaseException:
                self._reset()  # columns that were read in part
                raise

    def _read_changes(self, db: Database, sql: sqlite_utils.Database, now: ColumnsStamp) -> None:
        before = self.stamp
        if now.image > before.image or now.change > before.change:
            self._read_images(sql, before)
        if now.image > before.image or now.appearance > before.appearance:
            self.looks.read(sql, self.image_ids, before.appearance)
        if now.image > before.image or now.twin > before.twin:
            self.twins.read(sql, self.image_ids, before.twin)
        class_ids = [class_.id for class_ in classes.load_active_classes(db)]
        restored: int = sql.execute("SELECT count(*) FROM class_away").fetchone()[0]
        rows = np.zeros(0, np.int64) if before == NOTHING_READ else self._find_decided_rows(sql, before.decision)
        if before == NOTHING_READ or len(rows) > max(MAX_CHANGED_IMAGES, len(self) // 3):
            self._read_decisions(sql, None)
            self._read_labels(sql, class_ids)
        else:
            self._read_decisions(sql, rows)
            older = [class_id for class_id in class_ids if class_id <= self._newest_class]
            # A new class has no labels without a decision; an archived or restored one may have changed another's.
            if older == self._class_ids and restored == self._restored:
                self._read_labels_of(sql, rows, class_ids)
            else:
                self._read_labels(sql, class_ids)
        if now.classes != before.classes:
            self._read_complete(sql)
        self.stamp, self._class_ids, self._restored = now, class_ids, restored
        self._newest_class = sql.execute("SELECT coalesce(max(id), 0) FROM class").fetchone()[0]
        if before == NOTHING_READ:
            self.get_decision_order()
            self.get_capture_order()
            release_freed_memory()  # the names of all images, among others

    def get_state_mask(self, sql: sqlite_utils.Database, class_id: int, state: int) -> np.ndarray:
        """Return the images where a class has this state (OPEN: no label), (N,) bool."""
        if class_id not in self._states:
            states = ClassStates(len(self))
            for known in STATE_NAMES:
                query = "SELECT image_id FROM label WHERE class_id = ? AND state = ?"
                states.set_state(self._find_rows(sql, query, [class_id, known]), known)
            self._states[class_id] = states
            if len(self._states) > MAX_CACHED_CLASSES:
                self._states.popitem(last=False)
        self._states.move_to_end(class_id)
        return self._states[class_id].get_mask(state)

    def get_empty_mask(self, sql: sqlite_utils.Database) -> np.ndarray:
        """Return the images where every class is absent or implied absent, (N,) bool."""
        found = self.complete & (self.positives == 0)
        # "unsure", and the class that is left of a group of which exactly one is present.
        not_empty = f"""SELECT image_id FROM label WHERE class_id IN (SELECT id FROM class WHERE archived = 0)
            AND state = {UNSURE} UNION ALL SELECT a.image_id FROM accepted a JOIN acceptance c ON c.id = a.acceptance_id
            WHERE a.state = {PRESENT} AND a.decision_id NOT NULL AND c.relation_id IN
            (SELECT relation_id FROM implication WHERE state = {ABSENT} AND other_state = {PRESENT})"""
        found[self._find_rows(sql, not_empty, [])] = False
        return found

    def get_decision_order(self) -> np.ndarray:
        """Return the rows of images with a decision, ordered by their newest decision, (n,) int32."""
        return self._get_order("decision", self.newest > 0, (self.newest,))

    def get_capture_order(self) -> np.ndarray:
        """Return the rows with capture time, by time and name, (n,) int32."""
        return self._get_order("capture", ~np.isnan(self.capture_times), (self.capture_times, self.names.rank))

    @property
    def capture_times(self) -> np.ndarray:
        """Return capture times, (N,) float64 Unix seconds, nan if unknown."""
        return self.get_numbers("captured_at")

    def get_numbers(self, fact: str) -> np.ndarray:
        """Return a numeric capture field, such as the time: (N,) float64, nan if unknown."""
        values = self.facts[fact]
        assert isinstance(values, np.ndarray), f"{fact} is a text"
        return values

    def get_texts(self, fact: str) -> TextColumn:
        values = self.facts[fact]
        assert isinstance(values, TextColumn), f"{fact} is a number"
        return values

    def load_attribute_mask(self, sql: sqlite_utils.Database, name: str, value: str) -> np.ndarray:
        """Return which images have an imported field value, (N,) bool."""
        mask = np.zeros(len(self), bool)
        mask[self._find_rows(sql, "SELECT image_id FROM attribute WHERE name = ? AND value = ?", [name, value])] = True
        return mask

    def _get_order(self, name: str, has_value: np.ndarray, keys: tuple[np.ndarray, ...]) -> np.ndarray:
        if name not in self._orders:
            rows = np.flatnonzero(has_value)
            self._orders[name] = rows[_sort_rows(rows, keys)].astype(np.int32)
        elif name in self._moved:
            moved = np.unique(np.concatenate(self._moved[name]))
            self._orders[name] = _reorder(self._orders[name], moved, has_value, keys)
        self._moved.pop(name, None)
        return self._orders[name]

    def _read_images(self, sql: sqlite_utils.Database, before: ColumnsStamp) -> None:
        query = "SELECT DISTINCT image_id FROM image_change WHERE id > ? AND image_id <= ?"
        rows = self._find_rows(sql, query, [before.change, before.image])
        renamed: dict[int, str] = {}
        for some in _split_rows(rows):
            for image_id, name, *values in self._load_facts(sql, some):
                row = int(find_positions([image_id], self.image_ids)[0][0])
                self._set_facts(np.array([row]), [[value] for value in values])
                renamed[row] = name
        ids, facts, names = [self.image_ids], list[list[Sequence[Any]]](), list[str]()
        query = f"SELECT id, name, {', '.join(CAPTURE_COLUMNS)} FROM image WHERE id > ? ORDER BY id"
        for some_ids, some_names, *values in _iterate_columns(sql, query, [before.image]):
            ids.append(np.array(some_ids, np.int64))
            facts.append(values)
            names += some_names
        first = place = len(self)
        self.image_ids = np.concatenate(ids)
        self._grow_facts()
        for values in facts:
            count = len(values[0])
            self._set_facts(np.arange(place, place + count), values)
            place += count
        self.names.update(sql, self.image_ids, names, renamed)
        self._grow()
        self._record_moved("capture", np.concatenate([rows, np.arange(first, len(self))]))

    def _set_facts(self, rows: np.ndarray, values: Sequence[Sequence[Any]]) -> None:
        for name, some in zip(CAPTURE_COLUMNS, values, strict=True):
            kept_values = self.facts[name]
            if isinstance(kept_values, TextColumn):
                kept_values.set_texts(rows, some)
            else:
                kept_values[rows] = np.array(some, np.float64)  # None becomes nan

    def _grow_facts(self) -> None:
        for name, values in self.facts.items():
            if isinstance(values, TextColumn):
                values.grow(len(self))
            else:
                self.facts[name] = extend_array(values, len(self), np.nan)

    def _load_facts(self, sql: sqlite_utils.Database, rows: np.ndarray) -> list[tuple[Any, ...]]:
        columns = ", ".join(f"i.{name}" for name in CAPTURE_COLUMNS)
        return sql.execute(
            f"""SELECT i.id, i.name, {columns} FROM json_each(?) wanted
            CROSS JOIN image i ON i.id = wanted.value""",
            [self._to_json_ids(rows)],
        ).fetchall()

    def _grow(self) -> None:
        count = len(self)
        self.complete, self.flagged, self.aside = (
            extend_array(column, count, False) for column in (self.complete, self.flagged, self.aside)
        )
        self.positives, self.newest = extend_array(self.positives, count, 0), extend_array(self.newest, count, 0)
        self.newest_at = extend_array(self.newest_at, count, np.nan)
        self.people.grow(count)
        self.sources.grow(count)
        for states in self._states.values():
            states.grow(count)

    def _find_decided_rows(self, sql: sqlite_utils.Database, after: int) -> np.ndarray:
        return self._find_rows(sql, "SELECT image_id FROM decision WHERE id > ? AND image_id NOT NULL", [after])

    def _read_decisions(self, sql: sqlite_utils.Database, rows: np.ndarray | None) -> None:
        """Read all decisions on these images again, since an undo may reveal an older one."""
        cleared = slice(None) if rows is None else rows
        self.newest[cleared], self.newest_at[cleared] = 0, np.nan
        self.flagged[cleared] = self.aside[cleared] = False
        self.people.clear(cleared)
        self.sources.clear(cleared)
        if rows is None:
            self._orders.pop("decision", None)
            self._apply_decisions(sql, "decision d WHERE", [])
            return
        self._record_moved("decision", rows)
        for some in _split_rows(rows):
            source = "json_each(?) wanted CROSS JOIN decision d ON d.image_id = wanted.value WHERE"
            self._apply_decisions(sql, source, [self._to_json_ids(some)])

    def _apply_decisions(self, sql: sqlite_utils.Database, source: str, parameters: list[str]) -> None:
        query = f"""SELECT d.id, d.image_id, d.action = 'flag', d.note != '', d.source, d.annotator, d.decided_at
            FROM {source} d.action != 'undo' AND EXISTS (SELECT 1 FROM image i WHERE i.id = d.image_id)
            AND {NOT_UNDONE_SQL} ORDER BY d.id"""
        count = len(self)
        for ids, image_ids, are_flags, have_notes, sources, people, times in _iterate_columns(sql, query, parameters):
            rows = find_positions(image_ids, self.image_ids)[0]
            # Of several decisions on an image the last one assigned stays, which is the newest.
            self.newest[rows], self.newest_at[rows] = ids, times
            are_flags = np.array(are_flags, bool)
            have_notes = np.array(have_notes, bool)
            self.flagged[rows[are_flags]] = have_notes[are_flags]
            of_people = are_flags & (np.array(sources) != "import")
            self.aside[rows[of_people]] = (have_notes & (np.array(sources) == EXCLUSION_SOURCE))[of_people]
            self.people.add(rows, people, count)
            self.sources.add(rows, sources, count)

    def _read_labels(self, sql: sqlite_utils.Database, class_ids: list[int]) -> None:
        """Read the positives of all images, and which are complete."""
        self._states.clear()
        self.positives[:] = 0
        for class_id in class_ids:
            query = "SELECT image_id FROM label WHERE class_id = ? AND state = ?"
            self.positives[self._find_rows(sql, query, [class_id, PRESENT])] += 1
        self._read_complete(sql)

    def _read_complete(self, sql: sqlite_utils.Database) -> None:
        self.complete[:] = False
        self.complete[self._find_rows(sql, "SELECT id FROM image WHERE stage = ?", [COMPLETE])] = True

    def _read_labels_of(self, sql: sqlite_utils.Database, rows: np.ndarray, class_ids: list[int]) -> None:
        marks = ",".join(map(str, class_ids))
        for some in _split_rows(rows):
            self.positives[some], self.complete[some] = 0, False
            where = locate_bits(some)
            for states in self._states.values():
                states.clear(where)
            query = """SELECT i.id FROM json_each(?) wanted CROSS JOIN image i ON i.id = wanted.value
                WHERE i.stage = ?"""
            self.complete[self._find_rows(sql, query, [self._to_json_ids(some), COMPLETE])] = True
            query = f"""SELECT l.image_id, l.class_id, l.state FROM json_each(?) wanted
                CROSS JOIN label l ON l.image_id = wanted.value
                WHERE l.state {VALID_LABEL_STATES_SQL} AND l.class_id IN ({marks})"""
            for image_ids, of_classes, states in _iterate_columns(sql, query, [self._to_json_ids(some)]):
                self._apply_labels(find_positions(image_ids, self.image_ids)[0], np.array(of_classes), np.array(states))

    def _apply_labels(self, rows: np.ndarray, class_ids: np.ndarray, states: np.ndarray) -> None:
        np.add.at(self.positives, rows[states == PRESENT], 1)
        for class_id in set(class_ids.tolist()) & self._states.keys():
            of_class = class_ids == class_id
            self._states[class_id].set_states(rows[of_class], states[of_class])

    def _find_rows(self, sql: sqlite_utils.Database, query: str, parameters: list[object]) -> np.ndarray:
        # As one text: thousands of tuples start Python's garbage collector, which takes 60 ms in the page's process.
        text = sql.execute(f"SELECT group_concat(id) FROM (SELECT NULL AS id WHERE 0 UNION ALL {query})", parameters)
        ids = np.fromstring(text.fetchone()[0] or "", np.int64, sep=",")
        rows, known = find_positions(np.unique(ids), self.image_ids)
        return rows[known]

    def _to_json_ids(self, rows: np.ndarray) -> str:
        return json.dumps(self.image_ids[rows].tolist())

    def _record_moved(self, order: str, rows: np.ndarray) -> None:
        if order in self._orders and len(rows):
            self._moved.setdefault(order, []).append(rows)


def get_columns(db: Database) -> ImageColumns:
    return db.caches.get("image columns", "", ImageColumns, 1)


def _reorder(order: np.ndarray, moved: np.ndarray, has_value: np.ndarray, keys: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return an order (n,) int32 in which the `moved` rows are at the places that their new keys require."""
    is_moved = np.zeros(len(has_value), bool)
    is_moved[moved] = True
    order = np.compress(~is_moved[order], order)
    rows = moved[has_value[moved]]
    rows = rows[_sort_rows(rows, keys)]
    low, high = np.zeros(len(rows), np.int64), np.full(len(rows), len(order))
    while (searching := low < high).any():
        middle = (low + high) // 2
        is_before = np.zeros(len(rows), bool)
        is_before[searching] = _is_before(order[middle[searching]], rows[searching], keys)
        low = np.where(searching & is_before, middle + 1, low)
        high = np.where(searching & ~is_before, middle, high)
    return np.insert(order, low, rows.astype(np.int32))


def _is_before(rows: np.ndarray, others: np.ndarray, keys: tuple[np.ndarray, ...]) -> np.ndarray:
    result = np.zeros(len(rows), bool)
    for key in reversed(keys):
        result = (key[rows] < key[others]) | ((key[rows] == key[others]) & result)
    return result


def _sort_rows(rows: np.ndarray, keys: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.lexsort([key[rows] for key in reversed(keys)])


def _split_rows(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), ROWS_PER_FETCH):
        yield rows[start : start + ROWS_PER_FETCH]


def _iterate_columns(sql: sqlite_utils.Database, query: str, parameters: Sequence[object]) -> Iterator[tuple[Any, ...]]:
    cursor = sql.execute(query, parameters)
    while rows := cursor.fetchmany(ROWS_PER_FETCH):
        yield tuple(zip(*rows, strict=True))
