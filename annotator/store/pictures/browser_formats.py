"""Detection of files that browsers show exactly as decoded.

The header decides conservatively: orientation, profile, gamma, transparency, 16 bits or animation need a copy.
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from annotator.store.disk.open_files import open_file
from annotator.store.pictures.colors import is_srgb
from annotator.store.pictures.decoding import BadImage, open_image, read_orientation

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
ORIENTATION_TAG, X_RESOLUTION_TAG, Y_RESOLUTION_TAG = 0x0112, 0x011A, 0x011B
# Chunks that affect neither colours nor position. Others, also future ones, may.
HARMLESS_PNG_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tIME", b"pHYs", b"bKGD", b"hIST", b"sRGB"})
PNG_TEXT_CHUNKS = frozenset({b"tEXt", b"zTXt", b"iTXt"})
GAIN_MAP_MARKS = (b"hdrgm:", b"urn:iso:std:iso:ts:21496")  # a screen of high dynamic range shows other colours
MAX_PNG_CHUNKS = 20_000
MAX_TEXT_BYTES = 1_000_000


def find_media_type(path: Path) -> str | None:
    """Return the media type of a file that browsers show correctly, else None."""
    try:
        facts = path.stat()
        return _detect_media_type(str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    except OSError:
        return None  # the decoder will say why


@lru_cache(maxsize=16_384)
def _detect_media_type(path: str, size: int, modified_ns: int, inode: int) -> str | None:
    with open_file(Path(path)) as file:
        head = file.read(32)
        file.seek(0)
        try:
            if head.startswith(b"\xff\xd8\xff") and _is_plain_jpeg(file):
                return "image/jpeg"
            if head.startswith(PNG_SIGNATURE) and _is_plain_png(file):
                return "image/png"
            if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and _is_plain_webp(head, size):
                return "image/webp"
        except (BadImage, ValueError, SyntaxError, struct.error, OSError):
            pass
    return None  # GIF may move; BMP and TIFF are not for browsers


def _is_plain_jpeg(file: BinaryIO) -> bool:
    with open_image(file) as image:
        segments = getattr(image, "applist", [])
        exif = [data[6:] for name, data in segments if name == "APP1" and data[:4].lower() == b"exif"]
        has_profile = any(name == "APP2" and data.startswith(b"ICC_PROFILE") for name, data in segments)
        profile = image.info.get("icc_profile")
        return (
            image.format in {"JPEG", "MPO"}
            and image.mode in {"RGB", "L"}
            and image.info.get("adobe_transform", 1) == 1
            and len(exif) <= 1
            # Browsers rotate a JPEG by its EXIF only.
            and read_orientation(image) == (_read_exif_orientation(exif[0]) if exif else 1)
            and not any(mark in data for _, data in segments for mark in GAIN_MAP_MARKS)
            and has_profile == bool(profile)
            and is_srgb(profile, image.mode)
        )


def _read_exif_orientation(block: bytes) -> int | None:
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
    if order is None:
        return None
    (start,) = struct.unpack_from(order + "I", block, 4)
    (count,) = struct.unpack_from(order + "H", block, start)
    resolutions: dict[int, bytes] = {}
    turns: list[int] = []
    for number in range(count):
        tag, kind, values, where = struct.unpack_from(order + "HHII", block, start + 2 + 12 * number)
        if tag == ORIENTATION_TAG:
            (value,) = struct.unpack_from(order + "H", block, start + 2 + 12 * number + 8)
            if (kind, values) != (3, 1) or not 1 <= value <= 8:
                return None
            turns.append(value)
        elif tag in (X_RESOLUTION_TAG, Y_RESOLUTION_TAG):
            resolutions[tag] = block[where : where + 8]
    if len(turns) > 1 or len(set(resolutions.values())) > 1:  # of two resolutions, Chromium makes another shape
        return None
    return turns[0] if turns else 1


def _is_plain_png(file: BinaryIO) -> bool:
    names: set[bytes] = set()
    for name, length in _iterate_png_chunks(file):
        if name == b"IHDR":
            _, _, bits, color_type = struct.unpack(">IIBB", file.read(10))
            if bits > 8 or color_type not in (0, 2, 3):  # grey, RGB, palette; without alpha
                return False
        elif name in PNG_TEXT_CHUNKS:
            text = file.read(min(length, MAX_TEXT_BYTES))
            if length > MAX_TEXT_BYTES or text.startswith(b"Raw profile type") or not _is_upright_text(text):
                return False
        elif name == b"eXIf" and _read_exif_orientation(file.read(length)) != 1:
            return False
        names.add(name)
    if b"IEND" not in names or b"tRNS" in names:
        return False
    extra = names - HARMLESS_PNG_CHUNKS - PNG_TEXT_CHUNKS - {b"eXIf"}
    if b"iCCP" in names:
        file.seek(0)
        with open_image(file) as image:
            profile = image.info.get("icc_profile")
            if not profile or image.mode not in {"RGB", "L", "P"}:
                return False
            return is_srgb(profile, "L" if image.mode == "L" else "RGB") and extra <= {b"iCCP", b"gAMA", b"cHRM"}
    # A browser follows sRGB where it is given, and gAMA and cHRM, which the decoder ignores, where it is not.
    return extra <= ({b"gAMA", b"cHRM"} if b"sRGB" in names else set())


def _iterate_png_chunks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield name and length per chunk, with the file at its content."""
    place = len(PNG_SIGNATURE)
    for _ in range(MAX_PNG_CHUNKS):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8:
            return
        length, name = struct.unpack(">I4s", head)
        yield name, length
        if name == b"IEND":
            return
        place += 12 + length


def _is_upright_text(text: bytes) -> bool:
    if not text.startswith(b"XML:com.adobe.xmp\0"):
        return True
    compressed = text[18:19] != b"\0"
    return not compressed and b"Orientation" not in text


def _is_plain_webp(head: bytes, size: int) -> bool:
    kind, length = struct.unpack_from("<4sI", head, 12)
    if 12 + 8 + length + length % 2 != size:
        return False  # something follows
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", head, 21)
        return head[20] == 0x2F and not bits >> 28 & 1  # transparent
    return kind == b"VP8 "
