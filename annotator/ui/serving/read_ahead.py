"""Loading after the first page of what other pages need, which saves their first visitors seconds."""

import logging
import threading
from collections.abc import Callable

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.ui.serving.first_page import MAX_WAIT_SECONDS, wait_for_first_page

log = logging.getLogger("annotator.ahead")


class ReadAhead:
    """The thread that imports the routes of other pages and loads the Gallery's data after the first page.

    Args:
        load_routes: Imports the modules of all routes.
        max_wait: Seconds to wait for a first page.
    """

    def __init__(self, db: Database, load_routes: Callable[[], object], max_wait: float = MAX_WAIT_SECONDS):
        self.db = db
        self._load_routes, self._max_wait = load_routes, max_wait
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read ahead", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Cancel the loading unless it has begun."""
        self._ending.set()
        self._thread.join(0.1)

    def _run(self) -> None:
        wait_for_first_page(self._ending, self._max_wait)
        if self._ending.is_set():
            return
        self._load_routes()
        import scipy.optimize  # noqa: F401 - which estimates need

        from annotator.snapshot import gallery_listing

        try:
            gallery_listing.load_columns(self.db)
        except AnnotatorError as error:  # whoever opens the Gallery is told
            log.warning("The images could not be read ahead. %s", error)
