"""The key by which images stand in the order of their files: folder by folder, numbers in names as numbers.

SQLite compares text byte by byte, so a run of digits is preceded by its length: "img2" comes before "img10". A folder
holds its own files first, then its subfolders. Capitals make no difference. registration.py keeps the key up to date;
image.folder_key is its beginning, which all files of one folder share.
"""

import re
from functools import lru_cache

_DIGITS_PATTERN = re.compile("[0-9]+")
_CONTROL_PATTERN = re.compile("[\x00-\x1f]")
_SUBFOLDER_MARK, _FILE_MARK = "\x02", "\x01"  # before a folder's name, and before the file's


def build_name_key(folder_id: int, path: str) -> str:
    """Return the sort key of a file.

    Args:
        folder_id: The folder that was added to the project; folders stand in the order in which they were added.
        path: Below that folder, with "/" on every system.
    """
    folders, _, name = path.rpartition("/")
    return f"{folder_id:06d}{_build_folders_key(folders)}{_FILE_MARK}{_build_natural_key(name)}"


@lru_cache(maxsize=256)
def _build_folders_key(path: str) -> str:
    return "".join(_SUBFOLDER_MARK + _build_natural_key(folder) for folder in path.split("/")) if path else ""


def _build_natural_key(name: str) -> str:
    return _DIGITS_PATTERN.sub(lambda match: _encode_number(match[0]), _CONTROL_PATTERN.sub(" ", name).casefold())


def _encode_number(digits: str) -> str:
    significant = digits.lstrip("0") or "0"
    return f"{min(len(significant), 999):03d}{significant}"
