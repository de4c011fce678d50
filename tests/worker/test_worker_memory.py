"""What the worker's process keeps of the memory that it has freed."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from harness.served import until
from harness.worker_runs import start

from annotator.memory_allocator import MAX_ARENAS
from annotator.store.database import heartbeat

HEAP_BYTES = 64 << 20  # of one more heap of glibc, which begins at a multiple of that


def count_heaps(pid: int) -> int:
    """The heaps of glibc: that of the program, and more for threads, of which a part is not yet accessible."""
    areas = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights = line.split()[:2]
        first, end = (int(part, 16) for part in place.split("-"))
        areas.append((first, end, rights))
    return 1 + sum(
        used[0] % HEAP_BYTES == 0 and used[2] == "rw-p" and rest == (used[1], used[0] + HEAP_BYTES, "---p")
        for used, rest in pairwise(areas)
    )


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries have no heaps per thread")
def test_worker_has_no_more_than_two_heaps_for_all_its_threads(db, project, processes):
    worker = start(project, processes)
    until(lambda: heartbeat.load_worker_state(db).state in ("embedding", "idle"))
    assert len(list(Path(f"/proc/{worker.pid}/task").iterdir())) > MAX_ARENAS
    assert count_heaps(worker.pid) <= MAX_ARENAS
