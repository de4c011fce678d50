"""One open project: what owns its database, its settings and everything that is kept in memory of it.

`annotator.open` gives one to Python programs, the app serves one, and two in one process share nothing. It lies below
the two processes, which open projects, and above all other rooms, so that it can offer what they do as methods.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from annotator.store import configuration
from annotator.store.database import Database


@dataclass(frozen=True)
class Configuration:
    """How the next run is trained. parameters: those that differ from the method's defaults."""

    method: str
    backbone: str
    parameters: dict[str, Any]


class Project:
    """The project in a folder; safe to share between threads until it is closed.

    db    the database, for the functions of annotator's rooms
    """

    def __init__(self, path: str | PathLike[str]):
        """Open it, bringing an older one up to date. Raises AnnotatorError when there is none, when it is from a newer
        version, or when its file is not a database."""
        self.db = Database(Path(path))

    @property
    def path(self) -> Path:
        """The project's folder."""
        return self.db.paths.project

    @property
    def configuration(self) -> Configuration:
        """The method, backbone and parameters of the next run, as they are set now."""
        return Configuration(
            configuration.method(self.db), configuration.backbone(self.db), configuration.parameters(self.db)
        )

    def close(self) -> None:
        """Close the database and free the caches. Closing twice is allowed; any other use raises AnnotatorError."""
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"annotator.open({str(self.path)!r})"
