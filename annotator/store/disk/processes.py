"""Names of processes, and of the temporary files that they write; process numbers alone are given again.

A process is named by its machine and the machine's start, its number, and its own start. In a container, which gives
the same numbers after each start, the start times tell a killed process from the one which has its number now.

A temporary file or folder is called `.NAME.PROCESS-RANDOM.part`. The files of a killed process can be removed at once
by the next one that writes there, without asking a clock, which may jump.
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

# seconds without a heartbeat, after which another process may have got the number of one of here
PID_REUSE_SECONDS = 900.0
ABANDONED_SECONDS = 3600.0  # without a change, for what a process of another machine was writing
_PART_NAME = re.compile(r"([0-9a-f]{8}-[0-9a-f]+-[0-9a-f]+)-[0-9a-f]{6}\.(?:[a-z]+\.?)?part(?:-[a-z]+)?$")


def process_exists(pid: int | None) -> bool:
    """Return whether a process of this machine has this number; False for None and 0."""
    if not pid:
        return False
    if os.name == "nt":  # signal 0 would end the process there; the heartbeat has to suffice
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def get_process_name() -> str:
    """Return the name of this process."""
    return f"{_get_machine_id()}-{os.getpid():x}-{_read_start_time(os.getpid()):x}"


def has_process_ended(name: str) -> bool | None:
    """Return whether the process of this name has ended; None where that cannot be known.

    It cannot be known for a process of another machine, for one of this machine before its last start, and where the
    system does not say when a process was started.
    """
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
    """A process's claim to something for itself; subclasses add the progress of its work.

    Attributes:
        pid, host: The number and the machine of the process.
        process: The name of the process (`get_process_name`); "" from older versions.
        started_at: The time of the claim, in unix seconds.
        heartbeat_at: The time of its last heartbeat, in unix seconds.
    """

    pid: int
    host: str
    process: str = ""
    started_at: float
    heartbeat_at: float


def has_claimant_ended(claim: Claim, silent_seconds: float) -> bool:
    """Return whether the process that holds a claim has ended.

    Args:
        claim: The claim, with the process and its last heartbeat.
        silent_seconds: Seconds without a heartbeat after which a process of another machine counts as ended.
    """
    gone = has_process_ended(claim.process)
    if gone is not None:
        return gone
    is_here = claim.host == socket.gethostname()
    if is_here and not process_exists(claim.pid):
        return True
    is_reused = is_here and (not claim.process or claim.process.startswith(f"{_get_machine_id()}-"))
    return not is_recent(claim.heartbeat_at, PID_REUSE_SECONDS if is_reused else silent_seconds)


def is_recent(at: float, seconds: float) -> bool:
    """Return whether a heartbeat (unix seconds) is less than `seconds` old.

    A heartbeat as far in the future is not recent either: the clock was set back, and a live process soon sends
    another.
    """
    return abs(time.time() - at) < seconds


def build_temporary_path(target: Path, kind: str = "") -> Path:
    """Return the temporary path under which this process writes `target`; its random part differs at each call.

    Args:
        target: The path of the finished file.
        kind: A word in the name that tells these files from other temporary ones; "" for none.
    """
    return target.with_name(f".{target.name}.{get_process_name()}-{uuid.uuid4().hex[:6]}.{kind and f'{kind}.'}part")


def is_temporary(name: str) -> bool:
    """Return whether a name is that of an unfinished file or folder, or of a file that SQLite keeps beside one."""
    return name.startswith(".") and (name.endswith(".part") or ".part-" in name[1:])


def is_abandoned(part: Path, older_than: float = ABANDONED_SECONDS) -> bool:
    """Return whether no process writes this temporary file or folder any more. Raises OSError where it is gone.

    Args:
        part: The temporary file or folder.
        older_than: Seconds since the last change after which it counts as abandoned, where its name does not say who
            wrote it, or the writer ran on another machine.
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
    """Return the start time of a process in ticks since the machine started; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
