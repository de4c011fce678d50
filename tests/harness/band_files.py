"""TIFF files of several bands."""

import io

import numpy as np
import tifffile


def values_of(count: int = 13, high: int = 3000, size=(40, 30)) -> np.ndarray:
    """Made-up values (H, W, count) uint16 from 0 to `high`, different in each band."""
    values = np.random.default_rng(count).integers(1, high, (size[1], size[0], count)).astype(np.uint16)
    values[0, 0], values[0, 1] = 0, high
    return values


def tiff(values: np.ndarray, **options) -> io.BytesIO:
    """A TIFF as tifffile writes it; bands last unless planarconfig is separate."""
    file = io.BytesIO()
    planes = values.transpose(2, 0, 1) if options.get("planarconfig") == "separate" else values
    usual = {"photometric": "minisblack"} | ({"planarconfig": "contig"} if values.ndim == 3 else {})
    tifffile.imwrite(file, planes, **usual | options)
    return io.BytesIO(file.getvalue())
