"""The two types of progress callbacks for long work. An exception raised by one cancels the work.

Both receive the completed and the total amount in the same unit. A total of 0 means unknown.
"""

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]  # (done, of)
StepCallback = Callable[[str, int, int], None]  # (the present step in words, done, of)


def ignore_progress(done: int, of: int) -> None:
    """Do nothing: the default ProgressCallback."""


def ignore_steps(step: str, done: int, of: int) -> None:
    """Do nothing: the default StepCallback."""
