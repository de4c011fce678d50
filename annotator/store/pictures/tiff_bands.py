"""Reading of TIFFs with many bands, 16-bit colors or floats, which Pillow cannot.

Pillow decompresses each strip or tile as 8-bit gray, so that no other decoder is reachable. numpy undoes predictors,
byte order and layout (TIFF 6.0, and Adobe's technical note 3).
"""

import io
import math
import os
import re
import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from PIL import Image

from annotator.store.pictures import tiff_tags
from annotator.store.pictures.array_image import ArrayImage
from annotator.store.pictures.bands import CHANNELS_BY_ORDER, CHANNELS_NAMED, CHANNELS_PLAIN, MAX_BANDS, BandTriple
from annotator.store.pictures.png16 import to_image
from annotator.store.pictures.stretching import Stretch, stretch_values
from annotator.store.pictures.tiff_tags import TiffTags

NUMBER_KINDS = {1: "u", 2: "i", 3: "f"}  # sample format -> kind of number
NO_COMPRESSION, COMPRESSION_NAMES = (
    1,
    {5: "LZW", 8: "deflate", 32946: "deflate", 32773: "PackBits", 34925: "LZMA", 50000: "ZSTD"},
)
GRAY_PHOTOMETRICS, RGB_PHOTOMETRIC = (0, 1), 2  # photometric interpretations
MAX_STRIP_BYTES = 80_000_000  # bytes of a compressed strip once decompressed; Pillow warns of larger images
CHUNK_BYTES = 16_000_000  # bytes of a strip that is not compressed: it is read in parts
_BAND_PATTERN = re.compile(r'<Item\b[^>]*\bname="(?:DESCRIPTION|COLORINTERP)"[^>]*>([^<]{1,200})</Item>', re.IGNORECASE)
_SAMPLE_PATTERN = re.compile(r'\bsample="(\d{1,4})"', re.IGNORECASE)


@dataclass(frozen=True)
class TiffLayout:
    """The needed header fields of a TIFF."""

    tags: TiffTags
    size: tuple[int, int]
    dtype: np.dtype
    # values per pixel, including transparency
    samples: int
    # index of transparency, or None
    alpha: int | None
    # name per band, or ""
    names: tuple[str, ...]
    # whether the file declares RGB bands
    is_rgb: bool
    is_inverted: bool
    is_separate: bool
    compression: int
    predictor: int
    # tile (width, height). Strips have full width
    pieces: tuple[int, int]
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def colors(self) -> tuple[int, ...]:
        """Return the indices of the values of a pixel that are not transparency."""
        return tuple(place for place in range(self.samples) if place != self.alpha)

    @property
    def named_bands(self) -> tuple[BandTriple | None, str]:
        """Return the red, green and blue bands (from 1) or None, and a CHANNELS constant of bands.py."""
        found = [[number for number, name in enumerate(self.names, 1) if name in words] for words in _COLOR_WORDS]
        if all(len(numbers) == 1 for numbers in found):
            return (found[0][0], found[1][0], found[2][0]), CHANNELS_NAMED
        if self.is_rgb and len(self.colors) >= 3:
            return (1, 2, 3), CHANNELS_PLAIN if len(self.colors) == 3 else CHANNELS_NAMED
        return ((1, 2, 3), CHANNELS_BY_ORDER) if len(self.colors) == 3 else (None, "")


_COLOR_WORDS = ({"red", "r"}, {"green", "g"}, {"blue", "b"})


