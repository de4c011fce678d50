"""Starts the worker and keeps it going: a dead one is started again, after growing pauses, its last words kept."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

from annotator.errors import AnnotatorError, ProjectMoved
from annotator.settings import BUSY_STATUS
from annotator.store import heartbeat, place
from annotator.store.database import Database

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
HEAD_START = 1.5  # seconds that the first page has the machine for itself
HEALTHY_AFTER = 60.0  # a worker that lived this long starts again at once when it dies
LAST_WORDS = 4000  # letters of its log
GRACE = 2.0  # seconds between asking it to end and ending it; the app itself has 4.5 (ending.py)

log = logging.getLogger("annotator.watch")


class Watch:
    """Watches over one project's worker, in a thread of the app's process."""

    def __init__(self, db: Database):
        self.db = db
        self._ending = threading.Event()
        self._process: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._run, name="worker watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the worker, gently first."""
        self._ending.set()
        process = self._process
        if process and process.poll() is None:
            process.stdin.close()  # it reads the end of its input as a wish to end
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(0.5)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        self._ending.wait(HEAD_START)
        while not self._ending.is_set():
            started = time.monotonic()
            try:
                place.check(self.db.paths.project)
                self._one_life()
            except ProjectMoved as error:  # a worker could only say the same, again and again
                log.error("The worker is not started again. %s", error)
                return
            except FileNotFoundError:  # moved just now: the next look says so
                pass
            if time.monotonic() - started > HEALTHY_AFTER:
                pause = FIRST_PAUSE
            self._ending.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _one_life(self) -> None:
        path = self.db.paths.worker_log
        with path.open("wb") as words:
            self._process = subprocess.Popen(
                # -P: the folder that serve was called in, a data set perhaps, must not be searched for modules.
                [sys.executable, "-P", "-m", "annotator", "worker", str(self.db.paths.project), "--watched"],
                stdin=subprocess.PIPE,
                stdout=words,
                stderr=words,
                start_new_session=True,  # Ctrl+C in the terminal is for the app, which then ends its worker
            )
            status = self._process.wait()
        # Busy: the worker of an app that was just killed, or one started by hand, is still there. That is no trouble.
        if status not in (0, BUSY_STATUS) and not self._ending.is_set():
            self._note(status, path)

    def _note(self, status: int, path: Path) -> None:
        words = path.read_bytes()[-LAST_WORDS:].decode(errors="replace").strip()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        text = f"The worker {how} and is being started again."
        if words:
            text += f" Its last words:\n{words}"
        log.warning("%s", text)
        try:
            heartbeat.note_error(self.db, text)
        except AnnotatorError:  # a full disk: the log has it
            log.exception("could not keep the worker's last words")
