"""Values of more than 8 bits -> 8 bits: the darkest value becomes black and the brightest white, over all channels.

Few files use the whole scale of 0 to 65535: cameras of 12 bits, satellites and scanners write 0 to 4,000 into 16 bits,
and cut to their high bytes most pictures would be black. All channels of an image are stretched alike, so that colours
stay. Values that are not finite, mean "no data", or are transparent do not count. No data and nan become black,
and what is infinite becomes the end of the scale.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

STRIP_PIXELS = 1_000_000  # pixels that are stretched at a time: whole arrays of floats would take 30 bytes a pixel
MIDDLE_GRAY = 128  # grey of an image of one value


@dataclass(frozen=True)
class Stretch:
    """The range of an image's values that became 8 bits.

    Attributes:
        bits: Of a value in the file.
        low, high: The values that became black and white.
    """

    bits: int
    low: float
    high: float


def stretch_values(
    values: np.ndarray, nodata: float | None = None, counts: np.ndarray | None = None
) -> tuple[np.ndarray, Stretch]:
    """Return values (H, W, C) of any numbers as (H, W, C) uint8, and the stretch.

    Args:
        values: (H, W, C) of any type of number.
        nodata: The value that stands for "no data"; None: there is none.
        counts: (H, W) bool, the pixels that count for the range; None: all.

    An image of one value, or without a value that counts, becomes medium grey.
    """
    missing = _to_dtype_value(nodata, values.dtype)
    low, high = np.inf, -np.inf
    for rows in _iterate_strips(values):
        strip = values[rows]
        known = _get_known_mask(strip, missing)
        if counts is not None:
            known &= counts[rows][..., None]
        # The usual case, without a copy.
        some = strip if known.all() else strip[known]
        if some.size:
            low, high = min(low, float(some.min())), max(high, float(some.max()))
    bits = 8 * values.dtype.itemsize
    if high <= low or not np.isfinite([low, high, high - low]).all():
        return np.full(values.shape, MIDDLE_GRAY, np.uint8), Stretch(
            bits, *((low, high) if high == low else (0.0, 0.0))
        )
    table = scale_to_uint8(np.arange(65536), low, high) if values.dtype == np.uint16 else None
    gray = np.empty(values.shape, np.uint8)
    for rows in _iterate_strips(values):
        strip = values[rows]
        gray[rows] = scale_to_uint8(strip, low, high) if table is None else table[strip]
        if missing is not None:
            gray[rows][strip == missing] = 0
    return gray, Stretch(bits, low, high)


def scale_to_uint8(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return numbers as uint8: low and what is below become 0, high and what is above 255; nan becomes 0."""
    values = np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low)
    return np.round((values.clip(low, high) - low) / (high - low) * 255).astype(np.uint8)


def _iterate_strips(values: np.ndarray) -> Iterator[slice]:
    rows = max(1, STRIP_PIXELS // max(1, values.shape[1]))
    for top in range(0, len(values), rows):
        yield slice(top, top + rows)


def _get_known_mask(values: np.ndarray, missing: np.generic | None) -> np.ndarray:
    known = np.isfinite(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
    return known if missing is None else known & (values != missing)


def _to_dtype_value(nodata: float | None, dtype: np.dtype) -> np.generic | None:
    """Return the value of the file's own type that stands for "no data"; None where that type cannot have it."""
    if nodata is None or np.isnan(nodata):  # nan is never finite
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return dtype.type(nodata)
    bounds = np.iinfo(dtype)
    return dtype.type(int(nodata)) if nodata == int(nodata) and bounds.min <= nodata <= bounds.max else None
