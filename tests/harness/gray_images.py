"""Gray images with and without white parts, for measures of image quality."""

import numpy as np
from PIL import Image


def noise(
    size: tuple[int, int] = (240, 200), low: int = 60, high: int = 200, seed: int = 0, patch: int = 4
) -> Image.Image:
    """Square patches in random greys."""
    patches = np.random.default_rng(seed).integers(low, high, (size[1] // patch, size[0] // patch), np.uint8)
    return Image.fromarray(np.kron(patches, np.ones((patch, patch), np.uint8))).convert("RGB")


def half_white(picture: Image.Image) -> Image.Image:
    picture.paste((255, 255, 255), (0, 0, picture.width // 2, picture.height))
    return picture
