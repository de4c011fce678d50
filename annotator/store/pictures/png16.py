"""Reading of 16-bit color PNGs, of which Pillow keeps only the high bytes.

Pillow's unpackers for the opposite byte order return the low bytes.
"""

import io
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageFile

from annotator.store.pictures.array_image import ArrayImage
from annotator.store.pictures.stretching import Stretch, stretch_values

LOW_BYTE_RAW_MODES = {"RGB;16B": "RGB;16L", "RGBA;16B": "RGBA;16L", "LA;16B": ""}  # raw mode -> that of the low bytes
BYTES_PER_PIXEL = 40  # a pixel: two images of 4 bytes, their values, and the steps to 8 bits


def open_png16(file: BinaryIO, image: ImageFile.ImageFile) -> ArrayImage | None:
    """Return a 16-bit PNG with color or transparency, else None."""
    if image.format != "PNG" or not image.tile or str(image.tile[0][3]) not in LOW_BYTE_RAW_MODES:
        return None
    is_transparent = image.mode == "RGBA" or "transparency" in image.info
    found: list[ArrayImage] = []

    def read() -> tuple[Image.Image, Stretch]:
        picture, stretch = _read_pixels(file, image)
        # The orientation may be behind the pixels.
        found[0].info |= {name: value for name, value in image.info.items() if name != "transparency"}
        return picture, stretch

    info = {name: value for name, value in image.info.items() if name != "transparency"}
    cost = BYTES_PER_PIXEL * image.width * image.height
    found.append(ArrayImage(file, "PNG", image.size, read, cost=cost, info=info, is_transparent=is_transparent))
    return found[0]


def _read_pixels(file: BinaryIO, image: ImageFile.ImageFile) -> tuple[Image.Image, Stretch]:
    raw, clear = str(image.tile[0][3]), image.info.get("transparency")
    if raw == "LA;16B":  # two values of two bytes are read as four
        image.tile = [image.tile[0]._replace(args="RGBA")]
        image.load()
        values = np.ascontiguousarray(np.asarray(image)).view(">u2").astype(np.uint16)
    else:
        low = _reopen(file)
        low.tile = [low.tile[0]._replace(args=LOW_BYTE_RAW_MODES[raw])]
        image.load()
        low.load()
        values = np.asarray(image).astype(np.uint16) << 8 | np.asarray(low)
    alpha = None
    if values.shape[2] in (2, 4):
        alpha, values = values[..., -1], values[..., :-1]
    elif isinstance(clear, tuple):  # one colour stands for transparent
        alpha = np.where((values == np.asarray(clear, np.uint16)).all(2), 0, 65535).astype(np.uint16)
    gray, stretch = stretch_values(values, counts=None if alpha is None else alpha > 0)
    return to_image(gray, None if alpha is None else np.round(alpha / 257).astype(np.uint8)), stretch


def to_image(values: np.ndarray, alpha: np.ndarray | None) -> Image.Image:
    """Convert (H, W, 1 or 3) uint8, with optional alpha (H, W) uint8, to an image."""
    picture = Image.fromarray(np.ascontiguousarray(values[..., 0] if values.shape[2] == 1 else values))
    if alpha is not None:
        picture.putalpha(Image.fromarray(np.ascontiguousarray(alpha)))
    return picture


def _reopen(file: BinaryIO) -> ImageFile.ImageFile:
    place = file.tell()
    file.seek(0)
    content = io.BytesIO(file.read())
    file.seek(place)
    return Image.open(content, formats=("PNG",))
