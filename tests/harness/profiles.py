"""Colour profiles made by hand, as small as they may be, for tests of what images look like."""

import struct

import numpy as np
from PIL import ImageCms

D50 = (0.9642, 1.0, 0.8249)
# Primaries of Display P3, adapted to D50.
WIDE = ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))


def srgb() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def lab() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


def wide() -> bytes:
    """RGB with the primaries of Display P3 and a gamma of 1.8."""
    tags = {f"{name}XYZ".encode(): _xyz(colour) for name, colour in zip("rgb", WIDE, strict=True)}
    tags |= {f"{name}TRC".encode(): _gamma(1.8) for name in "rgb"}
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags)


def gray() -> bytes:
    """Greys with a gamma of 1.2."""
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"kTRC": _gamma(1.2)})


def table_rgb() -> bytes:
    """RGB by a table to Lab: green and blue change places, and everything is darker."""
    corners = np.array([(r, b, g) for r in (0, 1) for g in (0, 1) for b in (0, 1)], float)
    return _profile(b"scnr", b"RGB ", b"Lab ", {b"A2B0": _table(corners * 0.8)})


def cmyk() -> bytes:
    """Inks by a table to Lab, lighter than what 1 - ink gives."""
    corners = np.stack(np.meshgrid(*[[0, 1]] * 4, indexing="ij"), -1).reshape(-1, 4).astype(float)
    rgb = 0.3 + 0.7 * (1 - corners[:, :3]) * (1 - corners[:, 3:])
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"A2B0": _table(rgb)})


def _table(rgb: np.ndarray) -> bytes:
    """An 8-bit table (mft1) whose corners have these colours, roughly turned into Lab."""
    inputs = int(np.log2(len(rgb)))
    lightness = rgb @ (0.3, 0.6, 0.1)
    values = np.stack([lightness * 255, 128 + (rgb[:, 0] - rgb[:, 1]) * 90, 128 + (rgb[:, 1] - rgb[:, 2]) * 90], 1)
    ramp = bytes(range(256))
    head = b"mft1" + bytes(4) + bytes([inputs, 3, 2, 0])
    matrix = b"".join(_fixed(number) for number in (1, 0, 0, 0, 1, 0, 0, 0, 1))
    return head + matrix + ramp * inputs + values.clip(0, 255).astype(np.uint8).tobytes() + ramp * 3


def _profile(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    text = b"made for a test\0"
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(78),
        b"cprt": b"text" + bytes(4) + text,
        b"wtpt": _xyz(D50),
    } | tags
    place, directory, body = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        directory += struct.pack(">4sII", name, place + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = struct.pack(">I4sI4s4s4s", 0, b"test", 0x02400000, kind, space, connection)
    head += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    head += b"".join(_fixed(number) for number in D50)
    head += bytes(128 - len(head))
    whole = head + directory + body
    return struct.pack(">I", len(whole)) + whole[4:]


def _xyz(values: tuple[float, float, float]) -> bytes:
    return b"XYZ " + bytes(4) + b"".join(_fixed(number) for number in values)


def _gamma(value: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(value * 256)) + bytes(2)


def _fixed(number: float) -> bytes:
    return struct.pack(">i", round(number * 65536))
