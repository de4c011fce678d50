"""The two callbacks by which long work reports its progress; what they raise ends the work.

Both get the amount that is done and the total, in the same unit; a total of 0 is not known.
"""

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]  # (done, of)
StepCallback = Callable[[str, int, int], None]  # (the present step in words, done, of)


def ignore_progress(done: int, of: int) -> None:
    """Report nothing."""


def ignore_steps(step: str, done: int, of: int) -> None:
    """Report nothing."""
