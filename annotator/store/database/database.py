"""Opening project.db, and the only way to write to it.

The page process and the worker process share this file. Every write takes the lock at once (BEGIN IMMEDIATE) and is
short; large data is an array file (arrays.py) and a row that points at it. The modules beside this one (images,
decisions, runs, ...) hold the SQL, one noun each, as functions of a `Database`.
"""

import atexit
import json
import sqlite3
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError, UnsupportedVersion
from annotator.roles import Right
from annotator.settings import DATABASE_FILE, Paths
from annotator.store.database import authorization, database_copies, project_identity, read_only, upgrading
from annotator.store.database.caches import Caches
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL
from annotator.store.disk import system_errors
from annotator.store.disk.durable import make_folder
from annotator.store.disk.file_permissions import make_private
from annotator.store.schema import DEVELOPMENT_STEP_PATTERN, MIGRATIONS, STEP_NAMES

BUSY_TIMEOUT_SECONDS = 30.0
ROWS_PER_FETCH = 10_000  # rows fetched at a time
CHECKPOINT_TIMEOUT_SECONDS = 1.0  # for which an ending process waits for readers
DEFAULT_CACHE_KB, MIGRATION_CACHE_KB = 2_000, 200_000  # cache of one connection; the usual is SQLite's default


_written_databases: set[Path] = set()  # databases that this process wrote


@atexit.register
def checkpoint_wal() -> None:
    """Move the write-ahead log of each project.db that this process wrote into that file, so that a copy is complete.

    Runs at every orderly end of the process. Does nothing while another process uses the file: that process does it at
    its own end.
    """
    for database in _written_databases:
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {1000 * CHECKPOINT_TIMEOUT_SECONDS:.0f}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def get_inserted_id(insert: sqlite3.Cursor) -> int:
    """Return the id of the row that an INSERT has just added."""
    assert insert.lastrowid is not None
    return insert.lastrowid


def get_newest_decision_id(sql: sqlite_utils.Database) -> int:
    """Return the id of the newest decision; 0 without decisions."""
    return sql.execute(f"SELECT {NEWEST_DECISION_ID_SQL}").fetchone()[0]


