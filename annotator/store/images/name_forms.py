"""The forms in which names of images are compared: as paths, without ending, without regard to case, as addresses.

All are pure functions of one name. name_matching.py says in which order they are tried, and when a match counts.
"""

import base64
import binascii
import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from annotator.store.pictures.kinds import IMAGE_SUFFIXES

ENDINGS = IMAGE_SUFFIXES | {
    *(".jfif", ".jpe", ".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".ppm", ".pgm", ".pnm", ".tga", ".dcm"),
    *(".dng", ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw"),
}
"""Endings of image files, also of those that are not read here: an image may have been converted since it was named."""
LONGEST_ADDRESS = 10_000  # letters of a name in which an address is looked for
_UPLOAD = re.compile(r"(?:.*/)?upload/(?:\d+/)?(?:[0-9a-f]{8}-)?([^/]+)$")
_QUERY = re.compile(f"(.*?(?:{'|'.join(map(re.escape, sorted(ENDINGS)))}))[?#].*", re.DOTALL | re.IGNORECASE)
_SERVERS = ("/data/", "/tasks/")  # where Label Studio serves files
_GENERIC = frozenset({
    *("img", "imgs", "image", "images", "jpg", "jpgs", "jpeg", "jpegs", "jpegimages", "png", "pngs", "photo", "photos"),
    *("picture", "pictures", "pic", "pics", "data", "dataset", "datasets", "raw", "files", "upload", "uploads"),
    *("media", "obj_train_data", "default"),
})  # fmt: skip
"""Names of folders that tools choose by themselves."""


def image_name(address: str) -> str:
    """Return the path of an image in an address, without the server, the bucket and the server's own prefix.

    Label Studio's uploads (/data/upload/3/1a2b3c4d-cat.jpg), local files (/data/local-files/?d=pets/cat.jpg) and signed
    addresses (?fileuri=<base64>) are known. Inline data gives ""; text that is not an address is returned unchanged.
    """
    if address.startswith("data:"):
        return ""
    if not is_address_like(address):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    query = parse_qs(parts.query.replace("+", "%2B")) if parts.query else {}  # "+" is a letter of names and of base64
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


def is_address_like(name: str) -> bool:
    """Return whether a name is that of a place on a server, of which a part of the path is the server's own."""
    return "://" in name or name.startswith(_SERVERS)


def as_path(name: str) -> str:
    """Return a name with "/" between its folders, without blanks and "./" around it, accents as one letter."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", name)
    name = name.replace("\\", "/").strip()
    while name.startswith("./"):
        name = name[2:]
    return name.lstrip("/")


def without_ending(path: str) -> str:
    """Return a path without the ending of an image file; whole if it has none ("scan.v2")."""
    stem, dot, ending = path.rpartition(".")
    return stem if dot and stem and not stem.endswith("/") and f".{ending.lower()}" in ENDINGS else path


def with_small_ending(path: str) -> str:
    """Return a path with its ending in small letters."""
    stem, dot, ending = path.rpartition(".")
    return f"{stem}.{ending.lower()}" if dot and "/" not in ending else path


def unquoted(path: str) -> str:
    """Return a path with all %20 and the like decoded, as often as they were encoded."""
    for _ in range(3):
        if "%" not in path or (plain := unquote(path)) == path:
            break
        path = plain
    return path


def without_query(name: str) -> str:
    """Return the path that an address names: without query and fragment, decoded."""
    if len(name) > LONGEST_ADDRESS:
        return name
    name = image_name(name)
    if match := _QUERY.fullmatch(name):
        name = match[1]
    return as_path(unquoted(name))


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def folder_of(name: str) -> str:
    """Return all but the last part of a name, with "/" between the folders."""
    return as_path(name).rpartition("/")[0]


def joined(folder: str, name: str) -> str | None:
    """Return the path of a name that is relative to a folder, with ".." followed; None if it leads out.

    Args:
        folder: "", or a path with "/" at its end.
        name: The name.
    """
    path = posixpath.normpath(folder + name.replace("\\", "/"))
    return None if path.startswith(("../", "/")) else path


def may_be_one_folder(name: str, other: str) -> bool:
    """Return whether the folders of two names do not say that these are two files.

    They do where both have a name of their own ("S1/1.jpg", "S2/1.jpg"), and not where one is only called "images" or
    the like, as tools call it ("img/1.jpg", "data/birds/1.jpg").
    """
    one, two = (_meaning(folder_of(path)) for path in (name, other))
    return not one or not two or one == two


def _meaning(folder: str) -> str:
    """Return the innermost folder of a path that a person has named; "" where there is none."""
    return next((part for part in reversed(folder.casefold().split("/")) if part not in _GENERIC), "")


def differ_in_ending(name: str, other: str) -> bool:
    """Return whether one of two names is the end of the other but for the ending, capitals told apart."""
    stem, whole = without_ending(as_path(other)), as_path(name)
    return any(
        f"/{stem}".endswith(f"/{ours}") or f"/{ours}".endswith(f"/{stem}") for ours in (whole, without_ending(whole))
    )


def normalized(name: str, which: Literal["NFC", "NFD"]) -> str:
    """Return a name in a Unicode form."""
    return unicodedata.normalize(which, name)


def _address(name: str) -> str:
    return unquoted(as_path(name))


# Two letters a form: what is compared, and of it the whole (p), the small ending (q), no ending (s); capitals are not
# told apart in capital letters.
FORMS: Mapping[str, Callable[[str], str]] = {
    "p": as_path,
    "q": lambda name: with_small_ending(as_path(name)),
    "s": lambda name: without_ending(as_path(name)),
    "P": lambda name: as_path(name).casefold(),
    "S": lambda name: without_ending(as_path(name)).casefold(),
    # of an address, as the source writes it
    "ap": without_query,
    "aq": lambda name: with_small_ending(without_query(name)),
    "as": lambda name: without_ending(without_query(name)),
    "aP": lambda name: without_query(name).casefold(),
    "aS": lambda name: without_ending(without_query(name)).casefold(),
    # of a file that was named by an address
    "fp": _address,
    "fq": lambda name: with_small_ending(_address(name)),
    "fs": lambda name: without_ending(_address(name)),
    "fP": lambda name: _address(name).casefold(),
    "fS": lambda name: without_ending(_address(name)).casefold(),
}
"""Name of a form -> function of a name. Forms in capital letters do not tell capitals from small letters."""


def loose(name: str) -> str:
    """Return the last part of a name in the loosest form of all: names that differ in it cannot match."""
    if name.isascii() and "%" not in name and "\\" not in name:  # the same in a third of the time
        last = name[name.rfind("/") + 1 :].strip().lower()
        dot = last.rfind(".")
        return last[:dot] if dot > 0 and last[dot:] in ENDINGS else last
    return file_name(without_ending(_address(name))).casefold()


def loose_whole(name: str) -> str:
    """Return the last part with its ending in the loosest form: a name without ending may look as if it had one."""
    return file_name(_address(name)).casefold()


def form(which: str, name: str) -> str:
    """Return a name in one of FORMS."""
    return FORMS[which](name)


def depth(path: str) -> int:
    """Return the number of folders of a path."""
    return path.count("/")


def tail(path: str, folders: int) -> str | None:
    """Return the end of a path with `folders` folders; None where the path has fewer."""
    parts = path.rsplit("/", folders + 1)
    return path if len(parts) == folders + 1 else "/".join(parts[1:]) if len(parts) > folders + 1 else None
