"""The process that embeds the images of a project outside of its worker, and its progress: the setting `embedding`.

`annotator embed` claims the project, so that two of them never do the same work; the worker, which embeds by itself,
leaves the images alone meanwhile. A claim ends with its process: on this machine that is seen at once, for another
machine by its heartbeats.
"""

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

import sqlite_utils

from annotator.errors import AlreadyRunning
from annotator.store.database.database import Database
from annotator.store.disk.processes import get_process_name, has_claimant_ended

STATE_SETTING = "embedding"
CLAIM_TIMEOUT_SECONDS = 60.0  # a claim of another machine without a heartbeat for so long has ended


@dataclass(frozen=True)
class EmbeddingState:
    """The state of a running `annotator embed`."""

    on: str  # as it was asked for: "local", "ray", "ray://..."
    pid: int
    host: str
    started_at: float  # unix seconds
    heartbeat_at: float
    done: int = 0  # images with features now
    of: int = 0
    images_a_second: float = 0.0  # recently, all workers together
    workers: int = 0
    nodes: tuple[tuple[str, float], ...] = ()  # name of a machine, images a second
    note: str = ""  # the reason for a delay, such as a machine that is left out
    process: str = ""  # its name (processes.py); "": of an older version

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds until all images have features; None while the rate is not known."""
        return (self.of - self.done) / self.images_a_second if self.images_a_second > 0 else None


def claim(db: Database, on: str) -> EmbeddingState:
    """Claim the embedding of the project's images. Raises AlreadyRunning when another process has it."""
    seconds = time.time()
    mine = EmbeddingState(on, os.getpid(), socket.gethostname(), seconds, seconds, process=get_process_name())
    with db.writing() as sql:
        other = get_running(db)
        if other is not None:
            raise AlreadyRunning(
                f"The images of {db.paths.project} are being embedded already: on {other.on}, by process "
                f"{other.pid} of {other.host}, {other.done:,} of {other.of:,} so far.\n"
                "    Wait for it, or end that process: what it has embedded is kept, and the next one goes on."
            )
        _write_state(sql, asdict(mine))
    return mine


def report(db: Database, state: EmbeddingState) -> None:
    """Store the state of this process, as a heartbeat."""
    with db.writing(durable=False) as sql:
        _write_state(sql, asdict(state))


def release(db: Database) -> None:
    """End this process's claim; the claim of another process stays."""
    with db.writing() as sql:
        state = _read_state(db)
        if state is not None and (state.pid, state.host) == (os.getpid(), socket.gethostname()):
            _write_state(sql, None)


def get_running(db: Database) -> EmbeddingState | None:
    """Return the state of the `annotator embed` that runs now; None without one."""
    state = _read_state(db)
    if state is None:
        return None
    return None if has_claimant_ended(state, CLAIM_TIMEOUT_SECONDS) else state


def _read_state(db: Database) -> EmbeddingState | None:
    value = db.get_setting(STATE_SETTING)
    if not isinstance(value, dict):
        return None
    facts = cast(dict[str, Any], value)
    try:
        facts.setdefault("process", "")  # of a version that did not note it
        known = {field.name: facts[field.name] for field in fields(EmbeddingState)}
        known["nodes"] = tuple((str(name), float(rate)) for name, rate in known["nodes"])
        return EmbeddingState(**known)
    except (KeyError, TypeError, ValueError):  # of another version
        return None


def _write_state(sql: sqlite_utils.Database, value: dict[str, Any] | None) -> None:
    sql.execute(
        "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [STATE_SETTING, json.dumps(value)],
    )
