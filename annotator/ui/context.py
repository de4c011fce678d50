"""Which project this process serves: set once by the server, asked for by every page and route."""

import os
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.database import Database
from annotator.ui.tokens import Tokens

_served: list[tuple[Database, Tokens]] = []


def open_project(project: Path) -> None:
    """Serve this project from now on. Raises AnnotatorError when there is none, or it may not be written."""
    db = Database(project)
    db.refuse_read_only()
    _served[:] = [(db, Tokens(db.paths.secret))]


def db() -> Database:
    """The project's database."""
    return _current()[0]


def tokens() -> Tokens:
    """What signs and checks who is at work."""
    return _current()[1]


def _current() -> tuple[Database, Tokens]:
    if not _served:
        # A page run without the server (a test of the page alone) names the project here.
        project = os.environ.get("ANNOTATOR_PROJECT")
        if not project:
            raise AnnotatorError("No project is being served. Start the app with: annotator serve PROJECT")
        open_project(Path(project))
    return _served[0]
