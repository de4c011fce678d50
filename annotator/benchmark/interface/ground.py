"""What every row stands on: a folder that goes away, a browser, how many presses, and the servers of a project."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from annotator.benchmark.harness.processes import server
from annotator.store.database import Database

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Ground:
    """Given to each row.

    folder     where projects are made
    browser    one for all rows; people who work at once start their own
    keys       presses on each page in a row
    """

    folder: Path
    browser: "Browser"
    keys: int

    def room(self, name: str) -> Path:
        """A folder of a row's own."""
        place = self.folder / name
        place.mkdir()
        return place

    def ours(self, db: Database) -> AbstractContextManager[str]:
        """The app on a project, without a worker: its address."""
        return server("annotator.benchmark.harness.page_alone", db.paths.project)

    def floor(self, db: Database) -> AbstractContextManager[str]:
        """The floor on the project's images: its address."""
        folder = db.paths.project.parent
        return server("annotator.benchmark.harness.floor", folder / "images", folder / "floor.jsonl")
