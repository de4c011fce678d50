"""Claims to work that one process at a time does, such as embedding a project's images.

A claim is a project setting and ends with its process, on another machine by missing heartbeats (disk/processes.py).
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any, Generic, TypeVar, cast

from annotator.errors import AlreadyRunning
from annotator.store.database.database import Database
from annotator.store.disk.processes import Claim, get_process_name, has_claimant_ended

CLAIM_TIMEOUT_SECONDS = 60.0  # a claim of another machine without a heartbeat for so long has ended

State = TypeVar("State", bound=Claim)


class ProcessClaim(Generic[State]):
    """The claim of one process to one kind of work, with that process's stored state."""

    def __init__(self, setting: str, state_type: type[State]):
        self._setting, self._state_type = setting, state_type

    def take(self, db: Database, describe_running: Callable[[State], str], **facts: Any) -> State:
        """Claim the work for this process, and return its state.

        Args:
            describe_running: Return the error message for the state of the process that holds the claim.
            facts: The state's fields besides process and times.

        Raises:
            AlreadyRunning: Another process holds the claim.
        """
        seconds = time.time()
        mine = self._state_type(
            pid=os.getpid(),
            host=socket.gethostname(),
            process=get_process_name(),
            started_at=seconds,
            heartbeat_at=seconds,
            **facts,
        )
        with db.writing():
            other = self.get_running(db)
            if other is not None:
                raise AlreadyRunning(describe_running(other))
            db.set_setting(self._setting, asdict(mine))
        return mine

    def report(self, db: Database, state: State) -> None:
        db.set_setting(self._setting, asdict(state), durable=False)

    def release(self, db: Database) -> None:
        with db.writing():
            state = self._read_state(db)
            mine = os.getpid(), socket.gethostname(), get_process_name()
            if state is not None and (state.pid, state.host, state.process) == mine:
                db.set_setting(self._setting, None)

    def get_running(self, db: Database) -> State | None:
        """Return the state of the process that is doing the work, or None."""
        state = self._read_state(db)
        return None if state is None or has_claimant_ended(state, CLAIM_TIMEOUT_SECONDS) else state

    def _read_state(self, db: Database) -> State | None:
        value = db.get_setting(self._setting)
        if not isinstance(value, dict):
            return None
        # An older version did not note the process.
        facts: dict[str, Any] = {"process": "", **cast(dict[str, Any], value)}
        try:
            return self._state_type(**{field.name: facts[field.name] for field in fields(self._state_type)})
        except (KeyError, TypeError, ValueError):  # of another version
            return None
