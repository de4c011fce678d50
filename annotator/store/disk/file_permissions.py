"""File permissions of a project: only the user who made it may read it.

The folder's own permissions keep others out, so only the folder and its direct entries are changed: a project may hold
a million thumbnails.
"""

import contextlib
import os
import stat
from pathlib import Path

OTHERS_PERMISSIONS = stat.S_IRWXG | stat.S_IRWXO


def set_private_umask() -> None:
    """Set the umask so that only the owner may read new files; for processes that write into the project only."""
    os.umask(OTHERS_PERMISSIONS)


def make_private(folder: Path) -> None:
    """Remove the permissions of others from a project's folder and its entries.

    Links, files of other users and read-only media are skipped.
    """
    with contextlib.suppress(OSError):
        _remove_others_permissions(folder, folder.stat())
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if not entry.is_symlink():
                        _remove_others_permissions(Path(entry.path), entry.stat())


def write_private(path: Path, text: str) -> None:
    """Write a small file that only the owner may read, from its creation on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _remove_others_permissions(path: Path, facts: os.stat_result) -> None:
    if facts.st_mode & OTHERS_PERMISSIONS:
        path.chmod(stat.S_IMODE(facts.st_mode) & ~OTHERS_PERMISSIONS)
