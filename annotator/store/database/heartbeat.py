"""The worker's state, progress, heartbeat, last error and log tail."""

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
        state: Activity text, "stopped" or "not started".
        heartbeat_at, last_error_at: Unix seconds, or None.
        of: Total steps, 0 if unknown.
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
    """Record this process as the worker, with its state and progress."""
    with db.writing(durable=False) as sql:
        sql.execute(
            'UPDATE worker SET pid = ?, state = ?, done = ?, "of" = ?, heartbeat_at = ? WHERE id = 1',
            [os.getpid(), state, done, total, time.time()],
        )


def record_error(db: Database, error: str) -> None:
    """Store the worker's last error, where empty text clears it."""
    with db.writing() as sql:
        sql.execute(
            "UPDATE worker SET last_error = ?, last_error_at = ? WHERE id = 1", [error, time.time() if error else None]
        )


def load_worker_state(db: Database) -> WorkerState:
    """Return the worker's last report, and whether it is alive."""
    row = db.rows('SELECT state, pid, heartbeat_at, done, "of", last_error, last_error_at FROM worker WHERE id = 1')[0]
    recent = bool(row["heartbeat_at"]) and is_recent(row["heartbeat_at"], WORKER_TIMEOUT_SECONDS)
    alive = recent and row["state"] not in ("stopped", "not started") and process_exists(row["pid"])
    return WorkerState(**row, alive=alive)


def read_log_tail(db: Database, max_bytes: int) -> bytes:
    """Return the last `max_bytes` of the worker's log, or b"".

    Symlinks are refused.
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
