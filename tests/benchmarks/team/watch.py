"""The memory and the processor time that the server's process takes while a team works, from /proc."""

import os
import threading
import time
from pathlib import Path

import numpy as np

BYTES_PER_MEGABYTE = 1 << 20
SETTLING_SHARE = 1 / 3  # the share of the time at the start that is left out of the slope: caches fill


class ServerWatch:
    """A thread that samples one process every second until `end`."""

    def __init__(self, pid: int):
        self._pid, self._ending = pid, threading.Event()
        self._moments: list[tuple[float, float]] = []  # seconds, MB
        self._began, self._busy_before = time.monotonic(), _read_busy_seconds(pid)
        self._thread = threading.Thread(target=self._sample_memory, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, float]:
        """Return the memory at the start, at the end and at most, its growth a minute, and the mean processors used."""
        self._ending.set()
        self._thread.join()
        seconds, megabytes = np.array(self._moments).T
        late = seconds >= seconds[0] + SETTLING_SHARE * (seconds[-1] - seconds[0])
        slope = np.polyfit(seconds[late], megabytes[late], 1)[0] if late.sum() > 2 else float("nan")
        return {
            "server_memory_first_mb": float(megabytes[0]),
            "server_memory_last_mb": float(megabytes[-1]),
            "server_memory_most_mb": float(megabytes.max()),
            "server_memory_growth_mb_a_minute": float(60 * slope),
            "server_processors": (_read_busy_seconds(self._pid) - self._busy_before) / (time.monotonic() - self._began),
        }

    def _sample_memory(self) -> None:
        while True:
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            self._moments.append((time.monotonic(), pages * os.sysconf("SC_PAGE_SIZE") / BYTES_PER_MEGABYTE))
            if self._ending.wait(1.0):
                return


def _read_busy_seconds(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
