"""The project that this process serves, set once by the server."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.exchange.tagging.allowed_taggers import LOCAL_TAGGERS, AllowedTaggers
from annotator.project import Project
from annotator.store.database.database import Database
from annotator.store.pictures.files import escape_path
from annotator.ui.access.serving_modes import LOCAL, Access
from annotator.ui.access.tokens import Tokens

if TYPE_CHECKING:
    from annotator.ui.access.sessions import Sessions

_open_project: list[tuple[Project, Tokens]] = []
_configured_access: list[tuple[Access, "Sessions | None"]] = []


def open_project(path: Path) -> None:
    """Serve this project, or raise AnnotatorError if it is missing or not writable."""
    project = Project(path)
    project.db.check_writable()
    # threads may still use the one before: it is not closed
    _open_project[:] = [(project, Tokens(project.db.paths.secret))]


def configure_access(access: Access) -> "Sessions | None":
    """Set how the project is served, and return its sessions."""
    project, _ = _get_current()
    _open_project[:] = [(project, Tokens(project.db.paths.secret, of_members=access.is_team))]
    _configured_access[:] = [(access, None)]
    if not access.is_team:
        return None
    from annotator.ui.access.sessions import Sessions, enforce_roles  # Streamlit, and the early server needs this file

    sessions = Sessions(db(), access, tokens())
    _configured_access[:] = [(access, sessions)]
    enforce_roles(sessions)
    return sessions


def sessions() -> "Sessions | None":
    return _configured_access[0][1] if _configured_access else None


def public_url() -> str:
    """Return the public URL, or "" without members."""
    return _configured_access[0][0].address if _configured_access and _configured_access[0][0].is_team else ""


def serving_mode() -> str:
    """Return how the project is served, one of `SERVING_MODES`."""
    return _configured_access[0][0].mode if _configured_access else LOCAL


def taggers() -> AllowedTaggers:
    """Return the tagger servers that pages may choose."""
    return _configured_access[0][0].taggers if _configured_access else LOCAL_TAGGERS


def project_name() -> str:
    """Return the project's folder name on one line."""
    return " ".join(escape_path(db().paths.project.resolve().name).split())


def home_url() -> str:
    """Return the start page's URL, or ""."""
    return _configured_access[0][0].home_url if _configured_access else ""


def base_path() -> str:
    """Return the URL prefix, "" or like "/annotator"."""
    return _configured_access[0][0].base_path if _configured_access else ""


def db() -> Database:
    return _get_current()[0].db


def tokens() -> Tokens:
    return _get_current()[1]


def _get_current() -> tuple[Project, Tokens]:
    if not _open_project:
        # A page run without the server (a test of the page alone) names the project here.
        path = os.environ.get("ANNOTATOR_PROJECT")
        if not path:
            raise AnnotatorError("No project is being served. Start the app with: annotator serve PROJECT")
        open_project(Path(path))
    return _open_project[0]
