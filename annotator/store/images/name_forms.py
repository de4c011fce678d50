"""Normal forms for comparing image names, as pure functions."""

import base64
import binascii
import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES

IMAGE_ENDINGS = IMAGE_SUFFIXES | {
    *(".jfif", ".jpe", ".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".ppm", ".pgm", ".pnm", ".tga", ".dcm"),
    *(".dng", ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw"),
}
"""Endings of image files, also of those that are not read here: an image may have been converted since it was named."""
MAX_ADDRESS_CHARACTERS = 10_000  # letters of a name in which an address is looked for
_UPLOAD_PATTERN = re.compile(r"(?:.*/)?upload/(?:\d+/)?(?:[0-9a-f]{8}-)?([^/]+)$")
_QUERY_PATTERN = re.compile(
    f"(.*?(?:{'|'.join(map(re.escape, sorted(IMAGE_ENDINGS)))}))[?#].*", re.DOTALL | re.IGNORECASE
)
_SERVER_PREFIXES = ("/data/", "/tasks/")  # where Label Studio serves files
_GENERIC_FOLDERS = frozenset({
    *("img", "imgs", "image", "images", "jpg", "jpgs", "jpeg", "jpegs", "jpegimages", "png", "pngs", "photo", "photos"),
    *("picture", "pictures", "pic", "pics", "data", "dataset", "datasets", "raw", "files", "upload", "uploads"),
    *("media", "obj_train_data", "default"),
})  # fmt: skip
"""Names of folders that tools choose by themselves."""


def extract_image_name(address: str) -> str:
    """Return the image path in a URL, without server and bucket ("" for inline data, other text unchanged)."""
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
        return extract_image_name(_decode_file_uri(query["fileuri"][0]))
    if match := _UPLOAD_PATTERN.match(parts.path):
        return unquote(match[1])
    if parts.scheme in ("http", "https"):
        return unquote(parts.path).lstrip("/")
    if parts.scheme in ("s3", "gs", "azure-blob", "file"):
        return address.split("://", 1)[1].partition("/")[2] if parts.scheme != "file" else unquote(parts.path)
    return address


def _decode_file_uri(text: str) -> str:
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return text
    return decoded if "fileuri=" not in decoded else ""


def is_address_like(name: str) -> bool:
    """Return whether a name is a URL or server path."""
    return "://" in name or name.startswith(_SERVER_PREFIXES)


def to_path(name: str) -> str:
    """Return a name as a clean path: "/" separators, NFC, no leading "./"."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", name)
    name = name.replace("\\", "/").strip()
    while name.startswith("./"):
        name = name[2:]
    return name.lstrip("/")


def strip_ending(path: str) -> str:
    """Return a path without its image extension, if any."""
    stem, dot, ending = path.rpartition(".")
    return stem if dot and stem and not stem.endswith("/") and f".{ending.lower()}" in IMAGE_ENDINGS else path


def lower_ending(path: str) -> str:
    """Return a path with its extension in lower case."""
    stem, dot, ending = path.rpartition(".")
    return f"{stem}.{ending.lower()}" if dot and "/" not in ending else path


def unquote_path(path: str) -> str:
    """Return a path with repeated percent-encoding decoded."""
    for _ in range(3):
        if "%" not in path or (plain := unquote(path)) == path:
            break
        path = plain
    return path


def strip_query(name: str) -> str:
    """Return the decoded path of a URL, without query and fragment."""
    if len(name) > MAX_ADDRESS_CHARACTERS:
        return name
    name = extract_image_name(name)
    if match := _QUERY_PATTERN.fullmatch(name):
        name = match[1]
    return to_path(unquote_path(name))


def get_file_name(path: str) -> str:
    return path.rpartition("/")[2]


def get_folder(name: str) -> str:
    """Return the folder of a name, as a clean path."""
    return to_path(name).rpartition("/")[0]


def join_path(folder: str, name: str) -> str | None:
    """Return a name joined to a folder, or None outside it."""
    path = posixpath.normpath(folder + name.replace("\\", "/"))
    return None if path.startswith(("../", "/")) else path


def may_be_one_folder(name: str, other: str) -> bool:
    """Return whether the folders of two names could be the same. Generic folders such as "img" match all."""
    one, two = (_find_named_folder(get_folder(path)) for path in (name, other))
    return not one or not two or one == two


def _find_named_folder(folder: str) -> str:
    return next((part for part in reversed(folder.casefold().split("/")) if part not in _GENERIC_FOLDERS), "")


def differs_in_ending(name: str, other: str) -> bool:
    """Return whether two names match as paths except for the extension or leading folders."""
    stem, whole = strip_ending(to_path(other)), to_path(name)
    return any(
        f"/{stem}".endswith(f"/{ours}") or f"/{ours}".endswith(f"/{stem}") for ours in (whole, strip_ending(whole))
    )


def normalize_unicode(name: str, which: Literal["NFC", "NFD"]) -> str:
    return unicodedata.normalize(which, name)


def _to_address_path(name: str) -> str:
    return unquote_path(to_path(name))


# Two letters a form: what is compared, and of it the whole (p), the small ending (q), no ending (s); capitals are not
# told apart in capital letters.
NAME_FORMS: Mapping[str, Callable[[str], str]] = {
    "p": to_path,
    "q": lambda name: lower_ending(to_path(name)),
    "s": lambda name: strip_ending(to_path(name)),
    "P": lambda name: to_path(name).casefold(),
    "S": lambda name: strip_ending(to_path(name)).casefold(),
    # of an address, as the source writes it
    "ap": strip_query,
    "aq": lambda name: lower_ending(strip_query(name)),
    "as": lambda name: strip_ending(strip_query(name)),
    "aP": lambda name: strip_query(name).casefold(),
    "aS": lambda name: strip_ending(strip_query(name)).casefold(),
    # of a file that was named by an address
    "fp": _to_address_path,
    "fq": lambda name: lower_ending(_to_address_path(name)),
    "fs": lambda name: strip_ending(_to_address_path(name)),
    "fP": lambda name: _to_address_path(name).casefold(),
    "fS": lambda name: strip_ending(_to_address_path(name)).casefold(),
}
"""Name of a form -> function of a name. Forms in capital letters do not tell capitals from small letters."""


def to_loose_form(name: str) -> str:
    """Return the file name without folder, extension and case, which is equal for all kinds of matches."""
    if name.isascii() and "%" not in name and "\\" not in name:  # the same in a third of the time
        last = name[name.rfind("/") + 1 :].strip().lower()
        dot = last.rfind(".")
        return last[:dot] if dot > 0 and last[dot:] in IMAGE_ENDINGS else last
    return get_file_name(strip_ending(_to_address_path(name))).casefold()


def to_loose_whole_form(name: str) -> str:
    """Return the file name with extension, without folder and case."""
    return get_file_name(_to_address_path(name)).casefold()


def to_form(which: str, name: str) -> str:
    return NAME_FORMS[which](name)


def count_folders(path: str) -> int:
    return path.count("/")


def get_tail(path: str, folders: int) -> str | None:
    """Return the end of a path with `folders` folders, or None if shorter."""
    parts = path.rsplit("/", folders + 1)
    return path if len(parts) == folders + 1 else "/".join(parts[1:]) if len(parts) > folders + 1 else None
