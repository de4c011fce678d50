"""The means that every row is given."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Ground:
    """The means that every row is given.

    Attributes:
        folder: The folder in which projects are made.
        browser: One browser for all rows; simulated people who work at once start their own.
        keys: The number of presses on each page in a row.
    """

    folder: Path
    browser: "Browser"
    keys: int

    def make_folder(self, name: str) -> Path:
        """Make a folder for one row."""
        folder = self.folder / name
        folder.mkdir()
        return folder
