"""What every row is given."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Ground:
    """Given to each row.

    Attributes:
        folder: Where projects are made.
        browser: One for all rows; people who work at once start their own.
        keys: Presses on each page in a row.
    """

    folder: Path
    browser: "Browser"
    keys: int

    def room(self, name: str) -> Path:
        """A folder of a row's own."""
        folder = self.folder / name
        folder.mkdir()
        return folder
