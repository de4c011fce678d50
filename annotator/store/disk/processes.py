"""Unique names of processes and of the temporary files that they write.

Process ids are reused, so a name includes machine, boot and start time. Temporary files are named
`.NAME.PROCESS-RANDOM.part`.
"""

import hashlib
import os
import re
import socket
import time
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# seconds without a heartbeat, after which another process may have got the number of one of here
PID_REUSE_SECONDS = 900.0
TICKS_PER_SECOND = 100  # of start times, as Linux counts them
ABANDONED_SECONDS = 3600.0  # without a change, for what a process of another machine was writing
_PART_NAME = re.compile(r"([0-9a-f]{8}-[0-9a-f]+-[0-9a-f]+)-[0-9a-f]{6}\.(?:[a-z]+\.?)?part(?:-[a-z]+)?$")


def process_exists(pid: int | None) -> bool:
    """Return whether this process id is in use on this machine."""
    return bool(pid) and _import_psutil().pid_exists(pid)


def get_process_name() -> str:
    return f"{_get_machine_id()}-{os.getpid():x}-{_read_start_time(os.getpid()):x}"


def has_process_ended(name: str) -> bool | None:
    """Return whether the named process has ended, or None if unknown."""
    machine, _, rest = name.partition("-")
    try:
        pid, started = (int(part, 16) for part in rest.split("-"))
    except ValueError:
        return None
    if machine != _get_machine_id():
        return None
    if not process_exists(pid):
        return True
    return _read_start_time(pid) != started if started else None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A process's claim to exclusive work. Subclasses add the progress of the work."""

    # pid, host: process id and machine name
    pid: int
    host: str
    # unique name of the process (`get_process_name`), or "" from older versions
    process: str = ""
    # unix seconds of the claim
    started_at: float
    # unix seconds of the last heartbeat
    heartbeat_at: float


def has_claimant_ended(claim: Claim, silent_seconds: float) -> bool:
    """Return whether a process with a claim has ended (a remote one: no heartbeat for `silent_seconds`)."""
    gone = has_process_ended(claim.process)
    if gone is not None:
        return gone
    is_here = claim.host == socket.gethostname()
    if is_here and not process_exists(claim.pid):
        return True
    is_reused = is_here and (not claim.process or claim.process.startswith(f"{_get_machine_id()}-"))
    return not is_recent(claim.heartbeat_at, PID_REUSE_SECONDS if is_reused else silent_seconds)


def is_recent(at: float, seconds: float) -> bool:
    """Return whether a heartbeat is less than `seconds` away from now."""
    return abs(time.time() - at) < seconds


def build_temporary_path(target: Path, kind: str = "") -> Path:
    """Return a random temporary path for writing `target` by this process."""
    return target.with_name(f".{target.name}.{get_process_name()}-{uuid.uuid4().hex[:6]}.{kind and f'{kind}.'}part")


def is_temporary(name: str) -> bool:
    """Return whether a name belongs to an unfinished file or folder."""
    return name.startswith(".") and (name.endswith(".part") or ".part-" in name[1:])


def is_abandoned(part: Path, older_than: float = ABANDONED_SECONDS) -> bool:
    """Return whether no process writes this temporary path any more, or raise OSError.

    Args:
        older_than: Seconds since the last change, for unknown or remote writers.
    """
    match = _PART_NAME.search(part.name)
    gone = has_process_ended(match[1]) if match else None
    return time.time() - part.lstat().st_mtime >= older_than if gone is None else gone


@cache
def _get_machine_id() -> str:
    facts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            facts.append(str(Path(path).readlink()) if path.endswith("pid") else Path(path).read_text())
        except OSError:  # not Linux
            facts.append("")
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:8]


def _read_start_time(pid: int) -> int:
    """Return a process's start time in ticks, or 0 if unknown."""
    psutil = _import_psutil()
    if psutil.MACOS:  # they change with the clock there
        return 0
    try:
        created = psutil.Process(pid).create_time()
    except psutil.Error:
        return 0
    # On Linux both move when the clock is set, and their difference does not.
    return round(TICKS_PER_SECOND * (created - (psutil.boot_time() if psutil.LINUX else 0)))


def _import_psutil() -> Any:
    import psutil  # here, because it takes 5 ms of each start

    return psutil
