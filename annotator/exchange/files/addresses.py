"""Image names in the addresses that annotation tools keep: of uploads, of a server's folders, of buckets."""

import base64
import binascii
import re
from urllib.parse import parse_qs, unquote, urlsplit

from annotator.store.pictures.kinds import HEIC, IMAGE_SUFFIXES

ENDINGS = tuple(sorted(IMAGE_SUFFIXES | HEIC.endings))  # of images that other tools read
_UPLOAD = re.compile(r"(?:.*/)?upload/(?:\d+/)?(?:[0-9a-f]{8}-)?([^/]+)$")


def image_name(address: str) -> str:
    """Return the path of an image in an address, without the server, the bucket and the server's own prefix.

    Label Studio's uploads (/data/upload/3/1a2b3c4d-cat.jpg), local files (/data/local-files/?d=pets/cat.jpg) and signed
    addresses (?fileuri=<base64>) are known. Inline data gives ""; text that is not an address is returned unchanged.
    """
    if address.startswith("data:"):
        return ""
    if "://" not in address and not address.startswith(("/data/", "/tasks/")):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    query = parse_qs(parts.query) if parts.query else {}
    if "d" in query:
        return query["d"][0].lstrip("/")
    if "fileuri" in query:
        return image_name(_decoded(query["fileuri"][0]))
    if match := _UPLOAD.match(parts.path):
        return unquote(match[1])
    if parts.scheme in ("http", "https"):
        return unquote(parts.path).lstrip("/")
    if parts.scheme in ("s3", "gs", "azure-blob", "file"):
        return address.split("://", 1)[1].partition("/")[2] if parts.scheme != "file" else unquote(parts.path)
    return address


def _decoded(text: str) -> str:
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return text
    return decoded if "fileuri=" not in decoded else ""


def looks_like_image(address: str) -> bool:
    """Return whether an address ends like the name of an image file; False for 10,000 characters and more."""
    path = image_name(address) if len(address) < 10_000 else ""
    return path.lower().endswith(ENDINGS)
