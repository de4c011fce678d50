"""Who may read a project: the user who made it, nobody else on this machine.

The folder is what keeps others out, so only it and what lies directly in it are looked at: a project may hold a
million thumbnails.
"""

import contextlib
import os
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def files_for_owner_only() -> None:
    """From now on this process makes files that nobody else may read: for those that write into the project only."""
    os.umask(OTHERS)


def make_private(folder: Path) -> None:
    """Take the rights of others away from a project's folder and what lies in it, where they have any.

    Links are left alone, and so is what belongs to somebody else or lies on a medium that cannot be written.
    """
    with contextlib.suppress(OSError):
        _take_away(folder, folder.stat())
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if not entry.is_symlink():
                        _take_away(Path(entry.path), entry.stat())


def write_private(path: Path, text: str) -> None:
    """Write a small file that nobody else may read, not even while it is being made."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _take_away(path: Path, found: os.stat_result) -> None:
    if found.st_mode & OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)
