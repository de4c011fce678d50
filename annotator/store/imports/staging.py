"""Staging of a source's items in a temporary SQLite file, so that memory stays constant."""

import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import sqlite_utils
from filelock import FileLock, Timeout

from annotator.progress_callbacks import ProgressCallback
from annotator.records import ABSENT, FILL_SOURCES, PRESENT, STATE_NAMES, UNSURE
from annotator.store.classes.class_facts import ClassFacts
from annotator.store.database.database import Database
from annotator.store.database.statement_progress import watch_statements
from annotator.store.labels.refusals import MAX_NOTE_CHARACTERS, is_text

SAMPLE_ITEMS, MAX_SHOWN_ANSWERS = 10, 8  # items that are shown to a person, and answers of each
ITEMS_PER_TRANSACTION = 2000  # items in one transaction
STAGING_CACHE_KB = 64_000
MAX_NAME_CHARACTERS = 4096  # letters of an image's name
MAX_ATTRIBUTE_CHARACTERS = 200, 2000  # letters of its name, of its value
# unix seconds of the years 1 to 9999: those that can be written as a date
VALID_TIME_RANGE = (-62_135_596_800, 253_402_300_799)
STAGING_PREFIX, STAGING_SUFFIX, LOCK_SUFFIX = "import-", ".staging", ".staging.lock"

_VALID_STATES = (PRESENT, ABSENT, UNSURE)


class IncomingItem(Protocol):
    """The interface of items that import readers yield: the data of one image in an import source."""

    @property
    def image(self) -> str: ...

    @property
    def place(self) -> int | str: ...

    @property
    def labels(self) -> Sequence[tuple[str, int, str, float | None, str]]:
        """Return (class, state, annotator, Unix seconds or None, decision source) per answer."""
        ...

    @property
    def exhaustive(self) -> bool:
        """Return whether classes of the import source that this item does not name are absent."""
        ...

    @property
    def answered(self) -> bool: ...

    @property
    def scores(self) -> Mapping[str, float]: ...

    @property
    def file(self) -> str: ...

    @property
    def sha256(self) -> str:
        """Return the sha256 of the image file, or ""."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]: ...

    @property
    def written(self) -> str:
        """Return the image's file name in an export, or ""."""
        ...

    @property
    def remarks(self) -> Sequence[tuple[str, str, str, float | None]]:
        """Return ("flag" or "comment", text, annotator, Unix seconds or None) each."""
        ...

    @property
    def event(self) -> str: ...

    @property
    def event_labels(self) -> Sequence[tuple[str, int, str, float | None, str]]:
        """Return the answers about the event, as `labels`."""
        ...


_SCHEMA_SQL = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, place, exhaustive INTEGER NOT NULL,
    answered INTEGER NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL,
    -- what an export calls the image's file
    written TEXT NOT NULL,
    -- negative: an image that is not registered yet
    image_id INTEGER,
    -- why it names no image; in which kind of name_kinds.py it was found ('': exactly), and the path that was meant
    reason TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL DEFAULT '', found TEXT);
