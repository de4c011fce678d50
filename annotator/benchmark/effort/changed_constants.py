"""Autopilot with one of its constants changed, to see what each is worth: CHANGES is the table.

Left out are bounds that only keep an answer quick (CLASSES_TRIED, IMAGES_TRIED, UNLABELED), LONGEST, which replaces
EXPLORED where there are many classes, and what concerns relabels, which a perfect person makes none of.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from annotator.queues.autopilot import acquisition, planner
from annotator.snapshot import guesses

CHANGES: dict[str, tuple[object, ...]] = {
    "EXPLORATION_CLICKS": ((0.0, 20, 20), (0.2, 20, 500)),
    "CLICKED_FIRST": ("random", "diversity"),
    "EXPLORED": (0, 8, 40),
    "SHARP": (0.15, 0.6),
    "RANDOM_SHARE": (0.0, 0.1),
    "PRESS": (0.0, 4.0),
    "RULED_OUT": (0.0, 0.05),
    "LEARNING": (0.0, 0.5),
    "SIZES": ((24,), (12, 24, 48)),
    "NEW": (12, 96),
    "LIKELY": (0.3, 0.7),
}


def changes() -> Iterator[tuple[str, object]]:
    """Yield every constant with each value that is tried in its place."""
    return ((name, value) for name, values in CHANGES.items() for value in values)


@contextmanager
def changed(name: str, value: object) -> Iterator[None]:
    """Give the constant another value for the duration of the block, in this process only."""
    owner = next(module for module in (planner, acquisition, guesses) if hasattr(module, name))
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
