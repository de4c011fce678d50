"""Photos of any size, all different: noise under the headers of a camera, with a comment that numbers them."""

import io
import time
from pathlib import Path

import numpy as np
from PIL import Image

FILES_PER_FOLDER = 1000  # files
TIME_PLACEHOLDER = b"0000:00:00 00:00:00"  # where the time of a photo is written
FIRST_PHOTO_TIME = 1_600_000_000  # seconds since 1970, of the first photo; one a minute follows
MAX_COMMENT_BYTES = 65_000  # bytes of a comment


def write_photos(folder: Path, count: int, kilobytes: int) -> None:
    """Write folder/0000/00000000.jpg and so on, each of about that size.

    Raises:
        OSError: A file cannot be written.
    """
    head, rest = _build_photo_parts(kilobytes)
    fill = max(0, min(1000 * kilobytes - len(head) - len(rest) - 14, MAX_COMMENT_BYTES))
    mark = b"\xff\xfe" + (fill + 10).to_bytes(2)
    place = rest.index(TIME_PLACEHOLDER)
    before, behind = rest[:place], rest[place + len(TIME_PLACEHOLDER) :]
    for number in range(count):
        below = folder / f"{number // FILES_PER_FOLDER:05d}"
        if number % FILES_PER_FOLDER == 0:
            below.mkdir(parents=True)
        taken = time.strftime("%Y:%m:%d %H:%M:%S", time.gmtime(FIRST_PHOTO_TIME + 60 * number)).encode()
        content = b"".join((head, mark, f"{number:08d}".encode(), bytes(fill), before, taken, behind))
        (below / f"{number:08d}.jpg").write_bytes(content)


def _build_photo_parts(kilobytes: int) -> tuple[bytes, bytes]:
    """Return a JPEG in two parts, cut where a comment may stand."""
    exif = Image.Exif()
    exif[0x0112] = 1
    exif.get_ifd(0x8769)[0x9003] = TIME_PLACEHOLDER.decode()
    side, content = 16, b""
    chance = np.random.default_rng(1)
    while True:
        file = io.BytesIO()
        noise = Image.fromarray(chance.integers(0, 256, (side // 4, side // 3, 3), dtype=np.uint8))
        noise.resize((side * 4 // 3, side)).save(file, "JPEG", quality=85, exif=exif.tobytes())
        if content and len(file.getvalue()) > 990 * kilobytes:
            return content[:2], content[2:]
        content, side = file.getvalue(), side + max(1, side // 20)
