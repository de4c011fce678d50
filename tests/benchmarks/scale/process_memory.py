"""The memory of another process while it works."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.02


@dataclass
class Memory:
    """The peak memory of a process so far, in MB; None where the system does not tell.

    Attributes:
        anonymous_mb: Memory that is no file, which the system could drop at any time (RssAnon).
        resident_mb: All memory, with mapped files (VmHWM).
    """

    anonymous_mb: float | None = None
    resident_mb: float | None = None

    def update_peaks(self, pid: int) -> None:
        """Update the peaks from a process; a process that has ended changes nothing."""
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            own, resident = (
                int(status.partition(f"{name}:")[2].split()[0]) * 1024 / 1e6 for name in ("RssAnon", "VmHWM")
            )
        except (OSError, IndexError, ValueError):  # gone, a zombie, or no Linux
            return
        self.anonymous_mb, self.resident_mb = max(self.anonymous_mb or 0.0, own), resident

    def build_figures(self, name: str) -> dict[str, float]:
        """Return name -> MB for the known peaks."""
        known = {"peak_mb": self.anonymous_mb, "resident_mb": self.resident_mb}
        return {f"{name}_{what}": round(value, 1) for what, value in known.items() if value is not None}


@contextmanager
def watch_memory(pid: int) -> Iterator[Memory]:
    """Yield the memory of a process, updated until the block ends."""
    memory, over = Memory(), threading.Event()

    def sample_memory() -> None:
        while not over.wait(SAMPLE_SECONDS):
            memory.update_peaks(pid)

    thread = threading.Thread(target=sample_memory, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()
        memory.update_peaks(pid)
