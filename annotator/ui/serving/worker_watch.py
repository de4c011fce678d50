"""The watch over the worker: starts it, restarts it after growing pauses, and keeps the end of its log as an error."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

from annotator.errors import AnnotatorError, ProjectMoved
from annotator.settings import BUSY_STATUS
from annotator.store.database import heartbeat
from annotator.store.database import project_identity as place
from annotator.store.database.database import Database

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
HEAD_START = 1.5  # seconds in which the first page has the machine for itself
HEALTHY_AFTER = 60.0  # a worker that ran this many seconds is restarted after FIRST_PAUSE again
LOG_TAIL = 4000  # bytes of the worker's log that are kept with an error
GRACE = 2.0  # seconds between asking the worker to end and killing it; the app itself has 4.5 (shutdown.py)

log = logging.getLogger("annotator.watch")


class Watch:
    """The watch over one project's worker, in a thread of the app's process."""

    def __init__(self, db: Database):
        self.db = db
        self._ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="worker watch", daemon=True)

    def start(self) -> None:
        """Start the thread that keeps the worker running."""
        self._thread.start()

    def stop(self) -> None:
        """End the worker: close its input, and kill it if it does not end within GRACE seconds."""
        self._ending.set()
        process = self._process
        if process and process.poll() is None:
            if process.stdin:
                process.stdin.close()  # the worker ends when its input does
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
                self._run_worker()
            except ProjectMoved as error:  # a worker would fail in the same way again and again
                log.error("The worker is not started again. %s", error)
                return
            except FileNotFoundError:  # moved just now: the next check says so
                pass
            if time.monotonic() - started > HEALTHY_AFTER:
                pause = FIRST_PAUSE
            self._ending.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _run_worker(self) -> None:
        path = self.db.paths.worker_log
        with path.open("wb") as log_file:
            self._process = subprocess.Popen(
                # -P: the folder that serve was called in, perhaps a data set, must not be searched for modules.
                [sys.executable, "-P", "-m", "annotator", "worker", str(self.db.paths.project), "--watched"],
                stdin=subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl+C in the terminal is for the app, which then ends its worker
            )
            status = self._process.wait()
        # Busy: the worker of an app that was just killed, or one started by hand, still runs. That is no error.
        if status not in (0, BUSY_STATUS) and not self._ending.is_set():
            self._report(status, path)

    def _report(self, status: int, path: Path) -> None:
        tail = path.read_bytes()[-LOG_TAIL:].decode(errors="replace").strip()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        text = f"The worker {how} and is being started again."
        if tail:
            text += f" Its last words:\n{tail}"
        log.warning("%s", text)
        try:
            heartbeat.note_error(self.db, text)
        except AnnotatorError:  # a full disk: the log has it
            log.exception("the worker's error could not be stored")
