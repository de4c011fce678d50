"""The worker's state, progress, heartbeat, last error and log tail.

A thread writes the heartbeat (`beat`) and the main loop its progress (`report_state`), so a long computation is told
from a dead process. Only `load_worker_state` decides the worker's condition.
"""

import os
import time
import traceback
from dataclasses import dataclass
from enum import Enum

from annotator.humanize import format_duration
from annotator.settings import WORKER_HUNG_SECONDS, WORKER_TIMEOUT_SECONDS
from annotator.store.database.database import Database
from annotator.store.disk.open_files import open_file
from annotator.store.disk.processes import is_recent, process_exists
from annotator.store.disk.system_errors import translate_error
from annotator.training_extra import build_training_error, find_missing_training_modules

SLOW_TEXT = "slow: the machine is busy"


class WorkerCondition(Enum):
    """What the worker's process and its main loop do."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    SLOW = "slow"  # the process lives; its main loop made no progress for WORKER_TIMEOUT_SECONDS
    HUNG = "hung"  # the same for WORKER_HUNG_SECONDS
    STOPPED = "stopped"  # it ended by itself
    GONE = "gone"  # it ended without saying so
    NOT_INSTALLED = "not installed"  # no worker runs, and none can be started here: the extra `train` is missing


@dataclass(frozen=True)
class WorkerState:
    """The last report of the worker."""

    # activity text, "stopped" or "not started"
    state: str
    condition: WorkerCondition
    pid: int | None = None
    # heartbeat_at, progress_at, last_error_at: unix seconds, or None
    heartbeat_at: float | None = None
    progress_at: float | None = None
    done: int = 0
    # total steps, 0 if unknown
    of: int = 0
    last_error: str = ""
    last_error_at: float | None = None

    @property
    def alive(self) -> bool:
        """Return whether the worker works, perhaps slowly."""
        return self.condition in (WorkerCondition.RUNNING, WorkerCondition.SLOW)

    @property
    def reason(self) -> str:
        """Return the first line of the last error, or ""."""
        return self.last_error.partition("\n")[0]

    @property
    def advice(self) -> str:
        """Return the first paragraph of the last error in one line, or ""."""
        return " ".join(self.last_error.partition("\n\n")[0].split())

    @property
    def delay(self) -> str:
        """Return why the worker makes no progress, or "" where it does or is gone."""
        if self.condition is WorkerCondition.SLOW:
            return SLOW_TEXT
        if self.condition is WorkerCondition.HUNG and self.heartbeat_at and self.progress_at:
            return f"no progress for {format_duration(self.heartbeat_at - self.progress_at)}"
        return ""


class StartProblem:
    """The reason why the app cannot start its worker, kept in memory because the disk may be full."""

    def __init__(self) -> None:
        self.text = ""


def get_start_problem(db: Database) -> StartProblem:
    """Return this process's record of the reason why the worker does not start."""
    return db.caches.get("worker start problem", "", StartProblem, 1)


def report_state(db: Database, state: str, done: int = 0, total: int = 0) -> None:
    """Record this process as the worker, with its state and progress."""
    seconds = time.time()
    with db.writing(durable=False) as sql:
        sql.execute(
            'UPDATE worker SET pid = ?, state = ?, done = ?, "of" = ?, heartbeat_at = ?, progress_at = ? WHERE id = 1',
            [os.getpid(), state, done, total, seconds, seconds],
        )


def beat(db: Database, silent_seconds: float) -> None:
    """Record that this process lives.

    Args:
        silent_seconds: Seconds since the main loop's last progress, by a clock that does not jump.
    """
    seconds = time.time()
    with db.writing(durable=False) as sql:
        sql.execute(
            "UPDATE worker SET pid = ?, heartbeat_at = ?, progress_at = ? WHERE id = 1",
            [os.getpid(), seconds, seconds - silent_seconds],
        )


def record_error(db: Database, error: str) -> None:
    """Store the worker's last error, where empty text clears it.

    Args:
        error: Reason in the first line, advice in the first paragraph, details after it.
    """
    with db.writing() as sql:
        sql.execute(
            "UPDATE worker SET last_error = ?, last_error_at = ? WHERE id = 1", [error, time.time() if error else None]
        )


def describe_exception(error: Exception) -> str:
    """Return the text of an exception for `record_error`, with a traceback if it is a programming error."""
    if told := translate_error(error):
        return str(told)
    reason = traceback.format_exception_only(error)[-1].strip()
    return f"{reason}\n\n{''.join(traceback.format_exception(error))}"


def load_worker_state(db: Database) -> WorkerState:
    """Return the worker's last report, and its condition."""
    row = db.rows(
        'SELECT state, pid, heartbeat_at, progress_at, done, "of", last_error, last_error_at FROM worker WHERE id = 1'
    )[0]
    condition = _find_condition(row["state"], row["pid"], row["heartbeat_at"], row["progress_at"])
    if condition in (WorkerCondition.RUNNING, WorkerCondition.SLOW, WorkerCondition.HUNG):
        return WorkerState(**row, condition=condition)
    if missing := find_missing_training_modules():
        row["last_error"], condition = str(build_training_error(missing)), WorkerCondition.NOT_INSTALLED
    elif problem := get_start_problem(db).text:
        row["last_error"] = problem
    return WorkerState(**row, condition=condition)


def _find_condition(
    state: str, pid: int | None, heartbeat_at: float | None, progress_at: float | None
) -> WorkerCondition:
    if state in (WorkerCondition.NOT_STARTED.value, WorkerCondition.STOPPED.value):
        return WorkerCondition(state)
    if not heartbeat_at or not process_exists(pid) or not is_recent(heartbeat_at, WORKER_TIMEOUT_SECONDS):
        return WorkerCondition.GONE
    silent_seconds = heartbeat_at - (progress_at or heartbeat_at)  # not until now: the clock may have jumped
    if silent_seconds < WORKER_TIMEOUT_SECONDS:
        return WorkerCondition.RUNNING
    return WorkerCondition.SLOW if silent_seconds < WORKER_HUNG_SECONDS else WorkerCondition.HUNG


def read_log_tail(db: Database, max_bytes: int) -> bytes:
    """Return the last `max_bytes` of the worker's log, or b"". Symlinks are refused."""
    path = db.paths.worker_log
    try:
        if path.is_symlink():
            return b""
        with open_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
            return file.read(max_bytes)
    except OSError:
        return b""
