"""Multi-threaded passes over many rows in independent blocks.

A busy core delays only its own block.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch

from spmll.linear.training import one_thread

MIN_BLOCKS_PER_THREAD = 4  # a thread: for fewer, none is started
MAX_THREADS = 8  # threads


def run_in_blocks(rows: int, size: int, work: Callable[[slice], None], tell: Callable[[], None] = lambda: None) -> None:
    """Call work(rows) for slices that cover all rows, in any order, in several threads.

    Args:
        size: Maximum rows per slice.
        work: Runs with one torch thread.
        tell: Called between blocks. Exceptions end the pass.
    """
    threads = min(torch.get_num_threads(), MAX_THREADS, -(-rows // size) // MIN_BLOCKS_PER_THREAD)
    starts = iter(range(0, rows, size))  # each next() is one step of the interpreter: threads share it

    def blocks() -> Iterator[slice]:
        for start in starts:
            yield slice(start, min(start + size, rows))

    ended = threading.Event()

    def help_out() -> None:
        torch.set_num_threads(1)
        for block in blocks():
            if ended.is_set():
                return
            work(block)

    with one_thread():
        if threads < 2:
            for block in blocks():
                tell()
                work(block)
            return
        with ThreadPoolExecutor(threads - 1, "blocks") as pool:
            helpers = [pool.submit(help_out) for _ in range(threads - 1)]
            try:
                for block in blocks():
                    tell()
                    work(block)
                    if any(helper.done() and helper.exception() for helper in helpers):
                        break
            finally:
                ended.set()
            for helper in helpers:
                helper.result()
