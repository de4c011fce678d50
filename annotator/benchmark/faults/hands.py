"""Who has which image or cell open, as the pages themselves know it: never two of them the same."""

import threading
from collections.abc import Collection

WHOLE = 0  # the class of a whole image, as in store/leases.py
Cell = tuple[int, int]


class Hands:
    """What all pages hold; safe to share between threads.

    given    cells and images that were handed out
    twice    those of them that another page held: (cell, page, the other page)
    """

    def __init__(self):
        self.given, self.twice = 0, []
        self._held: dict[int, dict[int, str]] = {}  # image -> class -> page
        self._lock = threading.Lock()

    def keep(self, page: str, cells: Collection[Cell]) -> None:
        """Before a page names these cells as in hand: from now on the server may give away all else that it held."""
        with self._lock:
            for image, classes in list(self._held.items()):
                for class_ in [one for one, holder in classes.items() if holder == page and (image, one) not in cells]:
                    del classes[class_]
                if not classes:
                    del self._held[image]

    def take(self, page: str, cells: Collection[Cell]) -> None:
        """After a page was given these cells."""
        with self._lock:
            for image, class_ in cells:
                self.given += 1
                classes = self._held.setdefault(image, {})
                for other, holder in classes.items():
                    if holder != page and (other == class_ or WHOLE in (other, class_)):
                        self.twice.append(((image, class_), page, holder))
                classes[class_] = page

    def rename(self, page: str, before: str) -> None:
        """After a reload a page goes by another name."""
        with self._lock:
            for classes in self._held.values():
                for class_, holder in classes.items():
                    if holder == before:
                        classes[class_] = page
