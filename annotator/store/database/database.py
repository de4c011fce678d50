"""Opening project.db, and the only way to write to it. Every write is short and locks at once (BEGIN IMMEDIATE)."""

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
from annotator.store.database.decision_record import LOSS_SETTING, DecisionRecord, LostDecisions, parse_loss
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
    """Move the write-ahead log of each written project.db into it, at process exit."""
    for database in _written_databases:
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {1000 * CHECKPOINT_TIMEOUT_SECONDS:.0f}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def get_inserted_id(insert: sqlite3.Cursor) -> int:
    assert insert.lastrowid is not None
    return insert.lastrowid


def get_newest_decision_id(sql: sqlite_utils.Database) -> int:
    return sql.execute(f"SELECT {NEWEST_DECISION_ID_SQL}").fetchone()[0]


class Database:
    """A project's database, safe to share: each thread has its own connection."""

    def __init__(self, project: Path, *, create: bool = False, file: str = DATABASE_FILE):
        """Open the project in a folder, bringing an older one up to date.

        Where the folder or the file may not be written, the project is opened read-only (read_only.py), and refused if
        its version is older.

        Args:
            create: Create a missing folder and file.
            file: UNFINISHED_DATABASE_FILE while the project is being created (imports/project_creation.py).

        Raises:
            UnsupportedVersion: The project is from a newer annotator, or from before the first release.
            AnnotatorError: The folder holds no project, or the file is not a database.
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
        self._decision_record = DecisionRecord(self.paths)
        try:
            if self.read_only:
                self._check_same_version()
                self._decision_record.compare(self.sql)
                return
            make_folder(self.paths.project, 0o700)
            self._migrate()
            self._decision_record.compare(self.sql)
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
        """Return this thread's connection, for the store only."""
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            if self._is_closed:
                raise AnnotatorError(f"The project {self.paths.project} was closed. Open it again to go on.")
            connection = self._threads.connection = self._connect()
            self._connections.add(connection)
        return connection

    @contextmanager
    def lend(self) -> Generator["Database"]:
        """Yield this database, and after an error close this thread's connection so that a new one opens."""
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
        """Close all connections and free the caches, while no query runs."""
        self._is_closed = True
        connections = list(self._connections)  # first: nothing else holds them once the threads' are forgotten
        self._threads = threading.local()
        for connection in connections:
            connection.conn.close()
        self.caches.clear()

    def rows(self, statement: str, parameters: Any = ()) -> list[dict[str, Any]]:
        """Return all rows of a SELECT as dicts, or raise AnnotatorError."""
        try:
            return list(self.sql.query(statement, parameters))
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def tuples(self, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT as tuples, faster than `rows`."""
        try:
            return self.sql.execute(statement, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def iterate_rows(self, statement: str, parameters: Any = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT without holding all in memory."""
        try:
            cursor = self.sql.execute(statement, parameters)
            while rows := cursor.fetchmany(ROWS_PER_FETCH):
                yield from rows
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def integer_rows(self, statement: str, parameters: Any = ()) -> np.ndarray:
        """Return all rows of a SELECT of integers as (n, columns) int64."""
        blocks: list[np.ndarray] = []
        try:
            cursor = self.sql.execute(statement, parameters)
            while rows := cursor.fetchmany(ROWS_PER_FETCH):
                blocks.append(np.array(rows, np.int64))
            return np.concatenate(blocks) if blocks else np.zeros((0, len(cursor.description)), np.int64)
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error

    def value(self, statement: str, parameters: Any = ()) -> Any:
        """Return the first value of a SELECT, or None without rows."""
        try:
            row = self.sql.execute(statement, parameters).fetchone()
        except sqlite3.DatabaseError as error:
            raise _translate_error(error, self.paths.database) from error
        return row[0] if row else None

    @contextmanager
    def writing(self, *, durable: bool = True, right: Right = Right.OWN) -> Generator[sqlite_utils.Database]:
        """Open a write transaction, the only way to write to the database.

        Nested blocks join the outer transaction. The lock is taken first, because transactions that start by reading
        fail next to a writer.

        Args:
            durable: Wait for the disk. False risks the block in a power cut, but not in a crash.
            right: Required of the acting member (outermost block only).

        Raises:
            Forbidden, DiskFull, ProjectMoved, AnnotatorError: The write is impossible.
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
                self._decision_record.store_loss(sql)
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
        if durable:
            self._decision_record.write(sql)

    def find_lost_decisions(self) -> LostDecisions | None:
        """Return the decisions that were stored once and are gone from project.db, or None."""
        return self._decision_record.loss or parse_loss(self.get_setting(LOSS_SETTING))

    def forget_lost_decisions(self) -> None:
        """Stop reporting lost decisions."""
        if self.find_lost_decisions() is not None:
            self.set_setting(LOSS_SETTING, None)

    def require(self, right: Right) -> None:
        """Raise Forbidden if the member for whom this thread acts lacks this right."""
        authorization.check(self.sql, right)

    def check_writable(self) -> None:
        """Raise AnnotatorError for a read-only project."""
        if self.read_only:
            raise read_only.build_write_error(self.paths)

    @contextmanager
    def reading(self) -> Generator[sqlite_utils.Database]:
        """Run the SELECTs of the block, and of nested blocks, on one snapshot."""
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
        """Return a key that changes with every write, for one thread."""
        connection = self.sql.conn
        return id(connection), connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes

    def get_setting(self, key: str, default: Any = None) -> Any:
        """Return a project setting (any JSON value), or `default` if missing or invalid."""
        text = self.value("SELECT value FROM setting WHERE key = ? AND json_valid(value)", [key])
        return default if text is None else json.loads(text)

    def set_setting(self, key: str, value: Any, right: Right = Right.OWN, *, durable: bool = True) -> None:
        """Store a project setting as JSON. `right` is required of the acting member, `durable` waits for the disk."""
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
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS leaves them in the memory of the drive
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