class Database:
    """One project's database, safe to share between threads: each thread gets its own connection."""

    def __init__(self, project: Path, *, create: bool = False, file: str = DATABASE_FILE):
        """Open the project in a folder, bringing an older one up to date.

        Where the folder or the file may not be written, the project is opened for reading only (read_only.py), and
        refused when it is of an older version.

        Args:
            project: The project folder.
            create: Make the folder and the file where there is none.
            file: UNFINISHED_DATABASE_FILE while the project is being made (imports/project_creation.py).

        Raises:
            UnsupportedVersion: It is from a newer annotator, or from a development version before the first release.
            AnnotatorError: There is no project there, or the file is not a database.
        """
        self.paths = Paths(Path(project).resolve(), file)
        if not read_only.database_exists(self.paths) and not create:
            raise AnnotatorError(
                f"There is no project in {self.paths.project} (no project.db in it).\n"
                f"    Make one with: annotator init {project} --images FOLDER"
            )
        self.caches = Caches()
        self._threads = threading.local()
        self._connections: WeakSet[sqlite_utils.Database] = WeakSet()  # of all threads; one ends with its thread
        self._is_closed = False
        self.read_only = read_only.is_read_only(self.paths)
        project_identity.forget(self.paths.project)  # this process may have had another one open there
        try:
            if self.read_only:
                self._check_same_version()
                return
            make_folder(self.paths.project, 0o700)
            self._migrate()
            make_private(self.paths.project)
            if project_identity.has_moved(self.sql, self.paths.project):
                with self.writing() as sql:
                    project_identity.update_folder_paths(sql, self.paths.project)
            project_identity.remember(self.paths.project, self.paths.database)
        except OSError as error:
            raise AnnotatorError(f"The project folder {self.paths.project} cannot be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    @property
    def sql(self) -> sqlite_utils.Database:
        """Return this thread's connection; for modules of the store only."""
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            if self._is_closed:
                raise AnnotatorError(f"The project {self.paths.project} was closed. Open it again to go on.")
            connection = self._threads.connection = self._connect()
            self._connections.add(connection)
        return connection

    @contextmanager
    def lend(self) -> Generator["Database"]:
        """Yield this database to a block that may be cut short; its owner goes on with it in any case.

        After an error this thread gets a new connection: the old one may have temporary tables, an attached file or an
        open cursor.
        """
        try:
            yield self
        except BaseException:
            connection = getattr(self._threads, "connection", None)
            if connection is not None:
                self._threads.connection = None
                self._connections.discard(connection)
                connection.conn.close()
            raise

    def close(self) -> None:
        """Close the connections of all threads and free the caches. No thread may be in the middle of a query."""
        self._is_closed = True
        connections = list(self._connections)  # first: nothing else holds them once the threads' are forgotten
        self._threads = threading.local()
        for connection in connections:
            connection.conn.close()
        self.caches.clear()

    def rows(self, statement: str, parameters: Any = ()) -> list[dict[str, Any]]:
        """Return all rows of a SELECT as dicts. Raises AnnotatorError instead of sqlite3's errors."""
        try:
            return list(self.sql.query(statement, parameters))
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def tuples(self, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT as plain tuples: for many thousands of rows. Raises as `rows`."""
        try:
            return self.sql.execute(statement, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def iterate_rows(self, statement: str, parameters: Any = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT, never holding all in memory. Raises AnnotatorError like `rows`."""
        try:
            cursor = self.sql.execute(statement, parameters)
            while rows := cursor.fetchmany(ROWS_PER_FETCH):
                yield from rows
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def integer_rows(self, statement: str, parameters: Any = ()) -> np.ndarray:
        """Return all rows of a SELECT of whole numbers as (n, columns) int64, 8 bytes each: for millions of rows."""
        blocks: list[np.ndarray] = []
        try:
            cursor = self.sql.execute(statement, parameters)
            while rows := cursor.fetchmany(ROWS_PER_FETCH):
                blocks.append(np.array(rows, np.int64))
            return np.concatenate(blocks) if blocks else np.zeros((0, len(cursor.description)), np.int64)
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def value(self, statement: str, parameters: Any = ()) -> Any:
        """Return the first column of the first row of a SELECT; None where there is no row."""
        try:
            row = self.sql.execute(statement, parameters).fetchone()
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error
        return row[0] if row else None

    @contextmanager
    def writing(self, *, durable: bool = True, right: Right = Right.OWN) -> Generator[sqlite_utils.Database]:
        """Open a transaction: all writes of the block are kept, or none. This is the only way to write to the database.

        A block inside another such block belongs to the outer transaction. The lock is taken at once, because a
        transaction that reads first and writes later fails at once beside another writer, whatever the timeout.

        Args:
            durable: Whether to wait for the disk. With False, a power cut may undo the block, a crash of this program
                never does: for data that is out of date after a power cut anyway, such as leases.
            right: The right that the person for whom this thread writes must have (authorization.py). In nested blocks
                only that of the outermost counts.

        Raises Forbidden, DiskFull, ProjectMoved, or AnnotatorError for the rest of sqlite3's errors and for a project
        that may not be written.
        """
        self.check_writable()
        project_identity.check(self.paths.project)
        _written_databases.add(self.paths.database)
        sql = self.sql
        outer: bool | None = getattr(self._threads, "durable", None)  # of the block around this one
        if outer is not None:
            if durable and not outer:
                raise RuntimeError("A durable block of writing stands inside one that does not wait for the disk.")
            yield sql
            return
        try:
            sql.conn.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            sql.conn.execute("BEGIN IMMEDIATE")
            self._threads.durable = durable
            try:
                authorization.check(sql, right)
                yield sql
                sql.conn.execute("COMMIT")
            except BaseException:
                if sql.conn.in_transaction:
                    sql.conn.execute("ROLLBACK")
                raise
            finally:
                self._threads.durable = None
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def require(self, right: Right) -> None:
        """Raise Forbidden when the person this thread acts for does not have this right (authorization.py).

        For code that writes later, or elsewhere: an import, an export.
        """
        authorization.check(self.sql, right)

    def check_writable(self) -> None:
        """Raise AnnotatorError for a read-only project; for code that writes more than the database."""
        if self.read_only:
            raise read_only.build_write_error(self.paths)

    @contextmanager
    def reading(self) -> Generator[sqlite_utils.Database]:
        """Run the SELECTs of the block on one snapshot; inside another such block, on the snapshot of that."""
        sql = self.sql
        if sql.conn.in_transaction:
            yield sql
            return
        sql.conn.execute("BEGIN")
        try:
            yield sql
        finally:
            sql.conn.execute("ROLLBACK")

    def get_change_key(self) -> tuple[int, int, int]:
        """Return a key that changes with every write to the project, here or elsewhere; for one thread only."""
        connection = self.sql.conn
        return id(connection), connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes

    def get_setting(self, key: str, default: Any = None) -> Any:
        """Return a project-wide setting (any JSON value); `default` where it is not set or is not valid JSON."""
        text = self.value("SELECT value FROM setting WHERE key = ? AND json_valid(value)", [key])
        return default if text is None else json.loads(text)

    def set_setting(self, key: str, value: Any, right: Right = Right.OWN, *, durable: bool = True) -> None:
        """Store a setting of the project, as JSON; whoever writes needs the given right. `durable` as in `writing`."""
        with self.writing(durable=durable, right=right) as sql:
            sql.execute(
                "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [key, json.dumps(value)],
            )

    def _connect(self) -> sqlite_utils.Database:
        project_identity.check(self.paths.project)
        if self.read_only:
            return sqlite_utils.Database(read_only.connect(self.paths))
        # A thread of Streamlit's may be gone before its connection is collected elsewhere: hence check_same_thread.
        connection = sqlite3.connect(
            self.paths.database, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL, not NORMAL: acknowledged decisions survive a power cut too. The page never waits for it.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return sqlite_utils.Database(connection)

    def _check_same_version(self) -> None:
        self._check_version()
        if pending := MIGRATIONS.pending(self.sql):
            raise AnnotatorError(
                f"{self.paths.database} is from an older annotator (without step {pending[0].name}) and would have to "
                f"be brought up to date, but {self.paths.project} may not be written.\n    {read_only.COPY_ADVICE}"
            )

    def _migrate(self) -> None:
        self._check_version()
        if not MIGRATIONS.pending(self.sql):
            return
        # Three processes may open a new file at once: the lock makes the later ones wait and then find nothing to do.
        # Steps that rewrite a table need foreign keys off, which cannot be changed inside a transaction, and a large
        # cache for the indexes: with SQLite's usual 2 MB, two million unordered uuids read and write the disk each.
        self.sql.conn.execute("PRAGMA foreign_keys = OFF")
        self.sql.conn.execute(f"PRAGMA cache_size = -{MIGRATION_CACHE_KB}")
        try:
            with self.writing() as sql:
                is_old = self.paths.file == DATABASE_FILE and MIGRATIONS.applied(sql) and MIGRATIONS.pending(sql)
                if is_old:  # asked under the lock, so that one process keeps one copy; it is read beside the lock
                    database_copies.keep_copy(self.paths.database, "upgrade")
                upgrading.apply(sql, self.paths.database)
                broken = sql.execute("PRAGMA foreign_key_check").fetchall()
                if broken:
                    raise AnnotatorError(
                        f"{self.paths.database} could not be brought up to date: {len(broken):,} rows point at rows "
                        f"that are not there (the first in table {broken[0][0]}). Nothing was changed.\n"
                        "    Was the file edited by hand? Restore it from a copy."
                    )
        finally:
            self.sql.conn.execute("PRAGMA foreign_keys = ON")
            self.sql.conn.execute(f"PRAGMA cache_size = -{DEFAULT_CACHE_KB}")

    def _check_version(self) -> None:
        unknown = sorted(step.name for step in MIGRATIONS.applied(self.sql) if step.name not in STEP_NAMES)
        if not unknown:
            return
        if DEVELOPMENT_STEP_PATTERN.fullmatch(unknown[-1]):
            raise UnsupportedVersion(
                f"{self.paths.database} was made by a development version of annotator from before 2026-12 (step "
                f"{unknown[-1]}). It has to be converted once; nothing was changed.\n"
                f"    In a checkout of the source: python tests/convert_project.py {self.paths.project}"
            )
        raise UnsupportedVersion(
            f"{self.paths.database} is from a newer annotator (step {unknown[-1]}; this one knows "
            f"{STEP_NAMES[-1]}).\n    Upgrade with: pip install -U multilabel-annotator"
        )


def _translate_error(error: sqlite3.DatabaseError, path: Path) -> AnnotatorError:
    return system_errors.translate_sqlite_error(error, path, BUSY_TIMEOUT_SECONDS) or AnnotatorError(
        f"{path}: {error}."
    )