-- files that will be registered; number: negative, what stands for the image until then; or the image that has their
-- content already
CREATE TABLE coming (path TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
-- files that have another name here than in the source
CREATE TABLE original (name TEXT PRIMARY KEY, path TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE class (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL DEFAULT '',
    is_listed INTEGER NOT NULL DEFAULT 0,
    -- the class of the project, NULL where its answers are left out, and how it was found
    target INTEGER, how TEXT NOT NULL DEFAULT '');
CREATE TABLE target (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, class_id INTEGER UNIQUE);
-- "who" 0: the source does not say
CREATE TABLE who (id INTEGER PRIMARY KEY, source TEXT NOT NULL, annotator TEXT NOT NULL, is_filled INTEGER NOT NULL);
CREATE TABLE given (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, class INTEGER NOT NULL, state INTEGER NOT NULL,
    who INTEGER NOT NULL, at REAL);
CREATE TABLE score (item INTEGER NOT NULL, class INTEGER NOT NULL, score REAL NOT NULL);
CREATE TABLE attribute (item INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE remark (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    annotator TEXT NOT NULL, at REAL);
-- the event that an item belongs to, and what the source says of events; class 0: nothing is there
CREATE TABLE event (item INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE event_label (event TEXT NOT NULL, class INTEGER NOT NULL, state INTEGER NOT NULL, source TEXT NOT NULL,
    annotator TEXT NOT NULL, at REAL, PRIMARY KEY (event, class)) WITHOUT ROWID;
-- what the source says of a cell of the project; given NULL: absent, because the source names all that is present
CREATE TABLE cell (image_id INTEGER NOT NULL, target INTEGER NOT NULL, state INTEGER NOT NULL, given INTEGER,
    who INTEGER NOT NULL, is_filled INTEGER NOT NULL, is_clash INTEGER NOT NULL,
    -- 0: only a file beside the source says it
    is_said INTEGER NOT NULL, PRIMARY KEY (image_id, target))
    WITHOUT ROWID;
-- images of which the source names all that is present
CREATE TABLE closed (image_id INTEGER PRIMARY KEY);
-- what becomes a decision (import_changes.py); target NULL: "nothing else here"; held: the state that the cell has
CREATE TABLE change (id INTEGER PRIMARY KEY, image_id INTEGER NOT NULL, target INTEGER, state INTEGER, held INTEGER,
    given INTEGER);
-- images that were decided on while the changes were worked out
CREATE TABLE touched (image_id INTEGER PRIMARY KEY);
"""


class Staging:
    """A context manager that holds the items of one import source in a temporary SQLite file.

    Attributes:
        names_all: Answered items name all present classes.
        beat: Called during statements. Its exceptions end them.
        class_facts: Class name -> further fields.
        unclear: Class name -> reason, if it needs a choice.
        warnings: Sentences about the class map.
    """

    def __init__(self, folder: Path, note: Callable[[str], None], place_word: str = "line"):
        remove_stale_files(folder)
        self.place_word, self.note, self.names_all = place_word, note, False
        self.beat: Callable[[], None] = lambda: None
        self.path = folder / f"{STAGING_PREFIX}{os.getpid()}-{secrets.token_hex(4)}{STAGING_SUFFIX}"
        self._lock = FileLock(self.path.with_suffix(LOCK_SUFFIX))
        self._lock.acquire(timeout=0)
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._file = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{STAGING_CACHE_KB}"):
                self._file.execute(f"PRAGMA {pragma}")
            self._file.executescript(_SCHEMA_SQL)
        except BaseException:  # a full disk: nobody else would remove the file
            self.close()
            raise
        self._classes: dict[str, int] = {}
        self._who: dict[tuple[str, str], int] = {("", ""): 0}
        self.items = 0
        self.class_facts: Mapping[str, ClassFacts] = {}
        self.unclear: dict[str, str] = {}
        self.warnings: list[str] = []

    def __enter__(self) -> "Staging":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)
        self._lock.release()
        with suppress(OSError):
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def clear(self) -> None:
        self._file.execute("BEGIN")
        for (name,) in self._file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            self._file.execute(f"DELETE FROM {name}")
        self._file.execute("COMMIT")
        self._classes, self._who, self.items = {}, {("", ""): 0}, 0
        self.class_facts, self.unclear, self.warnings = {}, {}, []

    def format_place(self, place: object) -> str:
        """Return a place as text: "line 3"."""
        return f"{self.place_word} {place}" if isinstance(place, int) else str(place)

    def add_classes(self, listed: Iterable[tuple[str, str]]) -> None:
        """Add the (name, description) classes that the import source lists."""
        for name, description in listed:
            class_id = self._get_class_id(name)
            self._file.execute("UPDATE class SET description = ?, is_listed = 1 WHERE id = ?", [description, class_id])

    def set_coming_files(self, paths: Iterable[str], held: Mapping[str, int] = MappingProxyType({})) -> None:
        """Set the image files still to register (`paths`), and those already registered (`held`: path -> image id)."""
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM coming")
        self._file.executemany(
            "INSERT INTO coming (path, number) VALUES (?, ?)",
            chain(((path, -number) for number, path in enumerate(paths, start=1)), held.items()),
        )
        self._file.execute("COMMIT")

    def set_original_names(self, names: Mapping[str, str]) -> None:
        """Set the names under which the import source knows renamed image files, as name -> path."""
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM original")
        known = ((name, path) for name, path in names.items() if is_text(name))
        self._file.executemany("INSERT INTO original (name, path) VALUES (?, ?)", known)
        self._file.execute("COMMIT")

    def add(self, items: Iterable[IncomingItem], progress: ProgressCallback | None = None) -> None:
        """Read all items of an import source into the file. Items that cannot be stored are reported and omitted.

        Args:
            progress: Called with (items read, 0). Its exceptions end the reading.
        """
        rest = iter(items)
        while batch := list(islice(rest, ITEMS_PER_TRANSACTION)):
            self._file.execute("BEGIN")
            self._add_batch(batch)
            self._file.execute("COMMIT")
            if progress:
                progress(self.items, 0)

    def _add_batch(self, batch: Sequence[IncomingItem]) -> None:
        rows: list[tuple[object, ...]] = []
        given: list[tuple[object, ...]] = []
        kinds = ("score", "attribute", "remark", "event", "event_label")
        others: dict[str, list[tuple[object, ...]]] = {kind: [] for kind in kinds}
        classes, who = self._classes, self._who
        for item in batch:
            if problem := _find_problem(item):
                self.note(f"{self.format_place(item.place)}: {problem}")
                continue
            self.items += 1
            number = self.items
            facts = (item.image, item.place, item.exhaustive, item.answered, item.file, item.sha256.lower())
            rows.append((number, *facts, item.written))
            for name, state, annotator, at, source in item.labels:
                class_id = classes.get(name) or self._get_class_id(name, item)
                by = who.get((source, annotator))
                given.append((number, class_id, state, self._add_author(source, annotator) if by is None else by, at))
            for name, score in item.scores.items():
                others["score"].append((number, classes.get(name) or self._get_class_id(name, item), score))
            others["attribute"] += [(number, name, str(value)) for name, value in item.attributes.items()]
            others["remark"] += [(number, *remark) for remark in item.remarks]
            if item.event:
                others["event"].append((number, item.event))
            for name, state, annotator, at, source in item.event_labels:
                class_id = (classes.get(name) or self._get_class_id(name, item)) if name else 0
                others["event_label"].append((item.event, class_id, state, source, annotator, at))
        add = self._file.executemany
        columns = "id, name, place, exhaustive, answered, file, sha256, written"
        add(f"INSERT INTO item ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        add("INSERT INTO given (item, class, state, who, at) VALUES (?, ?, ?, ?, ?)", given)
        add("INSERT INTO score (item, class, score) VALUES (?, ?, ?)", others["score"])
        add("INSERT INTO attribute (item, name, value) VALUES (?, ?, ?)", others["attribute"])
        add("INSERT INTO remark (item, kind, text, annotator, at) VALUES (?, ?, ?, ?, ?)", others["remark"])
        add("INSERT INTO event (item, name) VALUES (?, ?)", others["event"])
        add("INSERT OR IGNORE INTO event_label VALUES (?, ?, ?, ?, ?, ?)", others["event_label"])

    def _get_class_id(self, name: str, item: IncomingItem | None = None) -> int:
        if name not in self._classes:
            if not is_text(name):
                self.note(
                    f"{self.format_place(item.place) if item else 'the classes'}: {name!a} cannot be stored as text"
                )
                name = name.encode("utf-8", "replace").decode()
            row = self._file.execute("INSERT OR IGNORE INTO class (name) VALUES (?) RETURNING id", [name]).fetchone()
            row = row or self._file.execute("SELECT id FROM class WHERE name = ?", [name]).fetchone()
            self._classes[name] = row[0]
        return self._classes[name]

    def _add_author(self, source: str, annotator: str) -> int:
        number = self._who[source, annotator] = len(self._who)
        row = [number, source, annotator, source in FILL_SOURCES]
        self._file.execute("INSERT INTO who (id, source, annotator, is_filled) VALUES (?, ?, ?, ?)", row)
        return number

    def format_samples(self, count: int = SAMPLE_ITEMS) -> list[str]:
        """Return the first staged items that have answers, as sentences."""
        said: list[str] = []
        items = self._file.execute(
            """SELECT id, name, exhaustive FROM item WHERE exhaustive OR id IN (SELECT item FROM given)
            OR id IN (SELECT item FROM score) ORDER BY id LIMIT ?""",
            [count],
        ).fetchall()
        for item, name, exhaustive in items:
            given = self._file.execute(
                "SELECT c.name, g.state FROM given g JOIN class c ON c.id = g.class WHERE g.item = ? ORDER BY g.id "
                "LIMIT ?",
                [item, MAX_SHOWN_ANSWERS],
            )
            words = [f"{class_name} {STATE_NAMES[state]}" for class_name, state in given]
            scores = self._file.execute(
                "SELECT c.name, s.score FROM score s JOIN class c ON c.id = s.class WHERE s.item = ? LIMIT ?",
                [item, MAX_SHOWN_ANSWERS],
            )
            words += [f"{class_name} scored {score:.3g}" for class_name, score in scores]
            rest = ["all others absent"] if exhaustive else []
            said.append(f"{name}: {', '.join([*words, *rest]) or 'no class'}")
        return said

    def count_answers_without_image(self) -> int:
        """Return the number of staged answers whose image was not found or cannot be read."""
        query = "SELECT count(*) FROM given g JOIN item i ON i.id = g.item WHERE i.image_id IS NULL"
        return self._file.execute(query).fetchone()[0]

    @contextmanager
    def attach(self, db: Database) -> Generator[sqlite_utils.Database]:
        """Yield the project connection with this file attached as `staged`."""
        sql = db.sql
        # Free the pages cached while reading: the project's connection caches the file once more.
        self._file.execute("PRAGMA shrink_memory")
        sql.conn.execute("ATTACH ? AS staged", [str(self.path)])
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{STAGING_CACHE_KB}"):
                sql.conn.execute(f"PRAGMA staged.{pragma}")
            with watch_statements(sql, self.beat):
                yield sql
        finally:
            sql.conn.execute("DETACH staged")


def is_staging_file(name: str) -> bool:
    """Return whether a project file belongs to a running or killed import."""
    return name.startswith(STAGING_PREFIX) and name.endswith((STAGING_SUFFIX, LOCK_SUFFIX, f"{STAGING_SUFFIX}-journal"))


def remove_stale_files(folder: Path) -> bool:
    """Remove staging files of killed imports, and return whether another import is running."""
    is_running = False
    for path in folder.glob(f"{STAGING_PREFIX}*{STAGING_SUFFIX}"):
        lock = FileLock(path.with_suffix(LOCK_SUFFIX))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            is_running = True
        except OSError:
            continue
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                lock.release()
                Path(lock.lock_file).unlink(missing_ok=True)
    return is_running


def _find_problem(item: IncomingItem) -> str | None:
    if not item.image.isascii() and not is_text(item.image):
        return f"the image name {item.image!a} cannot be stored as text"
    if not 0 < len(item.image) <= MAX_NAME_CHARACTERS:
        return f"an image name of {len(item.image):,} letters; it must have 1 to {MAX_NAME_CHARACTERS:,}"
    if item.file and not _is_inside_source(item.file):
        return f"the file {item.file!a} lies outside the folder of the source"
    if not is_text(item.event) or len(item.event) > MAX_NAME_CHARACTERS:
        return f"the event {item.event[:40]!a} of {len(item.event):,} letters cannot be stored as text"
    if item.event_labels and not item.event:
        return "it has labels of an event, but names no event"
    for name, state, annotator, at, source in (*item.labels, *item.event_labels):
        if state not in _VALID_STATES:
            return f"{name!r} has the state {state!r}; it must be 1, -1 or 0"
        if at is not None and not _is_time(at):
            return f"{name!r} was decided at {at!r}, which is no time (seconds since 1970)"
        if (annotator or source) and not (is_text(annotator) and is_text(source)):
            return f"who gave {name!r} ({annotator!a}, {source!a}) cannot be stored as text"
    for name, score in item.scores.items():
        if not math.isfinite(score):
            return f"the score {score!r} of {name!r} is not a number"
    for name, value in item.attributes.items():
        if not is_text(name) or not is_text(str(value)):
            return f"the attribute {name!a} cannot be stored as text"
        if not 0 < len(name) <= MAX_ATTRIBUTE_CHARACTERS[0] or len(str(value)) > MAX_ATTRIBUTE_CHARACTERS[1]:
            return (
                f"the attribute {name[:40]!r} has {len(name):,} letters and its value {len(str(value)):,}; at most "
                f"{MAX_ATTRIBUTE_CHARACTERS[0]:,} and {MAX_ATTRIBUTE_CHARACTERS[1]:,} are kept"
            )
    for kind, text, annotator, at in item.remarks:
        if kind not in ("flag", "comment"):
            return f"{kind!r} is neither a flag nor a comment"
        if not is_text(text) or not is_text(annotator) or not 0 < len(text) <= MAX_NOTE_CHARACTERS:
            return f"a {kind} of {len(text):,} letters; text of 1 to {MAX_NOTE_CHARACTERS:,} letters is kept"
        if at is not None and not _is_time(at):
            return f"a {kind} was written at {at!r}, which is no time (seconds since 1970)"
    return None


def _is_time(at: float) -> bool:
    return VALID_TIME_RANGE[0] <= at <= VALID_TIME_RANGE[1]  # false for what is not a number


def _is_inside_source(file: str) -> bool:
    return is_text(file) and not file.startswith(("/", "\\")) and ":" not in file[:3] and ".." not in _split_path(file)


def _split_path(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")
