"""TIFF and BigTIFF tags of the first image in a file.

Files are not trusted: MAX_ENTRIES and MAX_TAG_BYTES limit reading.
"""

import struct
from dataclasses import dataclass
from typing import BinaryIO

from PIL import Image

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
DESCRIPTION, MAKE, STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS, STRIP_BYTES = 270, 271, 273, 274, 277, 278, 279
TURN_BY_ORIENTATION = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""Orientation of EXIF and TIFF -> the turn that shows the picture upright."""
PLANES, PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES = 284, 317, 322, 323, 324, 325
SUBFILE, SUB_IMAGES, EXTRA, FORMAT, GDAL_METADATA, GDAL_NODATA, DNG = 254, 330, 338, 339, 42112, 42113, 50706
WANTED_TAGS = frozenset(
    {WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, DESCRIPTION, MAKE, STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS}
    | {STRIP_BYTES, PLANES, PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES, SUBFILE, SUB_IMAGES}
    | {EXTRA, FORMAT, GDAL_METADATA, GDAL_NODATA, DNG}
)
TEXT_TAGS = frozenset({DESCRIPTION, MAKE, GDAL_METADATA, GDAL_NODATA})
MAX_ENTRIES = 1000
MAX_TAG_BYTES = 16_000_000  # of one tag: the places of two million tiles
MAX_TEXT_BYTES = 1_000_000

_NUMBER_FORMATS = {1: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_BYTE_ORDER_MARKS = {b"II*\0": ("<", False), b"MM\0*": (">", False), b"II+\0": ("<", True), b"MM\0+": (">", True)}


@dataclass(frozen=True)
class TiffTags:
    """The tags of one TIFF image that this program needs (`order`: its byte order, "<" or ">")."""

    order: str
    numbers: dict[int, tuple[int, ...]]
    texts: dict[int, str]

    def get_number(self, tag: int, otherwise: int) -> int:
        """Return the first value of a tag, or `otherwise` if it is missing."""
        return next(iter(self.numbers.get(tag, ())), otherwise)


def is_tiff(start: bytes) -> bool:
    return start[:4] in _BYTE_ORDER_MARKS


def read_tags(file: BinaryIO) -> TiffTags | None:
    """Return the first image's needed tags, or None if unreadable."""
    place = file.tell()
    try:
        return _parse_tags(file)
    except (struct.error, ValueError, OverflowError):
        return None
    finally:
        file.seek(place)


def _parse_tags(file: BinaryIO) -> TiffTags:
    order, is_big = _BYTE_ORDER_MARKS[_read_bytes(file, 0, 4)]
    if is_big:
        (first,) = struct.unpack(f"{order}Q", _read_bytes(file, 8, 8))
        (count,) = struct.unpack(f"{order}Q", _read_bytes(file, first, 8))
        entry, start, inline = f"{order}HHQ8s", first + 8, 8
    else:
        (first,) = struct.unpack(f"{order}I", _read_bytes(file, 4, 4))
        (count,) = struct.unpack(f"{order}H", _read_bytes(file, first, 2))
        entry, start, inline = f"{order}HHI4s", first + 2, 4
    size = struct.calcsize(entry)
    rows = _read_bytes(file, start, size * min(count, MAX_ENTRIES))
    numbers: dict[int, tuple[int, ...]] = {}
    texts: dict[int, str] = {}
    for tag, kind, length, value in struct.iter_unpack(entry, rows[: len(rows) // size * size]):
        if tag not in WANTED_TAGS or not (kind in _NUMBER_FORMATS or kind == 2):
            continue
        unit = 1 if kind == 2 else struct.calcsize(f"={_NUMBER_FORMATS[kind]}")
        if length * unit > inline:
            (where,) = struct.unpack(f"{order}{'Q' if is_big else 'I'}", value)
            value = _read_bytes(file, where, min(length * unit, MAX_TEXT_BYTES if kind == 2 else MAX_TAG_BYTES))
        value = value[: length * unit]
        if kind == 2 or tag in TEXT_TAGS:
            texts[tag] = value.split(b"\0")[0].decode("utf-8", "replace").strip()
        else:
            known = len(value) // unit
            numbers[tag] = struct.unpack(f"{order}{known}{_NUMBER_FORMATS[kind]}", value[: known * unit])
    return TiffTags(order, numbers, texts)


def _read_bytes(file: BinaryIO, start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)
