"""Detecting that an open project was moved, replaced or deleted, so that nothing is written to the wrong place.

Without this, SQLite would go on writing to the open file under its new name, or to a deleted one, and folders would be
made again at the old place.
"""

from pathlib import Path

from annotator.errors import ProjectMoved
from annotator.store.folders import make_folder

_opened: dict[Path, tuple[Path, tuple[int, int]]] = {}  # project folder -> its database, and that file's identity


def remember(project: Path, database: Path) -> None:
    """Record the identity of a project that has just been opened."""
    _opened[project] = database, _identity(database)


def forget(project: Path) -> None:
    """Drop the recorded identity: another project may be opened in this folder."""
    _opened.pop(project, None)


def check(project: Path) -> None:
    """Raises ProjectMoved when the project that was opened in this folder is not there any more."""
    if project not in _opened:
        return
    database, identity = _opened[project]
    try:
        if _identity(database) == identity:
            return
        what = "another one lies there now"
    except FileNotFoundError:
        what = f"there is no {database.name} in it now"
    except OSError as error:
        what = f"it cannot be looked at: {error.strerror}"
    raise ProjectMoved(
        f"The project was moved, replaced or deleted while it was open: {project} ({what}). Nothing of this step was "
        "stored; what was saved before lies where the project lies now.\n"
        "    End this program (Ctrl+C) and start it again with the folder's new name. What a page has not saved yet "
        "stays in the browser and is sent then."
    )


def make_room(folder: Path) -> None:
    """Make a folder and its parents. Raises ProjectMoved instead of making the folder of a moved project; OSError."""
    for project in folder.parents:
        check(project)
    make_folder(folder)


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino
