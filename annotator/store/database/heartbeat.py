"""The worker's row: its state, progress, last heartbeat and last error; and the end of its log."""

import os
import time
from dataclasses import dataclass

from annotator.settings import WORKER_TIMEOUT_SECONDS
from annotator.store.database.database import Database
from annotator.store.disk.open_files import open_file
from annotator.store.disk.processes import is_recent, process_exists


@dataclass(frozen=True)
class WorkerState:
    """The last report of the worker.

    Attributes:
        state: What it is doing, in words; "stopped" or "not started" without a worker.
        alive: Its heartbeat is recent and its process has not ended.
        pid: The id of its process; None before the first one.
        heartbeat_at: Unix seconds of its last heartbeat; None before the first one.
        done: Steps of its present work that are done.
        of: Steps of its present work; 0 where they are not known.
        last_error: The text of its last error, "" for none.
        last_error_at: Unix seconds of that error; None for none.
    """

    state: str
    alive: bool
    pid: int | None = None
    heartbeat_at: float | None = None
    done: int = 0
    of: int = 0
    last_error: str = ""
    last_error_at: float | None = None


def beat(db: Database, state: str, done: int = 0, total: int = 0) -> None:
    """Record that this process is the worker, its state, and that `done` of `of` steps are done."""
    with db.writing(durable=False) as sql:
        sql.execute(
            'UPDATE worker SET pid = ?, state = ?, done = ?, "of" = ?, heartbeat_at = ? WHERE id = 1',
            [os.getpid(), state, done, total, time.time()],
        )


def record_error(db: Database, error: str) -> None:
    """Store the worker's last error in full; an empty text clears it."""
    with db.writing() as sql:
        sql.execute(
            "UPDATE worker SET last_error = ?, last_error_at = ? WHERE id = 1", [error, time.time() if error else None]
        )


def load_worker_state(db: Database) -> WorkerState:
    """Return the worker's last report, and whether the worker is alive."""
    row = db.rows('SELECT state, pid, heartbeat_at, done, "of", last_error, last_error_at FROM worker WHERE id = 1')[0]
    recent = bool(row["heartbeat_at"]) and is_recent(row["heartbeat_at"], WORKER_TIMEOUT_SECONDS)
    alive = recent and row["state"] not in ("stopped", "not started") and process_exists(row["pid"])
    return WorkerState(**row, alive=alive)


def read_log_tail(db: Database, max_bytes: int) -> bytes:
    """Return the last `most` bytes of the log of the worker that the app started; b"" where there is none.

    A link in its place is not followed: a project may come from somebody else, and point at anything.
    """
    path = db.paths.worker_log
    try:
        if path.is_symlink():
            return b""
        with open_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
            return file.read(max_bytes)
    except OSError:
        return b""
