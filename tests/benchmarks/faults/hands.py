"""A record of the images and cells that each page holds; the server may never give the same to two pages."""

import threading
from collections.abc import Collection

WHOLE_IMAGE_CLASS = 0  # the class of a whole image, as in store/people/leases.py
Cell = tuple[int, int]


class Hands:
    """The cells that each page holds at this moment, over all pages; threads may share it.

    Attributes:
        handed_out_count: The number of cells and images that were handed out.
        double_holdings: The cells that were given while another page held them: (cell, page, the other page).
    """

    def __init__(self):
        self.handed_out_count = 0
        self.double_holdings: list[tuple[Cell, str, str]] = []
        self._held: dict[int, dict[int, str]] = {}  # image -> class -> page
        self._lock = threading.Lock()

    def keep_cells(self, page: str, cells: Collection[Cell]) -> None:
        """Note which cells a page still holds, before it says so to the server, which may then give away all others."""
        with self._lock:
            for image, classes in list(self._held.items()):
                for class_ in [class_ for class_, holder in classes.items() if holder == page]:
                    if (image, class_) not in cells:
                        del classes[class_]
                if not classes:
                    del self._held[image]

    def take_cells(self, page: str, cells: Collection[Cell]) -> None:
        """Note the cells that a page was given, and record those that another page still holds."""
        with self._lock:
            for image, class_ in cells:
                self.handed_out_count += 1
                classes = self._held.setdefault(image, {})
                for other, holder in classes.items():
                    if holder != page and (other == class_ or WHOLE_IMAGE_CLASS in (other, class_)):
                        self.double_holdings.append(((image, class_), page, holder))
                classes[class_] = page

    def rename_page(self, page: str, old_page: str) -> None:
        """Note the new name that a page gets by a reload."""
        with self._lock:
            for classes in self._held.values():
                for class_, holder in classes.items():
                    if holder == old_page:
                        classes[class_] = page
