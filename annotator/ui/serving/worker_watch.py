"""The worker's supervisor: starts it, restarts it with growing pauses, and reports errors."""

import logging
import shutil
import subprocess
import sys
import threading
import time

from annotator.errors import AnnotatorError, ProjectMoved, TrainingNotInstalled
from annotator.exchange.tagging.allowed_taggers import LOCAL_TAGGERS, AllowedTaggers
from annotator.process_stop import OWN_GROUP_FLAGS
from annotator.settings import BUSY_EXIT_STATUS
from annotator.store.database import heartbeat, project_identity
from annotator.store.database.database import Database
from annotator.training_extra import require_training
from annotator.ui.serving import worker_failure
from annotator.ui.serving.first_page import wait_for_first_page

FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0
MAX_START_RETRY_SECONDS = 10.0  # between two attempts to start it, such as while the disk is full
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
        """Keep a worker running whatever happens, as nothing restarts this thread."""
        pause, told = FIRST_RESTART_SECONDS, ""
        wait_for_first_page(self._ending)
        while not self._ending.is_set():
            started = time.monotonic()
            max_pause = MAX_RESTART_SECONDS
            try:
                require_training()
                project_identity.check(self.db.paths.project)
                self._run_worker()
                told = ""
            # Perhaps for a moment: a network drive that was away, a folder put back, an installation that is under way.
            except (ProjectMoved, TrainingNotInstalled) as error:
                if str(error) != told:
                    log.error("The worker is not started while this lasts. %s", error)
                told = str(error)
                max_pause = MAX_START_RETRY_SECONDS
            except Exception as error:  # such as a full disk, or no memory for another process
                self._report_start_failure(error)
                max_pause = MAX_START_RETRY_SECONDS
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                pause = FIRST_RESTART_SECONDS
            pause = min(pause, max_pause)
            self._ending.wait(pause)
            pause = min(pause * 2, max_pause)

    def _run_worker(self) -> None:
        words = [f"--tagger-url={option}" for option in self._taggers.options]
        if self._taggers.are_all_listed:
            words.append("--listed-taggers-only")
        with self.db.paths.worker_log.open("wb") as log_file:
            self._process = subprocess.Popen(
                # -P: the folder that serve was called in, perhaps a data set, must not be searched for modules.
                [sys.executable, "-P", "-m", "annotator", "worker", str(self.db.paths.project), "--watched", *words],
                stdin=subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl+C in the terminal is for the app, which then ends its worker
                creationflags=OWN_GROUP_FLAGS,
            )
            heartbeat.get_start_problem(self.db).text = ""
            status = self._process.wait()
        # Busy: the worker of an app that was just killed, or one started by hand, still runs. That is no error.
        if status not in (0, BUSY_EXIT_STATUS) and not self._ending.is_set():
            tail = heartbeat.read_log_tail(self.db, LOG_TAIL_BYTES).decode(errors="replace").strip()
            self._record_problem(worker_failure.describe_end(status, tail, self._get_free_bytes()))

    def _report_start_failure(self, error: Exception) -> None:
        log.exception("The worker could not be started.")
        self._record_problem(worker_failure.describe_start_failure(error))

    def _record_problem(self, text: str) -> None:
        """Store why no worker runs, and keep it in memory too: a full disk stores nothing."""
        log.warning("%s", text)
        heartbeat.get_start_problem(self.db).text = text
        try:
            heartbeat.record_error(self.db, text)
        except AnnotatorError as error:
            log.warning("The worker's error could not be stored. %s", error)

    def _get_free_bytes(self) -> int | None:
        try:
            return shutil.disk_usage(self.db.paths.project).free
        except OSError:
            return None