def read_layout(file: BinaryIO) -> TiffLayout | None:
    """Return the header fields of a TIFF that Pillow cannot read, else None. Raises ValueError if unreadable."""
    found = tiff_tags.read_tags(file)
    if found is None or found.get_number(tiff_tags.PHOTOMETRIC, 1) not in (*GRAY_PHOTOMETRICS, RGB_PHOTOMETRIC):
        return None
    samples = found.get_number(tiff_tags.SAMPLES, 1)
    if samples > MAX_BANDS:
        raise ValueError(f"it says that it has {samples:,} bands; at most {MAX_BANDS:,} are read")
    widths, formats = set(found.numbers.get(tiff_tags.BITS, (1,))), set(found.numbers.get(tiff_tags.FORMAT, (1,)))
    bits, format_ = max(widths), max(formats)
    extra = found.numbers.get(tiff_tags.EXTRA, ())[-samples:]
    alpha = next((samples - len(extra) + place for place, kind in enumerate(extra) if kind in (1, 2)), None)
    if not _is_read_here(found, samples, bits, format_, alpha):
        return None
    kind = NUMBER_KINDS.get(format_, "u" if format_ == 4 else "")  # 4: not said
    if len(widths) > 1 or len(formats) > 1 or not kind or bits not in (8, 16, 32, 64) or (kind == "f" and bits == 8):
        raise ValueError(
            f"{samples} bands of {', '.join(map(str, sorted(widths)))} bits, sample format "
            f"{', '.join(map(str, sorted(formats)))}, which is not read: save it with 8, 16 or 32 bits for all bands"
        )
    return _build_layout(found, samples, np.dtype(f"{found.order}{kind}{bits // 8}"), alpha)


def _is_read_here(found: TiffTags, samples: int, bits: int, format_: int, alpha: int | None) -> bool:
    if samples == 1:
        return bits == 64 or (bits == 32 and format_ != 3) or (bits > 8 and tiff_tags.GDAL_NODATA in found.texts)
    if bits != 8 or samples > 4:
        return bits >= 8
    if found.get_number(tiff_tags.PHOTOMETRIC, 1) == RGB_PHOTOMETRIC:
        # Pillow takes a fourth band that the file says nothing of for transparency.
        return samples == 4 and tiff_tags.EXTRA not in found.numbers
    return not (samples == 2 and alpha == 1)


def _build_layout(found: TiffTags, samples: int, dtype: np.dtype, alpha: int | None) -> TiffLayout:
    width, height = found.get_number(tiff_tags.WIDTH, 0), found.get_number(tiff_tags.HEIGHT, 0)
    compression, predictor = found.get_number(tiff_tags.COMPRESSION, 1), found.get_number(tiff_tags.PREDICTOR, 1)
    if width < 1 or height < 1:
        raise ValueError("it has no size")
    if compression != NO_COMPRESSION and compression not in COMPRESSION_NAMES:
        known = ", ".join(dict.fromkeys(COMPRESSION_NAMES.values()))
        raise ValueError(
            f"{samples} bands of {8 * dtype.itemsize} bits with compression {compression}; read are none, {known}"
        )
    if predictor not in (1, 2, 3) or (predictor == 3 and dtype.kind != "f"):
        raise ValueError(f"it says predictor {predictor} for values of {dtype.name}")
    is_tiled = tiff_tags.TILE_OFFSETS in found.numbers
    rows = min(found.get_number(tiff_tags.ROWS, height) or height, height)
    pieces = (
        (found.get_number(tiff_tags.TILE_WIDTH, 0), found.get_number(tiff_tags.TILE_HEIGHT, 0))
        if is_tiled
        else (width, rows)
    )
    is_separate = found.get_number(tiff_tags.PLANES, 1) == 2 and samples > 1
    in_piece = pieces[0] * pieces[1] * dtype.itemsize * (1 if is_separate else samples)
    if in_piece < 1 or (in_piece > MAX_STRIP_BYTES and (compression != NO_COMPRESSION or is_tiled)):
        raise ValueError(f"a strip or tile of {in_piece:,} bytes; the limit is {MAX_STRIP_BYTES:,}")
    offsets = found.numbers.get(tiff_tags.TILE_OFFSETS if is_tiled else tiff_tags.STRIP_OFFSETS, ())
    lengths = found.numbers.get(tiff_tags.TILE_BYTES if is_tiled else tiff_tags.STRIP_BYTES, ())
    wanted = math.ceil(width / pieces[0]) * math.ceil(height / pieces[1]) * (samples if is_separate else 1)
    if len(offsets) == 1 and not lengths and compression == NO_COMPRESSION:
        lengths = (in_piece,)
    if len(offsets) < wanted or len(lengths) < wanted:
        raise ValueError(f"truncated: {wanted:,} strips or tiles are wanted, and {len(offsets):,} are named")
    photometric = found.get_number(tiff_tags.PHOTOMETRIC, 1)
    names = _read_band_names(found, samples, alpha)
    return TiffLayout(
        found, (width, height), dtype, samples, alpha, names, photometric == RGB_PHOTOMETRIC, photometric == 0,
        is_separate, compression, predictor, pieces, offsets[:wanted], lengths[:wanted],
    )  # fmt: skip


