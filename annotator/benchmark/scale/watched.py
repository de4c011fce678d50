"""The memory of another process while it works."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.02  # seconds


@dataclass
class Memory:
    """The peak memory of a process so far, in MB; None where the system does not tell.

    Attributes:
        own: Memory that is no file, which the system could drop at any time (RssAnon).
        resident: All memory, with mapped files (VmHWM).
    """

    own: float | None = None
    resident: float | None = None

    def look(self, pid: int) -> None:
        """Update the peaks from a process; a process that has ended changes nothing."""
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            own, resident = (
                int(status.partition(f"{name}:")[2].split()[0]) * 1024 / 1e6 for name in ("RssAnon", "VmHWM")
            )
        except (OSError, IndexError, ValueError):  # gone, a zombie, or no Linux
            return
        self.own, self.resident = max(self.own or 0.0, own), resident

    def figures(self, name: str) -> dict[str, float]:
        """Return name -> MB for the known peaks."""
        known = {"peak_mb": self.own, "resident_mb": self.resident}
        return {f"{name}_{what}": round(value, 1) for what, value in known.items() if value is not None}


@contextmanager
def watched(pid: int) -> Iterator[Memory]:
    """Yield the memory of a process, updated until the block ends."""
    memory, over = Memory(), threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            memory.look(pid)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()
        memory.look(pid)
