"""Validation of JPEGs without decoding pixels, which would be 90% of the registration cost.

libjpeg fails only for bad headers and tables, misplaced markers and an early end. Decoding a tiny image with the same
tables tests the first, a marker search the rest. ISO/IEC 10918-1, annex B.
"""

from dataclasses import dataclass

import numpy as np

from annotator.store.pictures.exif import EXIF_PREFIX

BASELINE_MARKERS, SCAN_MARKER, END_MARKER = (0xC0, 0xC1), 0xDA, 0xD9
OTHER_FRAME_MARKERS = frozenset(range(0xC2, 0xD0)) - {0xC4, 0xCC}  # progressive, lossless, ...
LENGTHLESS_MARKERS = frozenset({0x00, 0x01, *range(0xD0, 0xDA), 0xFF})
COMMENT_MARKER, APP1_MARKER, MULTI_PICTURE_SEGMENT = 0xFE, 0xE1, (0xE2, b"MPF\0")
MAX_SIDE_PIXELS = 65_500  # pixels, that libjpeg takes
MAX_SEGMENTS = 500
TINY_SIDE = (16).to_bytes(2)  # pixels of a side


@dataclass(frozen=True)
class WholeJpeg:
    """A JPEG that is valid if `tables` can be decoded."""

    # width, height: before EXIF rotation
    width: int
    height: int
    # tiny JPEG with the same tables
    tables: bytes
    # file up to its pixels
    head: bytes
    # b"" without one, None if ambiguous
    exif: bytes | None


def parse_whole_jpeg(content: bytes) -> WholeJpeg | None:
    """Return a JPEG's structure, or None if only decoding can validate it."""
    if content[:2] != b"\xff\xd8":
        return None
    place, frame, more = 2, b"", list[bytes]()
    kept = [b"\xff\xd8"]
    for _ in range(MAX_SEGMENTS):
        if place + 4 > len(content) or content[place] != 0xFF:
            return None
        marker = content[place + 1]
        behind = place + 2 + int.from_bytes(content[place + 2 : place + 4])
        if marker in LENGTHLESS_MARKERS or marker in OTHER_FRAME_MARKERS or not place + 4 <= behind <= len(content):
            return None
        segment = content[place:behind]
        if marker == MULTI_PICTURE_SEGMENT[0] and segment.startswith(MULTI_PICTURE_SEGMENT[1], 4):
            return None
        if marker == SCAN_MARKER:
            # All components in this scan, and nothing but stuffed bytes and restarts up to the end of the image.
            if len(frame) < 10 or segment[4:5] != frame[9:10] or not _has_clean_end(content, behind):
                return None
            height, width = int.from_bytes(frame[5:7]), int.from_bytes(frame[7:9])
            if not (0 < height <= MAX_SIDE_PIXELS and 0 < width <= MAX_SIDE_PIXELS):
                return None
            tables = b"".join([*kept, segment, b"\xff\xd9"])
            exif = more[0] if len(more) == 1 and more[0].startswith(EXIF_PREFIX) else None
            return WholeJpeg(width, height, tables, content[:behind], exif if more else b"")
        if marker in BASELINE_MARKERS:
            if frame:
                return None
            frame = segment
            segment = segment[:5] + TINY_SIDE + TINY_SIDE + segment[9:]
        if marker == APP1_MARKER:
            more.append(segment[4:])
        elif marker != COMMENT_MARKER:
            kept.append(segment)
        place = behind
    return None


def _has_clean_end(content: bytes, start: int) -> bool:
    """Return whether the next marker, ignoring restarts, ends the image."""
    scan = np.frombuffer(content, np.uint8, offset=start)
    follow = scan[np.flatnonzero(scan[:-1] == 0xFF) + 1]
    markers = follow[(follow != 0) & ((follow & 0xF8) != 0xD0)]
    return markers.size > 0 and int(markers[0]) == END_MARKER