def _read_band_names(found: TiffTags, samples: int, alpha: int | None) -> tuple[str, ...]:
    """Return band names from GDAL metadata, else from the description."""
    names = [""] * samples
    for match in _BAND_PATTERN.finditer(found.texts.get(tiff_tags.GDAL_METADATA, "")):
        sample = _SAMPLE_PATTERN.search(match[0])
        if sample and int(sample[1]) < samples:
            names[int(sample[1])] = match[1].strip().lower()
    listed = [
        name.strip().lower() for name in re.split(r"[,;|/\n]", found.texts.get(tiff_tags.DESCRIPTION, "")[:10_000])
    ]
    if not any(names) and len(listed) == samples:
        names = listed
    return tuple(name for place, name in enumerate(names) if place != alpha)


def open_bands(file: BinaryIO, layout: TiffLayout, three: BandTriple | None, kind: str) -> ArrayImage:
    """Return the image of a TIFF, whose pixels `load` reads (`three`: bands from 1, None for a single band)."""
    shown = [layout.colors[number - 1] for number in three] if three else [layout.colors[0]]
    width, height = layout.size
    values = len(shown) + (layout.alpha is not None)
    bytes_a_pixel = layout.dtype.itemsize * (1 if layout.is_separate else layout.samples)
    in_piece = min(layout.pieces[0] * layout.pieces[1] * bytes_a_pixel, MAX_STRIP_BYTES)  # more is read in parts
    # The values, their 8 bits and two steps between; the pieces as stored, unpacked, and with their predictor undone.
    cost = width * height * (values * layout.dtype.itemsize + 3 * values + 8) + 5 * in_piece

    def read() -> tuple[Image.Image, Stretch | None]:
        return _read_image(file, layout, shown)

    return ArrayImage(file, "TIFF", layout.size, read, cost=cost, bands=kind, is_transparent=layout.alpha is not None)


def _read_image(file: BinaryIO, layout: TiffLayout, shown: list[int]) -> tuple[Image.Image, Stretch | None]:
    places = sorted({*shown, *(() if layout.alpha is None else (layout.alpha,))})
    values = _read_values(file, layout, places)
    colors = values[..., [places.index(place) for place in shown]]
    alpha = None if layout.alpha is None else _to_opacity(values[..., places.index(layout.alpha)])
    stretch = None
    if colors.dtype != np.uint8:
        colors, stretch = stretch_values(colors, _parse_nodata(layout), None if alpha is None else alpha > 0)
    if layout.is_inverted:  # 0 is white
        colors = 255 - colors
    picture = to_image(colors, alpha)
    turn = tiff_tags.TURN_BY_ORIENTATION.get(layout.tags.get_number(tiff_tags.ORIENTATION, 1))
    return (picture if turn is None else picture.transpose(turn)), stretch


def _to_opacity(alpha: np.ndarray) -> np.ndarray:
    if alpha.dtype == np.uint8:
        return alpha
    most = 1.0 if alpha.dtype.kind == "f" else float(np.iinfo(alpha.dtype).max)
    return np.round(np.nan_to_num(alpha.astype(np.float64) / most).clip(0, 1) * 255).astype(np.uint8)


def _parse_nodata(layout: TiffLayout) -> float | None:
    try:
        return float(layout.tags.texts[tiff_tags.GDAL_NODATA])
    except (KeyError, ValueError):
        return None


def _read_values(file: BinaryIO, layout: TiffLayout, places: list[int]) -> np.ndarray:
    """Return the samples with indices `places` as values (H, W, n) in native byte order."""
    width, height = layout.size
    wide, high = layout.pieces
    values = np.zeros((height, width, len(places)), layout.dtype.newbyteorder("="))
    across, down = math.ceil(width / wide), math.ceil(height / high)
    end = file.seek(0, os.SEEK_END)
    for number, (offset, length) in enumerate(zip(layout.offsets, layout.lengths, strict=True)):
        plane, piece = divmod(number, across * down) if layout.is_separate else (0, number)
        top, left = piece // across * high, piece % across * wide
        # Also of bands that are not shown: half a file is not taken for a whole one.
        if offset + length > end:
            raise EOFError(f"truncated: a strip ends at byte {offset + length:,} of {end:,}")
        if layout.is_separate and plane not in places:
            continue
        samples, columns = (1, [0]) if layout.is_separate else (layout.samples, places)
        target = values[top : top + high, left : left + wide]
        if layout.is_separate:
            target = target[..., places.index(plane)][..., None]  # a view of its place
        _read_piece(file, layout, offset, length, samples, columns, target, is_strip=across == 1 and wide == width)
    return values


