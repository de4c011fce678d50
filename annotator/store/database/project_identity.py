"""Detection of moved, replaced or deleted projects, so that nothing is written to a wrong place."""

import json
import os
from pathlib import Path

import sqlite_utils

from annotator.errors import ProjectMoved
from annotator.settings import IMPORTED_FOLDER
from annotator.store.disk.durable import make_folder
from annotator.store.pictures.files import escape_path, path_exists

# setting: the project's folder (escaped) when images inside of it were last registered or followed
HOME_SETTING = "home"

_open_projects: dict[
    Path, tuple[Path, tuple[int, int]]
] = {}  # project folder -> its database, and that file's identity


def remember(project: Path, database: Path) -> None:
    """Record which database file this process opened (device and inode), so that `check` detects a replacement."""
    _open_projects[project] = database, _read_file_identity(database)


def forget(project: Path) -> None:
    """Remove the file identity that `remember` recorded."""
    _open_projects.pop(project, None)


def check(project: Path) -> None:
    """Raise ProjectMoved if the opened project is no longer in its folder."""
    if project not in _open_projects:
        return
    database, identity = _open_projects[project]
    try:
        if _read_file_identity(database) == identity:
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


def make_folder_in_project(folder: Path) -> None:
    """Create a folder and its parents, or raise ProjectMoved or OSError."""
    for project in folder.parents:
        check(project)
    make_folder(folder)


def is_inside(project: Path, folder: Path) -> bool:
    """Return whether an image folder is in the project's folder for imports."""
    return folder.is_relative_to(project / IMPORTED_FOLDER)


def has_moved(sql: sqlite_utils.Database, project: Path) -> bool:
    """Return whether images are registered under a former project path."""
    row = sql.execute("SELECT value FROM setting WHERE key = ?", [HOME_SETTING]).fetchone()
    return row is not None and row[0] != json.dumps(escape_path(str(project)))


def update_folder_paths(sql: sqlite_utils.Database, project: Path) -> None:
    """Update the paths of existing folders inside a moved or copied project."""
    row = sql.execute("SELECT value FROM setting WHERE key = ?", [HOME_SETTING]).fetchone()
    before, here = json.loads(row[0]), escape_path(str(project))
    for id_, path in sql.execute("SELECT id, path FROM folder").fetchall():
        moved = f"{here}{path[len(before) :]}"
        if path.startswith(f"{before}{os.sep}{IMPORTED_FOLDER}{os.sep}") and path_exists(moved, ""):
            sql.execute("UPDATE OR IGNORE folder SET path = ? WHERE id = ?", [moved, id_])
    sql.execute("UPDATE setting SET value = ? WHERE key = ?", [json.dumps(here), HOME_SETTING])


def _read_file_identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino
