"""Paths named by an imported source, restricted to its folder."""

from pathlib import Path, PurePosixPath


def find_file_inside(folder: Path, name: str) -> str:
    """Return a file's path relative to a folder, or "" if it is missing or (by links) outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        return ""
    try:
        if not (folder / path).is_file() or not (folder / path).resolve().is_relative_to(folder.resolve()):
            return ""
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return ""
    return str(path)
