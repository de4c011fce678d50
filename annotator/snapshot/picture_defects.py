"""Kinds of image defects with thresholds, to list probably dark, blurred or similar images.

Thresholds are not verdicts: night images are dark, and fog has no sharp edges.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotator.store.gallery.appearance_columns import AppearanceColumns
from annotator.store.pictures.appearance import BLACK_LEVEL, GRAY_SIDE_PIXELS, WHITE_LEVEL

MAX_DARK_BRIGHTNESS, MAX_BLURRED_SHARPNESS, MIN_BURNT_SHARE, MAX_TINY_PIXELS = 0.2, 30.0, 0.25, 100


@dataclass(frozen=True)
class PictureDefect:
    """A kind of image defect. `compute_mask` returns which images have it, (N,) bool, False if unmeasured."""

    name: str
    about: str
    compute_mask: Callable[[AppearanceColumns], np.ndarray]


DEFECTS = (
    PictureDefect(
        "dark",
        f"very dark: mean brightness below {MAX_DARK_BRIGHTNESS:.0%}",
        lambda looks: looks.get_numbers("brightness") < MAX_DARK_BRIGHTNESS,
    ),
    PictureDefect(
        "blurred",
        f"blurred: sharpness below {MAX_BLURRED_SHARPNESS:.0f} (of edges, at {GRAY_SIDE_PIXELS} pixels)",
        lambda looks: looks.get_numbers("sharpness") < MAX_BLURRED_SHARPNESS,
    ),
    PictureDefect(
        "overexposed",
        f"over-exposed: {MIN_BURNT_SHARE:.0%} or more of it white (from {WHITE_LEVEL} of 255)",
        lambda looks: looks.get_numbers("overexposed") >= MIN_BURNT_SHARE,
    ),
    PictureDefect(
        "underexposed",
        f"under-exposed: {MIN_BURNT_SHARE:.0%} or more of it black (to {BLACK_LEVEL} of 255)",
        lambda looks: looks.get_numbers("underexposed") >= MIN_BURNT_SHARE,
    ),
    PictureDefect(
        "tiny",
        f"tiny: shorter side below {MAX_TINY_PIXELS} pixels",
        lambda looks: looks.get_numbers("shorter_side") < MAX_TINY_PIXELS,
    ),
)
DEFECTS_BY_NAME = {one.name: one for one in DEFECTS}