def _read_piece(
    file: BinaryIO,
    layout: TiffLayout,
    offset: int,
    length: int,
    samples: int,
    columns: list[int],
    target: np.ndarray,
    *,
    is_strip: bool,
) -> None:
    rows, wide = target.shape[0], layout.pieces[0]
    bytes_a_row = wide * samples * layout.dtype.itemsize
    # The last strip may be shorter than the others; a tile never is.
    stored = rows if is_strip else layout.pieces[1]
    if layout.compression != NO_COMPRESSION:
        whole = _decompress(_read_bytes_at(file, offset, length), layout.compression, bytes_a_row, stored)
        block = _decode_rows(whole[: rows * bytes_a_row], layout, rows, wide, samples)
        target[:] = block[:, : target.shape[1], columns]
        return
    if length < rows * bytes_a_row:
        raise EOFError(f"truncated: a strip has {length:,} of {rows * bytes_a_row:,} bytes")
    step = max(1, CHUNK_BYTES // bytes_a_row)
    for first in range(0, rows, step):
        count = min(step, rows - first)
        content = _read_bytes_at(file, offset + first * bytes_a_row, count * bytes_a_row)
        block = _decode_rows(content, layout, count, wide, samples)
        target[first : first + count] = block[:, : target.shape[1], columns]


def _read_bytes_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    content = file.read(length)
    if len(content) < length:
        raise EOFError(f"truncated: {len(content):,} of {length:,} bytes at {offset:,}")
    return content


def _decode_rows(content: bytes, layout: TiffLayout, rows: int, wide: int, samples: int) -> np.ndarray:
    """Convert decompressed rows to values (rows, wide, samples) and undo the predictor."""
    if layout.predictor == 3:
        planes = np.frombuffer(content, np.uint8).reshape(rows, -1, samples)
        planes = np.cumsum(planes, axis=1, dtype=np.uint8).reshape(rows, layout.dtype.itemsize, wide * samples)
        # The bytes of a number, the highest first, lie in planes of their own.
        whole = np.ascontiguousarray(planes.transpose(0, 2, 1)).view(layout.dtype.newbyteorder(">"))
        return whole.reshape(rows, wide, samples).astype(layout.dtype.newbyteorder("="))
    values = np.frombuffer(content, layout.dtype).reshape(rows, wide, samples)
    if layout.predictor == 2:
        whole = values.astype(values.dtype.newbyteorder("="))
        as_numbers = whole.view(f"u{whole.dtype.itemsize}")
        return np.cumsum(as_numbers, axis=1, dtype=as_numbers.dtype).view(whole.dtype)
    return values


def _decompress(content: bytes, compression: int, width: int, height: int) -> bytes:
    entries = [
        (tiff_tags.WIDTH, 4, 1, width),
        (tiff_tags.HEIGHT, 4, 1, height),
        (tiff_tags.BITS, 3, 1, 8),
        (tiff_tags.COMPRESSION, 3, 1, compression),
        (tiff_tags.PHOTOMETRIC, 3, 1, 1),
        (tiff_tags.STRIP_OFFSETS, 4, 1, 8),
        (tiff_tags.SAMPLES, 3, 1, 1),
        (tiff_tags.ROWS, 4, 1, height),
        (tiff_tags.STRIP_BYTES, 4, 1, len(content)),
    ]
    even = content + b"\0" * (len(content) % 2)
    directory = struct.pack("<H", len(entries))
    for tag, kind, count, value in entries:
        directory += struct.pack("<HHI", tag, kind, count) + struct.pack("<I", value)
    made = struct.pack("<4sI", b"II*\0", 8 + len(even)) + even + directory + b"\0\0\0\0"
    with Image.open(io.BytesIO(made), formats=("TIFF",)) as image:
        image.load()
        return image.tobytes()
