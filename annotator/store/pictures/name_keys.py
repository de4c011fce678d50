"""Sort keys of images in file order, with numbers in names as numbers.

SQLite compares bytes, so each run of digits is preceded by its length. Case is ignored.
"""

import re
from functools import lru_cache

_DIGITS_PATTERN = re.compile("[0-9]+")
_CONTROL_PATTERN = re.compile("[\x00-\x1f]")
_SUBFOLDER_MARK, _FILE_MARK = "\x02", "\x01"  # before a folder's name, and before the file's


def build_name_key(folder_id: int, path: str) -> str:
    """Return the sort key of a file.

    Args:
        folder_id: Added folder, in order of addition.
        path: Below that folder, with "/".
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
