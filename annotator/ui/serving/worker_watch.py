"""The worker's supervisor: starts it, restarts it with growing pauses, and reports errors."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

from annotator.errors import AnnotatorError, ProjectMoved
from annotator.exchange.tagging.allowed_taggers import LOCAL_TAGGERS, AllowedTaggers
from annotator.settings import BUSY_EXIT_STATUS
from annotator.store.database import heartbeat, project_identity
from annotator.store.database.database import Database

FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0
HEAD_START_SECONDS = 1.5  # in which the first page has the machine for itself
HEALTHY_AFTER_SECONDS = 60.0  # a worker that ran this many seconds is restarted after FIRST_RESTART_SECONDS again
LOG_TAIL_BYTES = 4000  # bytes of the worker's log that are kept with an error
# seconds between asking the worker to end and killing it; the app itself has 4.5 (shutdown.py)
STOP_GRACE_SECONDS = 2.0

log = logging.getLogger("annotator.watch")


class WorkerWatch:
    """The thread that supervises one project's worker."""

    def __init__(self, db: Database, taggers: AllowedTaggers = LOCAL_TAGGERS):
        self.db, self._taggers = db, taggers
        self._ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name="worker watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close the worker's input, and kill it after STOP_GRACE_SECONDS."""
        self._ending.set()
        process = self._process
        if process and process.poll() is None:
            if process.stdin:
                process.stdin.close()  # the worker ends when its input does
            try:
                process.wait(STOP_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(0.5)

    def _keep_running(self) -> None:
        pause = FIRST_RESTART_SECONDS
        self._ending.wait(HEAD_START_SECONDS)
        while not self._ending.is_set():
            started = time.monotonic()
            try:
                project_identity.check(self.db.paths.project)
                self._run_worker()
            except ProjectMoved as error:  # a worker would fail in the same way again and again
                log.error("The worker is not started again. %s", error)
                return
            except FileNotFoundError:  # moved just now: the next check says so
                pass
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                pause = FIRST_RESTART_SECONDS
            self._ending.wait(pause)
            pause = min(pause * 2, MAX_RESTART_SECONDS)

    def _run_worker(self) -> None:
        path = self.db.paths.worker_log
        words = [f"--tagger-url={option}" for option in self._taggers.options]
        if self._taggers.are_all_listed:
            words.append("--listed-taggers-only")
        with path.open("wb") as log_file:
            self._process = subprocess.Popen(
                # -P: the folder that serve was called in, perhaps a data set, must not be searched for modules.
                [sys.executable, "-P", "-m", "annotator", "worker", str(self.db.paths.project), "--watched", *words],
                stdin=subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl+C in the terminal is for the app, which then ends its worker
            )
            status = self._process.wait()
        # Busy: the worker of an app that was just killed, or one started by hand, still runs. That is no error.
        if status not in (0, BUSY_EXIT_STATUS) and not self._ending.is_set():
            self._report_failure(status, path)

    def _report_failure(self, status: int, path: Path) -> None:
        tail = path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        text = f"The worker {how} and is being started again."
        if tail:
            text += f" Its last words:\n{tail}"
        log.warning("%s", text)
        try:
            heartbeat.record_error(self.db, text)
        except AnnotatorError:  # a full disk: the log has it
            log.exception("the worker's error could not be stored")
