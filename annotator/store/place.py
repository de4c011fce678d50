"""Where the projects that this process has open lie, so that none is written where it lies no more.

A project that is moved or replaced while it is open takes its open files with it: SQLite would go on writing to a file
that has another name now, or none, and folders would be made anew at the old place.
"""

from pathlib import Path

from annotator.errors import ProjectMoved
from annotator.store.folders import make_folder

_opened: dict[
    Path, tuple[Path, tuple[int, int]]
] = {}  # project folder -> its database, and what tells that from others


def remember(project: Path, database: Path) -> None:
    """This project has just been opened: what lies there now is it."""
    _opened[project] = database, _identity(database)


def forget(project: Path) -> None:
    """Whatever lies there next is another project."""
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
    """Make a folder and those above it. Raises ProjectMoved instead of making a project's folder anew; OSError."""
    for project in folder.parents:
        check(project)
    make_folder(folder)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
