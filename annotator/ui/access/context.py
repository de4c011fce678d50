"""The project that this process serves: set once by the server, read by every page and route."""

import os
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.project import Project
from annotator.store.database.database import Database
from annotator.store.pictures.files import escaped
from annotator.ui.access import sessions as sessions_
from annotator.ui.access.serving_modes import LOCAL, Access
from annotator.ui.access.sessions import Sessions
from annotator.ui.access.tokens import Tokens

_served: list[tuple[Project, Tokens]] = []
_reached: list[tuple[Access, Sessions | None]] = []


def open_project(path: Path) -> None:
    """Serve this project from now on. Raises AnnotatorError when there is none, or it may not be written."""
    project = Project(path)
    project.db.refuse_read_only()
    _served[:] = [(project, Tokens(project.db.paths.secret))]  # threads may still use the one before: it is not closed


def reach(access: Access) -> Sessions | None:
    """Serve the open project in this way from now on. Return the sessions of its members; None without members."""
    project, _ = _current()
    _served[:] = [(project, Tokens(project.db.paths.secret, of_members=access.is_team))]
    sessions = Sessions(db(), access, tokens()) if access.is_team else None
    _reached[:] = [(access, sessions)]
    if sessions is not None:
        sessions_.enforce_roles(sessions)
    return sessions


def sessions() -> Sessions | None:
    """Return the sessions of the members; None where the project is served to this computer only."""
    return _reached[0][1] if _reached else None


def address() -> str:
    """Return the address that people open, without a slash at the end; "" where only this computer is served."""
    return _reached[0][0].address if _reached and _reached[0][0].is_team else ""


def mode() -> str:
    """Return how people get to the project: one of serving_modes.MODES."""
    return _reached[0][0].mode if _reached else LOCAL


def project_name() -> str:
    """Return the name of the project's folder, by which the list of projects and the pages call it, on one line."""
    return " ".join(escaped(db().paths.project.resolve().name).split())


def home() -> str:
    """Return the address of the start page of several projects; "" where this project is served by itself."""
    return _reached[0][0].home if _reached else ""


def base() -> str:
    """Return the path that all addresses of this app begin with, "" or like "/annotator"."""
    return _reached[0][0].base if _reached else ""


def db() -> Database:
    """Return the project's database, with its caches."""
    return _current()[0].db


def tokens() -> Tokens:
    """Return the signer and checker of tokens, cookies and keys of the open project."""
    return _current()[1]


def _current() -> tuple[Project, Tokens]:
    if not _served:
        # A page run without the server (a test of the page alone) names the project here.
        path = os.environ.get("ANNOTATOR_PROJECT")
        if not path:
            raise AnnotatorError("No project is being served. Start the app with: annotator serve PROJECT")
        open_project(Path(path))
    return _served[0]
