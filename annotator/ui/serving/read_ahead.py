"""Loading of the Gallery's data at server start, which saves the first visitor seconds."""

import logging
import threading
from importlib import import_module

from annotator.errors import AnnotatorError
from annotator.snapshot import gallery_listing
from annotator.store.database.database import Database
from annotator.ui.serving.worker_watch import HEAD_START_SECONDS

log = logging.getLogger("annotator.ahead")


class ReadAhead:
    """The thread that loads the Gallery's data after the start."""

    def __init__(self, db: Database, pause: float = HEAD_START_SECONDS):
        self.db, self.pause = db, pause
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read ahead", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Cancel the loading unless it has begun."""
        self._ending.set()
        self._thread.join(0.1)

    def _run(self) -> None:
        if self._ending.wait(self.pause):
            return
        import_module("scipy.optimize")
        try:
            gallery_listing.load_columns(self.db)
        except AnnotatorError as error:  # whoever opens the Gallery is told
            log.warning("The images could not be read ahead. %s", error)
