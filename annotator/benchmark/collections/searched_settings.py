"""Settings of the method `auto`, chosen for each collection by the results on all others (leave-one-out)."""

from typing import Any

import numpy as np

# What each constant is drawn from, its present value among others. `absent` matters only where people say "absent".
SEARCH_SPACE: dict[str, tuple[float, ...]] = {
    "head": (0.1, 0.2, 0.3, 0.4, 0.6),
    "head_of_all": (0.1, 0.3, 0.5, 0.65, 0.8),
    "parts_of_head": (0.15, 0.3, 0.45),
    "parts_of_ridge": (0.2, 0.35, 0.5, 0.65),
    "evened_of_head": (0.25, 0.5, 0.75, 1.0),
    "ridge": (0.5, 1.0, 2.0),
    "unlabelled": (0.1, 0.2, 0.4),
    "sharpness": (2.0, 3.0, 4.0),
    "overlooked": (0.25, 0.5, 0.75, 1.0),
}
SETTINGS_SEED = 20261123


def draw_settings(count: int) -> list[dict[str, Any]]:
    """Return `count` settings to try: the current constants ({}), then random draws from SEARCH_SPACE.

    A larger count only appends settings.
    """
    chance = np.random.default_rng(SETTINGS_SEED)
    return [{}] + [
        {name: values[int(chance.integers(len(values)))] for name, values in SEARCH_SPACE.items()}
        for _ in range(count - 1)
    ]


def choose_left_out_settings(scores: np.ndarray) -> list[int]:
    """Return per collection the setting with the best mean of `scores` (settings, collections) on all others."""
    others = scores.sum(1, keepdims=True) - scores
    return [int(place) for place in others.argmax(0)]
