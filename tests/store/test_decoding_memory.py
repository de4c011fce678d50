"""Decoding stays within a number of bytes, however many threads decode."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from harness.served import until
from PIL import Image

from annotator.store.pictures import decoding
from annotator.store.pictures.decoding_budget import DECODING_BUDGET, MemoryBudget

TEN_AT_ONCE = """
import resource, sys, threading
from pathlib import Path
from annotator.store.pictures import decoding_budget as memory
from annotator.store.pictures import decoding as pixels
pixels.open_rgb(Path(sys.argv[1]) / "small.png")
pixels.DECODING_BUDGET = memory.MemoryBudget(50_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
threads = [threading.Thread(target=pixels.open_rgb, args=[path, (9, 9)]) for path in Path(sys.argv[1]).glob("deep*")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(threads), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, pixels.DECODING_BUDGET.granted_at_most)
"""


def test_decoding_memory_budget_serves_reservations_in_order_without_being_exceeded():
    budget, order, release = MemoryBudget(100), [], threading.Event()

    def take(name: str, amount: int) -> None:
        with budget.reserve(amount):
            order.append(name)
            release.wait(120)

    threads = []
    for name, amount, waiting in (("half", 50, 0), ("huge", 1000, 1), ("small", 10, 2)):
        threads.append(threading.Thread(target=take, args=[name, amount]))
        threads[-1].start()
        until(lambda waiting=waiting: len(order) == 1 and len(budget._waiting) == waiting)
    assert order == ["half"], "the small one waits behind the huge one, although it would fit"
    release.set()
    for thread in threads:
        thread.join(120)
    assert order == ["half", "huge", "small"]
    assert (budget.granted_at_most, budget._free, len(budget._waiting)) == (100, 100, 0)


def test_failed_image_decoding_returns_its_memory_to_the_budget(tmp_path):
    (tmp_path / "cut.png").write_bytes(_deep(tmp_path / "whole.png", 300).read_bytes()[:-3000])
    for _ in range(3):
        try:
            decoding.open_rgb(tmp_path / "cut.png")
        except decoding.BadImage:
            continue
        raise AssertionError("a file that is cut off was read")
    assert DECODING_BUDGET._free == DECODING_BUDGET.size


@pytest.mark.slow
@pytest.mark.process
def test_concurrent_decoding_of_ten_16_bit_images_stays_within_the_memory_budget(tmp_path):
    for number in range(10):
        _deep(tmp_path / f"deep{number}.png", 2000)
    _deep(tmp_path / "small.png", 20)
    told = subprocess.run(
        [sys.executable, "-c", TEN_AT_ONCE, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    threads, kilobytes, granted = map(int, told.split())
    assert (threads, granted) == (10, 32_000_000), "one after the other: two would be 64 MB"
    assert kilobytes < 100_000


def _deep(path, side: int):
    values = np.random.default_rng(0).integers(0, 4096, (side, side), dtype=np.uint16)
    values[:, 50:] = 7  # large in memory, small on the disk
    Image.fromarray(values).save(path)
    return path
