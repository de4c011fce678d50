"""What can be wrong with a picture, each with its threshold and the words that explain it.

Thresholds are for a look at the worst ones, not for a verdict: night pictures are dark, and fog has no sharp edges. The
Gallery sorts by the same numbers, so that people see what lies just beyond a threshold.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotator.store.gallery.appearance_columns import AppearanceColumns
from annotator.store.pictures.appearance import BLACK, SIDE, WHITE

DARK, BLURRED, BURNT, TINY = 0.2, 30.0, 0.25, 100


@dataclass(frozen=True)
class Defect:
    """One thing that can be wrong.

    Attributes:
        name: In requests and addresses.
        about: What the page says of it, with the threshold.
        where: Return (N,) bool: which images have it; an image that was not measured has none.
    """

    name: str
    about: str
    where: Callable[[AppearanceColumns], np.ndarray]


DEFECTS = (
    Defect("dark", f"very dark: mean brightness below {DARK:.0%}", lambda looks: looks.numbers("brightness") < DARK),
    Defect(
        "blurred",
        f"blurred: sharpness below {BLURRED:.0f} (of edges, at {SIDE} pixels)",
        lambda looks: looks.numbers("sharpness") < BLURRED,
    ),
    Defect(
        "overexposed",
        f"over-exposed: {BURNT:.0%} or more of it white (from {WHITE} of 255)",
        lambda looks: looks.numbers("overexposed") >= BURNT,
    ),
    Defect(
        "underexposed",
        f"under-exposed: {BURNT:.0%} or more of it black (to {BLACK} of 255)",
        lambda looks: looks.numbers("underexposed") >= BURNT,
    ),
    Defect("tiny", f"tiny: shorter side below {TINY} pixels", lambda looks: looks.numbers("shorter_side") < TINY),
)
BY_NAME = {one.name: one for one in DEFECTS}
