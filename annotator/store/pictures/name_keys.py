"""The key by which images stand in the order of their files: folder by folder, numbers in names as numbers.

SQLite compares text byte by byte, so a run of digits is preceded by its length: "img2" comes before "img10". A folder
holds its own files first, then its subfolders. Capitals make no difference. registration.py keeps the key up to date;
image.folder_key is its beginning, which all files of one folder share.
"""

import re
from functools import lru_cache

_DIGITS = re.compile("[0-9]+")
_CONTROL = re.compile("[\x00-\x1f]")
_SUBFOLDER, _FILE = "\x02", "\x01"  # before a folder's name, and before the file's


def name_key(folder_id: int, path: str) -> str:
    """Return the sort key of a file.

    Args:
        folder_id: The folder that was added to the project; folders stand in the order in which they were added.
        path: Below that folder, with "/" on every system.
    """
    folders, _, name = path.rpartition("/")
    return f"{folder_id:06d}{_of_folders(folders)}{_FILE}{_natural(name)}"


@lru_cache(maxsize=256)
def _of_folders(path: str) -> str:
    return "".join(_SUBFOLDER + _natural(folder) for folder in path.split("/")) if path else ""


def _natural(name: str) -> str:
    return _DIGITS.sub(lambda match: _number(match[0]), _CONTROL.sub(" ", name).casefold())


def _number(digits: str) -> str:
    significant = digits.lstrip("0") or "0"
    return f"{min(len(significant), 999):03d}{significant}"
