"""How a picture looks, in five numbers that are measured on its pixels while the network reads them.

A field of `Appearance` is a column of the table `appearance`, and of the Gallery's memory. The numbers come from a grey
copy of at most SIDE x SIDE pixels, so that they do not depend on the size of the file: an image is decoded once, at the
size that the network takes, and that copy is made of what was decoded.
"""

from dataclasses import astuple, dataclass, fields

import numpy as np
from PIL import Image

SIDE = 192  # pixels; sharpness depends on it, so a change needs every image to be measured again
WHITE, BLACK = 250, 5  # of 255: from there on, and down to there, a pixel has no detail left

# The difference hash
HASH_SIDE = 8
MARGIN = 2  # of 255: JPEG noise in flat parts must not decide a bit


@dataclass(frozen=True)
class Appearance:
    """The numbers of one picture.

    Attributes:
        brightness: The mean grey, from 0 (black) to 1 (white).
        sharpness: The variance of the Laplacian of the grey values 0 to 255: large where edges are sharp.
            Source: Pech-Pacheco et al. 2000, "Diatom autofocusing in brightfield microscopy", ICPR.
        overexposed: The share of pixels that are WHITE or brighter.
        underexposed: The share of pixels that are BLACK or darker.
        hash: The difference hash of 64 bits, as the signed integer that SQLite keeps (see `hash_of`).
    """

    brightness: float
    sharpness: float
    overexposed: float
    underexposed: float
    hash: int

    def row(self) -> tuple[float | int, ...]:
        """Return the values of the columns APPEARANCE."""
        return astuple(self)


APPEARANCE = tuple(field.name for field in fields(Appearance))  # columns of the table `appearance`


def appearance_of(picture: Image.Image) -> Appearance:
    """Return the numbers of an RGB picture, decoded at SIDE x SIDE or more where the file has so many pixels."""
    grey = picture.convert("L")
    size = min(grey.width, SIDE), min(grey.height, SIDE)
    # An image that is smaller is not enlarged: that would blur it.
    if grey.size != size:
        grey = grey.resize(size, Image.Resampling.BILINEAR)  # with BOX, sharpness would depend on the size of the file
    values = np.asarray(grey, np.int16)
    return Appearance(
        float(values.mean()) / 255,
        sharpness_of(values),
        float((values >= WHITE).mean()),
        float((values <= BLACK).mean()),
        hash_of(grey),
    )


def sharpness_of(values: np.ndarray) -> float:
    """Return the variance of the Laplacian of grey values (H, W) int16; 0 for fewer than 3 pixels a side."""
    if min(values.shape) < 3:
        return 0.0
    centre = values[1:-1, 1:-1]
    laplacian = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * centre
    return float(laplacian.var(dtype=np.float64))


def hash_of(grey: Image.Image) -> int:
    """Return the difference hash of a grey picture: which of 8 x 8 points are brighter than their left neighbour.

    Pictures that differ in size, quality or light alone have hashes that differ in few bits.

    Source: Krawetz 2013, "Kind of Like That", https://www.hackerfactor.com/blog/?/archives/529-Kind-of-Like-That.html
    """
    points = np.asarray(grey.resize((HASH_SIDE + 1, HASH_SIDE), Image.Resampling.BOX), np.int16)
    bits = (points[:, 1:] > points[:, :-1] + MARGIN).ravel()
    return int.from_bytes(np.packbits(bits).tobytes(), "big", signed=True)
