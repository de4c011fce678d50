"""Variants of Autopilot with one constant changed, to measure its effect. TRIED_VALUES lists them."""

from collections.abc import Iterator
from contextlib import contextmanager

from annotator.queues.autopilot import acquisition, planner
from annotator.snapshot import preset_threshold

TRIED_VALUES: dict[str, tuple[object, ...]] = {
    "EXPLORATION_CLICK_LIMITS": ((0.0, 20, 20), (0.2, 20, 500)),
    "EXPLORATION_ORDER": ("random", "diversity"),
    "MAX_EXPLORED_IMAGES": (0, 8, 40),
    "MIN_SHARPNESS": (0.15, 0.6),
    "RANDOM_SHARE": (0.0, 0.1),
    "PRESS_PENALTY_SECONDS": (0.0, 4.0),
    "CLOSING_WEIGHT": (0.0, 1.0, 6.0),
    "LEARNING_VALUE": (0.0, 0.5),
    "GRID_SIZES": ((24,), (12, 24, 48)),
    "NEW_CLASS_TILES": (12, 96),
    "MIN_PRESET_PROBABILITY": (0.3, 0.7),
}


def iterate_changes() -> Iterator[tuple[str, object]]:
    return ((name, value) for name, values in TRIED_VALUES.items() for value in values)


@contextmanager
def replace_constant(name: str, value: object) -> Iterator[None]:
    """Set a constant of Autopilot to another value during the `with` block, in this process only."""
    owner = next(module for module in (planner, acquisition, preset_threshold) if hasattr(module, name))
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
