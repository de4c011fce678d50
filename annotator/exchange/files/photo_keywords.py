"""Keywords in image files: XMP and IPTC blocks, of which only the header is read, and XMP blocks in resized images.

IPTC Keywords (IIM 2:25, https://iptc.org/standards/iim/) are in a JPEG's APP13 segment or a TIFF tag. An XMP block of
more than 64 KB in a JPEG (extended XMP) is not read, as Pillow does not join its parts.
"""

import struct
import warnings
from pathlib import Path
from typing import Any

from PIL import Image, ImageFile, IptcImagePlugin

from annotator.exchange.files.xmp_packets import KeywordPacket, parse_packet
from annotator.store.disk.open_files import open_file

IPTC_KEYWORDS, IPTC_CHARSET = (2, 25), (1, 90)
UTF8_ESCAPE = b"\x1b%G"
MAX_KEYWORDS = 1000  # of one image
XMP_TIFF_TAG = 700
XMP_JPEG_MARK = b"http://ns.adobe.com/xap/1.0/\0"
MAX_SEGMENT_BYTES = 65_533  # of a JPEG segment, after its length


def read_photo_keywords(path: Path) -> KeywordPacket:
    """Return the keywords in an image file. Files that Pillow cannot open have none.

    Raises ValueError for a damaged XMP block.
    """
    try:
        with open_file(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file) as image:
                xmp = _find_xmp(image)
                iptc = _read_iptc(image)
    except Exception:  # registration reports damaged images
        return KeywordPacket()
    packet = parse_packet(xmp) if xmp else KeywordPacket()
    packet.flat = list(dict.fromkeys([*packet.flat, *iptc]))[:MAX_KEYWORDS]
    del packet.paths[MAX_KEYWORDS:]
    return packet


def _find_xmp(image: ImageFile.ImageFile) -> bytes:
    found: Any = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp")
    if found is None and image.format == "TIFF":
        found = getattr(image, "tag_v2", {}).get(XMP_TIFF_TAG)
    return found.encode() if isinstance(found, str) else found if isinstance(found, bytes) else b""


def _read_iptc(image: ImageFile.ImageFile) -> list[str]:
    if image.format not in ("JPEG", "TIFF"):
        return []
    try:
        blocks: dict[tuple[int, int], Any] = IptcImagePlugin.getiptcinfo(image) or {}
    except Exception:  # a damaged block, which says nothing
        return []
    found = blocks.get(IPTC_KEYWORDS, ())
    is_utf8 = blocks.get(IPTC_CHARSET) == UTF8_ESCAPE
    listed = found if isinstance(found, list) else [found] if found else []
    return [name for value in listed[:MAX_KEYWORDS] if (name := _decode_keyword(value, is_utf8))]


def _decode_keyword(value: bytes, is_utf8: bool) -> str:
    try:
        return value.decode().strip("\0 \r\n\t")  # many programs write UTF-8 without declaring it
    except UnicodeDecodeError:
        return value.decode("utf-8" if is_utf8 else "latin-1", "replace").strip("\0 \r\n\t")


def embed_packet(content: bytes, packet: str) -> bytes | None:
    """Return a JPEG file with an XMP block, or None if it has one already or the block is too long.

    Pixels and all other blocks stay as they are. https://github.com/adobe/xmp-docs says where the block is.
    """
    block = XMP_JPEG_MARK + packet.encode()
    place = at = 2
    while content[at : at + 1] == b"\xff" and 0xE0 <= content[at + 1] <= 0xEF:
        [size] = struct.unpack_from(">H", content, at + 2)
        if content.startswith(XMP_JPEG_MARK, at + 4):
            return None
        if content[at + 1] <= 0xE1:  # JFIF and EXIF must come first
            place = at + 2 + size
        at += 2 + size
    if len(block) > MAX_SEGMENT_BYTES:
        return None
    return content[:place] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + content[place:]
