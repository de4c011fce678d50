"""Adapting the network of a project: the process that does it and its progress, people's requests, and the result.

Three settings. `adapting` is the state of the process that is at work, with heartbeats; one at a time.
`adapting_wanted` is what people ask for: the worker starts the process for "run" and "estimate", again after a kill,
and the process ends for "pause". `adapting_result` is the result of the last one and stays until the next one begins.
"""

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

from annotator.errors import AlreadyRunning
from annotator.store.database.database import Database
from annotator.store.disk.processes import has_ended, this_process

KEY, WANTED, RESULT = "adapting", "adapting_wanted", "adapting_result"
SILENT_SECONDS = 60.0  # a claim of another machine without a heartbeat for so long has ended
Wanted = Literal["run", "estimate", "pause", ""]


@dataclass(frozen=True)
class Adapting:
    """The state of a process that adapts a project's network.

    Attributes:
        on: The place that was asked for: "local", "ray", "ray://...".
        doing: The present step, in words.
        done, of: The progress of that step; 0 where it is not known.
        seconds_left: Until everything is done; None while that is not known.
        process: The name of the process (processes.py); "": of an older version.
    """

    on: str
    pid: int
    host: str
    started_at: float  # unix seconds
    heartbeat_at: float
    doing: str = "starting"
    done: int = 0
    of: int = 0
    seconds_left: float | None = None
    process: str = ""


def claim(db: Database, on: str) -> Adapting:
    """Claim the adapting of this project's network. Raises AlreadyRunning when another process has it."""
    seconds = time.time()
    mine = Adapting(on, os.getpid(), socket.gethostname(), seconds, seconds, process=this_process())
    with db.writing():
        other = running(db)
        if other is not None:
            raise AlreadyRunning(
                f"The network of {db.paths.project} is being adapted already, by process {other.pid} of {other.host} "
                f"({other.doing}).\n    Wait for it, or end that process: the next one goes on from its last epoch."
            )
        db.set_setting(KEY, asdict(mine))
    return mine


def report(db: Database, state: Adapting) -> None:
    """Store the state of this process, as a heartbeat."""
    with db.writing(durable=False) as sql:
        sql.execute(
            "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [KEY, json.dumps(asdict(state))],
        )


def release(db: Database) -> None:
    """End this process's claim; the claim of another process stays."""
    with db.writing():
        state = _read(db)
        if state is not None and (state.pid, state.host) == (os.getpid(), socket.gethostname()):
            db.set_setting(KEY, None)


def running(db: Database) -> Adapting | None:
    """Return the state of the process that adapts the project's network now; None without one."""
    state = _read(db)
    if state is None:
        return None
    return None if has_ended(state, SILENT_SECONDS) else state


def wanted(db: Database) -> Wanted:
    """Return what people last asked for: "run", "estimate" or "pause"; "" for nothing."""
    value = db.setting(WANTED, "")
    return cast(Wanted, value) if value in ("run", "estimate", "pause") else ""


def want(db: Database, what: Wanted) -> None:
    """Store what people ask for; "" when it is done."""
    db.set_setting(WANTED, what)


def result(db: Database) -> dict[str, Any]:
    """Return the result of the last adapting: "kind" and the facts that belong to it; {} before the first."""
    value = db.setting(RESULT, {})
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def note_result(db: Database, facts: dict[str, Any]) -> None:
    """Store the result of an adapting, JSON values by name."""
    db.set_setting(RESULT, facts)


def _read(db: Database) -> Adapting | None:
    value = db.setting(KEY)
    if not isinstance(value, dict):
        return None
    facts = cast(dict[str, Any], value)
    try:
        facts.setdefault("process", "")  # of a version that did not note it
        return Adapting(**{field.name: facts[field.name] for field in fields(Adapting)})
    except (KeyError, TypeError):  # of another version
        return None
