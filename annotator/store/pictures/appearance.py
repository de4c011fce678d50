"""Brightness, sharpness, exposure and hash of images, measured on the pixels the backbone reads.

A small gray copy makes them independent of the file size.
"""

from dataclasses import astuple, dataclass, fields

import numpy as np
from PIL import Image

GRAY_SIDE_PIXELS = 192  # pixels; sharpness depends on it, so a change needs every image to be measured again
WHITE_LEVEL, BLACK_LEVEL = 250, 5  # of 255: from there on, and down to there, a pixel has no detail left

# The difference hash
HASH_SIDE = 8
HASH_MARGIN = 2  # of 255: JPEG noise in flat parts must not decide a bit


@dataclass(frozen=True)
class Appearance:
    """The appearance numbers of one image."""

    # mean gray, 0 (black) to 1 (white)
    brightness: float
    # variance of the Laplacian of gray values 0 to 255. Source: Pech-Pacheco et al. 2000, ICPR
    sharpness: float
    # overexposed, underexposed: shares of pixels beyond WHITE_LEVEL and BLACK_LEVEL
    overexposed: float
    underexposed: float
    # signed 64-bit difference hash
    hash: int

    def to_row(self) -> tuple[float | int, ...]:
        return astuple(self)


APPEARANCE_COLUMNS = tuple(field.name for field in fields(Appearance))  # columns of the table `appearance`


def measure_appearance(picture: Image.Image) -> Appearance:
    gray = picture.convert("L")
    size = min(gray.width, GRAY_SIDE_PIXELS), min(gray.height, GRAY_SIDE_PIXELS)
    # An image that is smaller is not enlarged: that would blur it.
    if gray.size != size:
        gray = gray.resize(size, Image.Resampling.BILINEAR)  # with BOX, sharpness would depend on the size of the file
    values = np.asarray(gray, np.int16)
    return Appearance(
        float(values.mean()) / 255,
        compute_sharpness(values),
        float((values >= WHITE_LEVEL).mean()),
        float((values <= BLACK_LEVEL).mean()),
        compute_difference_hash(gray),
    )


def compute_sharpness(values: np.ndarray) -> float:
    """Return the variance of the Laplacian of gray values (H, W) int16."""
    if min(values.shape) < 3:
        return 0.0
    centre = values[1:-1, 1:-1]
    laplacian = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * centre
    return float(laplacian.var(dtype=np.float64))


def compute_difference_hash(gray: Image.Image) -> int:
    """Return a 64-bit hash: for each of 8 x 8 points, whether it is brighter than its left neighbor.

    Source: Krawetz 2013, "Kind of Like That",
    https://www.hackerfactor.com/blog/?/archives/529-Kind-of-Like-That.html
    """
    points = np.asarray(gray.resize((HASH_SIDE + 1, HASH_SIDE), Image.Resampling.BOX), np.int16)
    bits = (points[:, 1:] > points[:, :-1] + HASH_MARGIN).ravel()
    return int.from_bytes(np.packbits(bits).tobytes(), "big", signed=True)
