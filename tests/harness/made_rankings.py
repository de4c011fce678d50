"""Made-up probabilities and random answers, for rankings of images."""

import numpy as np

from harness.answers import answer_cell

IMAGES, CLASSES = 24, 3


def made_up(seed: int = 0) -> np.ndarray:
    """(24, 3) float16 with many equal ones; the last class has no model."""
    chances = np.random.default_rng(seed).integers(0, 11, (IMAGES, CLASSES)) / 10
    chances[:, 2] = np.nan
    return chances.astype(np.float16)


def answers(db, count: int = 40, seed: int = 1) -> np.ndarray:
    """Random decisions; what they come to, (24, 3) float: 1, -1, 0 for unsure, nan where nobody said anything."""
    rng = np.random.default_rng(seed)
    result = np.full((IMAGES, CLASSES), np.nan)
    for _ in range(count):
        image_id, class_id, state = int(rng.integers(1, 25)), int(rng.integers(1, 4)), int(rng.integers(-1, 2))
        answer_cell(db, image_id, class_id, state)
        result[image_id - 1, class_id - 1] = state
    return result
