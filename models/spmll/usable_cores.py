"""The number of cores to use, all of the machine where the system is not Linux."""

import os


def count_usable_cores() -> int:
    """Return the cores of this process, perhaps limited by a container."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
