"""File and folder names that every system allows."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

MAX_NAME_CHARS = 100  # characters, so that a path with a format's folders has fewer than the 260 that Windows allows
_UNSAFE_PATTERN = re.compile(r"[^\w .()+,=@#&!\[\]-]")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)


def safe_name(text: str) -> str:
    """Return a portable file or folder name without tilde, which may not be unique."""
    name = unicodedata.normalize("NFC", text)
    name = _UNSAFE_PATTERN.sub("_", name).strip(" .")[:MAX_NAME_CHARS].strip(" .")
    if not name or is_device_name(name):
        name = f"_{name}"
    while len(name.encode()) > 2 * MAX_NAME_CHARS:
        name = name[:-1]
    return name


def is_device_name(name: str) -> bool:
    """Return whether Windows reserves a file name, such as "con.jpg"."""
    return bool(_DEVICES.match(name))


def safe_names(texts: Sequence[str]) -> list[str]:
    """Return portable names in order, made unique regardless of case by appending ~2, ~3."""
    used: Counter[str] = Counter()
    names: list[str] = []
    for text in texts:
        name = safe_name(text)
        used[fold_name(name)] += 1
        count = used[fold_name(name)]
        names.append(name if count == 1 else f"{name}~{count}")
    return names


def fold_name(name: str) -> str:
    """Return a key that is equal for names that some file system treats as one ("Fox", "fox")."""
    return unicodedata.normalize("NFKC", name).casefold()
