"""Convert a project of a development version from before the first release: python tests/convert_project.py PROJECT

The database is first copied to copies/. One transaction then applies the earlier steps that the project lacks, checks
that all rows of people are as they were and that the tables are those of a new project, and replaces the record of the
earlier steps by step_001. A process that is killed leaves the project as it was; run the command again. Last, shards of
features get the form of today. A project that is converted already is left as it is.
"""

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

import numpy as np
import sqlite_utils
from earlier_schema import EARLIER_MIGRATIONS
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from annotator.errors import AlreadyRunning, AnnotatorError, UnsupportedVersion
from annotator.settings import Paths
from annotator.store.database import database_copies
from annotator.store.database.database import BUSY_TIMEOUT_SECONDS, MIGRATION_CACHE_KB, Database
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import CodedRegions, list_shards, write_shard
from annotator.store.schema import DEVELOPMENT_STEP_PATTERN, MIGRATIONS, STEP_NAMES
from annotator.store.schema.triggers import create_image_change_trigger

# What people gave, by table: the columns that every version has. A conversion changes none of these values.
KEPT_COLUMNS = {
    "folder": "id, path",
    "image": "id, name, sha256, width, height, stage, stage_decision, problem",
    "file": "id, folder_id, path, bytes, modified_ns, image_id, reason",
    "class": "id, name, description, since_decision",
    "decision": "id, uuid, action, image_id, class_id, state, undoes, source, annotator, batch, run_id, score, "
    "milliseconds, decided_at",
    "label": "image_id, class_id, state, decision_id",
    "run": "id, method, parameters, backbone, class_ids, images, last_decision_id, finished_at, published",
}


def convert_project(project: Path) -> Iterator[str]:
    """Convert a project, and yield a sentence on each thing that was done.

    Raises:
        AlreadyRunning: A server or worker of the project runs.
        UnsupportedVersion: The project was not made by a development version.
        AnnotatorError: It is no project, there is no room for the copy, or its tables were changed by hand.
    """
    paths = Paths(project.resolve())
    if not paths.database.exists():
        raise AnnotatorError(f"There is no project in {paths.project} (no {paths.database.name} in it).")
    with ExitStack() as locks:
        try:
            for lock in (paths.server_lock, paths.worker_lock):
                locks.enter_context(FileLock(lock, timeout=0))
        except Timeout as error:
            raise AlreadyRunning(f"{paths.project} is in use. Stop its server and worker, and try again.") from error
        yield from _convert_database(paths.database)
        yield from _convert_shards(paths)


def read_schema(sql: sqlite3.Connection) -> dict[str, str]:
    """Return the SQL of each table, index, view and trigger, without comments and spaces that mean nothing."""
    rows = sql.execute("SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY 1").fetchall()
    return {name: _normalize(text) for name, text in rows if "_sqlite_migrations" not in name}


def _normalize(text: str) -> str:
    text = re.sub(r'"(decision|lease)"', r"\1", re.sub(r"--[^\n]*", " ", text))  # renamed tables are in quotes
    return re.sub(r" ?([(),;]) ?", r"\1", re.sub(r"\s+", " ", text)).strip()


def _convert_database(database: Path) -> Iterator[str]:
    with closing(sqlite3.connect(database, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)) as connection:
        sql = sqlite_utils.Database(connection)
        # Steps that rewrite a table need foreign keys off, which cannot be changed inside a transaction.
        for pragma in ("synchronous = FULL", "foreign_keys = OFF", f"cache_size = -{MIGRATION_CACHE_KB}"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            applied = {step.name for step in MIGRATIONS.applied(sql)}
            if applied and applied <= set(STEP_NAMES):
                connection.execute("ROLLBACK")
                yield f"{database} has the schema of today already."
                return
            if not applied or not all(DEVELOPMENT_STEP_PATTERN.fullmatch(name) for name in applied):
                raise UnsupportedVersion(f"{database} was not made by a development version ({sorted(applied)}).")
            copy = database_copies.keep_copy(database, "conversion")
            missing = [step.name for step in EARLIER_MIGRATIONS.pending(sql)]
            EARLIER_MIGRATIONS.apply(sql)
            create_image_change_trigger(sql)
            _replace_record(sql)
            _check_schema(connection, database)
            _check_rows(connection, copy)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        counts = {table: sql.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in KEPT_COLUMNS}
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    yield f"The database from before is {copy}."
    steps = ", ".join(missing) or "none, it had all of them"
    yield f"Earlier steps that were applied: {steps}. The project is at {STEP_NAMES[0]} now."
    yield f"Kept as they were: {', '.join(f'{count:,} rows of {table}' for table, count in counts.items())}."


def _replace_record(sql: sqlite_utils.Database) -> None:
    sql.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'annotator'")
    sql.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('annotator', ?, ?)",
        [STEP_NAMES[0], str(datetime.now(UTC))],
    )


def _check_schema(converted: sqlite3.Connection, database: Path) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        MIGRATIONS.apply(sqlite_utils.Database(new), stop_before=STEP_NAMES[1:])
        expected, found = read_schema(new), read_schema(converted)
    if differing := sorted(name for name in expected | found if expected.get(name) != found.get(name)):
        raise AnnotatorError(
            f"{database} was not converted, nothing was changed: these are not as the steps made them, or were changed "
            f"by hand: {', '.join(differing)}."
        )
    if broken := converted.execute("PRAGMA foreign_key_check").fetchall():
        raise AnnotatorError(
            f"{database} was not converted, nothing was changed: {len(broken):,} rows point at rows that do not exist "
            f"(the first in table {broken[0][0]}). Restore it from a copy."
        )


def _check_rows(converted: sqlite3.Connection, copy: Path) -> None:
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as before:
        for table, columns in KEPT_COLUMNS.items():
            query = f"SELECT {columns} FROM {table} ORDER BY 1, 2"
            for old, now in zip_longest(before.execute(query), converted.execute(query)):
                if old != now:
                    raise AnnotatorError(f"Nothing was changed: {table} would have {now} instead of {old}.")


def _convert_shards(paths: Paths) -> Iterator[str]:
    """Write shards of features without image contents again with them, and delete those without regions."""
    rewritten = deleted = 0
    with closing(Database(paths.project)) as db:
        for path in [path for folder in sorted(paths.project.glob("features/*/")) for path in list_shards(folder)]:
            try:
                arrays, basis = _read_shard(path)
            except SafetensorError:  # damaged: the worker deletes it and analyzes its images again
                continue
            if "regions" not in arrays and "codes" not in arrays:
                path.unlink()
                deleted += 1
            elif "contents" not in arrays:
                contents = ProjectContents(db).load_hashes(arrays["image_ids"])
                coded = CodedRegions(arrays["codes"], arrays["lengths"], basis) if "codes" in arrays else None
                write_shard(path.parent, arrays["image_ids"], contents, arrays["features"], coded or arrays["regions"])
                path.unlink()
                rewritten += 1
    if rewritten:
        yield f"{rewritten:,} files of features were written again with the contents of their images."
    if deleted:
        yield f"{deleted:,} files of features without regions were deleted; the worker analyzes their images again."


def _read_shard(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays of a shard of any version, and the name of the basis of its codes."""
    with safe_open(path, framework="numpy") as shard:
        return {name: shard.get_tensor(name) for name in shard.keys()}, (shard.metadata() or {}).get("basis", "")  # noqa: SIM118


def main() -> int:
    """Convert the project that the command line names."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    try:
        for sentence in convert_project(Path(sys.argv[1])):
            print(sentence)
    except AnnotatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
