"""Private file permissions of a project folder and its direct entries. Windows has none."""

import contextlib
import os
import stat
from pathlib import Path

OTHERS_PERMISSIONS = stat.S_IRWXG | stat.S_IRWXO


def set_private_umask() -> None:
    """Set the umask so that only the owner can read new files."""
    os.umask(OTHERS_PERMISSIONS)


def make_private(folder: Path) -> None:
    """Remove other users' permissions from a project folder and its entries."""
    with contextlib.suppress(OSError):
        _remove_others_permissions(folder, folder.stat())
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if not entry.is_symlink():
                        _remove_others_permissions(Path(entry.path), entry.stat())


def write_private(path: Path, text: str) -> None:
    """Write a small file that is never readable by other users."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def is_open_to_others(facts: os.stat_result) -> bool:
    """Return whether other users have permissions on a file. False on Windows."""
    return os.name != "nt" and bool(facts.st_mode & OTHERS_PERMISSIONS)


def get_user_id() -> int:
    """Return the user's `st_uid`, 0 on Windows."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _remove_others_permissions(path: Path, facts: os.stat_result) -> None:
    if is_open_to_others(facts):
        path.chmod(stat.S_IMODE(facts.st_mode) & ~OTHERS_PERMISSIONS)
