"""Capture time and camera from a file's EXIF block.

Each field of `Capture` is a column of the table `image`. Blocks are not trusted: Pillow would allocate any claimed
size, so only MAX_ENTRIES entries and some bytes of four tags are read. Without a UTC offset, DateTimeOriginal counts as
UTC.
"""

import io
import re
import struct
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta, timezone
from typing import IO

from PIL import ImageFile

DATE_TIME_ORIGINAL, SUBSECONDS, OFFSET = 0x9003, 0x9291, 0x9011
EXIF_DIRECTORY, ORIENTATION = 0x8769, 0x0112
MODEL = 0x0110
EXIF_PREFIX, SHORT_TYPE = b"Exif\0\0", 3
FIRST_DIRECTORY_TAGS = (MODEL,)  # tags whose texts are read from the first directory
EXIF_TEXTS = (DATE_TIME_ORIGINAL, SUBSECONDS, OFFSET)  # and from the one of the exposure
MAX_ENTRIES = 1000
MAX_TEXT_BYTES = 64  # bytes of a text
MIN_YEAR, END_YEAR = 1900, 2200  # years; others are clocks that were never set, or spoilt blocks

_DATE_PATTERN = re.compile(r"(\d{4})\D(\d\d)\D(\d\d)\D(\d\d)\D(\d\d)\D(\d\d)")
_OFFSET_PATTERN = re.compile(r"([+-])(\d\d):?(\d\d)")


@dataclass(frozen=True)
class Capture:
    """Capture metadata, None or "" if unknown."""

    # unix seconds
    captured_at: float | None = None
    camera: str = ""

    def to_row(self) -> tuple[float | str | None, ...]:
        """Return the values of CAPTURE_COLUMNS, with unknown texts as NULL."""
        return tuple(None if value == "" else value for value in astuple(self))


CAPTURE_COLUMNS = tuple(field.name for field in fields(Capture))  # columns of the table `image`
UNKNOWN_CAPTURE = Capture()


def extract_capture(image: ImageFile.ImageFile) -> Capture:
    """Return the EXIF metadata of an opened image, or UNKNOWN_CAPTURE. Blocks after a PNG's pixels are not found."""
    with suppress(Exception):  # whatever is wrong with the block, the picture is good
        file = _find_block(image)
        return _build_capture(_read_texts(file)) if file else UNKNOWN_CAPTURE
    return UNKNOWN_CAPTURE


def parse_block(block: bytes) -> tuple[int, Capture] | None:
    """Return (orientation 1 to 8, capture metadata) of an EXIF block, or None if it is ambiguous."""
    try:
        file = io.BytesIO(block.removeprefix(EXIF_PREFIX))
        order, entries = _read_first_directory(file)
        kind, count, value = entries.get(ORIENTATION, (SHORT_TYPE, 1, struct.pack(f"{order}H", 1)))
        if (kind, count) != (SHORT_TYPE, 1) or len(entries) >= MAX_ENTRIES:
            return None
        (turn,) = struct.unpack_from(f"{order}H", value)
        taken = UNKNOWN_CAPTURE
        with suppress(Exception):  # as above
            taken = _build_capture(_read_texts(file))
        return turn if 1 <= turn <= 8 else 1, taken
    except (LookupError, struct.error):
        return None


def _build_capture(texts: dict[int, str]) -> Capture:
    return Capture(captured_at=_parse_time(texts), camera=texts.get(MODEL, ""))


def _find_block(image: ImageFile.ImageFile) -> IO[bytes] | None:
    """Return the EXIF block as a file (a TIFF is one), or None."""
    if image.format == "TIFF":
        return image.fp
    block = image.info.get("exif")
    return io.BytesIO(block.removeprefix(EXIF_PREFIX)) if isinstance(block, bytes) else None


def _read_first_directory(file: IO[bytes]) -> tuple[str, dict[int, tuple[int, int, bytes]]]:
    order = {b"II*\0": "<", b"MM\0*": ">"}[_read_bytes(file, 0, 4)]
    (first,) = struct.unpack(f"{order}I", _read_bytes(file, 4, 4))
    return order, _read_entries(file, order, first)


def _read_texts(file: IO[bytes]) -> dict[int, str]:
    place = file.tell()
    try:
        order, first = _read_first_directory(file)
        texts = {tag: _read_text(file, order, *first[tag]) for tag in FIRST_DIRECTORY_TAGS if tag in first}
        if EXIF_DIRECTORY in first:
            _, _, directory = first[EXIF_DIRECTORY]
            (start,) = struct.unpack(f"{order}I", directory)
            entries = _read_entries(file, order, start)
            texts |= {tag: _read_text(file, order, *entries[tag]) for tag in EXIF_TEXTS if tag in entries}
        return texts
    finally:
        file.seek(place)


def _read_entries(file: IO[bytes], order: str, start: int) -> dict[int, tuple[int, int, bytes]]:
    """Return directory entries: tag -> type, count, four bytes of value or offset."""
    (count,) = struct.unpack(f"{order}H", _read_bytes(file, start, 2))
    content = _read_bytes(file, start + 2, 12 * min(count, MAX_ENTRIES))
    rows = struct.iter_unpack(f"{order}HHI4s", content[: len(content) // 12 * 12])
    return {tag: (kind, number, value) for tag, kind, number, value in rows}


def _read_text(file: IO[bytes], order: str, kind: int, length: int, value: bytes) -> str:
    if kind != 2:  # not a text
        return ""
    if length > 4:
        value = _read_bytes(file, struct.unpack(f"{order}I", value)[0], min(length, MAX_TEXT_BYTES))
    return value[:length].split(b"\0")[0].decode("ascii", "replace").strip()


def _read_bytes(file: IO[bytes], start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)


def _parse_time(texts: dict[int, str]) -> float | None:
    date = _DATE_PATTERN.fullmatch(texts.get(DATE_TIME_ORIGINAL, ""))
    if date is None or not MIN_YEAR <= int(date[1]) < END_YEAR:
        return None
    offset = _OFFSET_PATTERN.fullmatch(texts.get(OFFSET, ""))
    zone = UTC
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        zone = timezone(ahead if offset[1] == "+" else -ahead)
    digits = texts.get(SUBSECONDS, "")
    fraction = float(f"0.{digits[:9]}") if digits.isascii() and digits.isdigit() else 0.0
    return datetime(*map(int, date.groups()), tzinfo=zone).timestamp() + fraction
