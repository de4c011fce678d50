"""The tagger that is at work on a project: its claim, its progress, and what people ask for.

Two settings. `tagging` is the state of the process that is at work, with heartbeats; one at a time. `tagging_wanted` is
what people ask for on the Settings page: the worker starts the process, again after a kill, and the process ends when
it is no longer wanted.
"""

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from annotator.errors import AlreadyRunning
from annotator.store.database.database import Database
from annotator.store.disk.processes import get_process_name, has_claimant_ended

STATE_SETTING, REQUEST_SETTING, STOP_SETTING, RESULT_SETTING = (
    "tagging",
    "tagging_wanted",
    "tagging_stop",
    "tagging_result",
)
CLAIM_TIMEOUT_SECONDS = 60.0  # a claim of another machine without a heartbeat for so long has ended


@dataclass(frozen=True)
class TaggingState:
    """The state of a process that asks a model about images.

    Attributes:
        url, model: The server and the model.
        name: The source of predictions that it writes.
        done, of: Images; 0 where it is not known.
        per_minute: Images a minute.
        seconds_left: None while that is not known.
        without: Questions that stayed without an answer.
        error: Why the last question stayed without one; "" where it did not.
        process: The name of the process (processes.py).
    """

    url: str
    model: str
    name: str
    pid: int
    host: str
    started_at: float  # unix seconds
    heartbeat_at: float
    process: str
    done: int = 0
    of: int = 0
    per_minute: float = 0.0
    seconds_left: float | None = None
    without: int = 0
    error: str = ""


@dataclass(frozen=True)
class TaggingRequest:
    """What somebody asks for on the Settings page.

    Attributes:
        url, model: The server and the model.
        may_leave: The images may leave this machine.
        by: Who asks.
    """

    url: str
    model: str
    may_leave: bool
    by: str


def claim(db: Database, url: str, model: str, name: str) -> TaggingState:
    """Claim the tagging of this project. Raises AlreadyRunning when another process has it."""
    seconds = time.time()
    mine = TaggingState(url, model, name, os.getpid(), socket.gethostname(), seconds, seconds, get_process_name())
    with db.writing():
        other = get_running(db)
        if other is not None:
            raise AlreadyRunning(
                f"Another tagger is at work on {db.paths.project}: process {other.pid} of {other.host} asks "
                f"{other.model}.\n"
                "    Wait for it, or stop it on the Settings page; what it has said stays."
            )
        db.set_setting(STATE_SETTING, asdict(mine))
        db.set_setting(STOP_SETTING, None)
    return mine


def report(db: Database, state: TaggingState) -> None:
    """Store the state of this process, as a heartbeat."""
    with db.writing(durable=False) as sql:
        sql.execute(
            "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [STATE_SETTING, json.dumps(asdict(state))],
        )


def release(db: Database, mine: TaggingState) -> None:
    """End this process's claim; the claim of another process stays."""
    with db.writing():
        state = _read_state(db)
        if state is not None and (state.pid, state.host) == (mine.pid, mine.host):
            db.set_setting(STATE_SETTING, None)


def get_running(db: Database) -> TaggingState | None:
    """Return the state of the process that is at work now; None without one."""
    state = _read_state(db)
    return None if state is None or has_claimant_ended(state, CLAIM_TIMEOUT_SECONDS) else state


def get_request(db: Database) -> TaggingRequest | None:
    """Return what somebody asked for last; None for nothing."""
    value = db.get_setting(REQUEST_SETTING)
    try:
        return TaggingRequest(**cast(dict[str, Any], value)) if isinstance(value, dict) else None
    except TypeError:  # of another version
        return None


def set_request(db: Database, request: TaggingRequest | None) -> None:
    """Store what is asked for; None: nothing any more, and a process that is at work ends soon."""
    db.set_setting(REQUEST_SETTING, request and asdict(request))
    if request is None and (state := get_running(db)) is not None:
        db.set_setting(STOP_SETTING, state.process)
    elif request is not None:
        db.set_setting(RESULT_SETTING, None)


def should_stop(db: Database, mine: TaggingState) -> bool:
    """Return whether somebody wants this process to end."""
    return db.get_setting(STOP_SETTING) == mine.process


def get_result(db: Database) -> dict[str, Any]:
    """Return what the last tagger told at its end, {"name", "images", "without", "error", "at"}; {} before any."""
    value = db.get_setting(RESULT_SETTING)
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def set_result(db: Database, facts: dict[str, Any]) -> None:
    """Store what a tagger tells at its end, JSON values by name, and that it is no longer wanted."""
    db.set_setting(RESULT_SETTING, facts)
    db.set_setting(REQUEST_SETTING, None)


def _read_state(db: Database) -> TaggingState | None:
    value = db.get_setting(STATE_SETTING)
    if not isinstance(value, dict):
        return None
    facts = cast(dict[str, Any], value)
    try:
        return TaggingState(**{field.name: facts[field.name] for field in fields(TaggingState)})
    except (KeyError, TypeError):  # of another version
        return None
