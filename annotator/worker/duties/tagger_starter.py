"""Starts `annotator tag` on request, again after a kill.

The request is a row of the project, which may be older than the list of allowed servers.
"""

import subprocess
import time

from annotator.errors import AnnotatorError
from annotator.exchange.tagging.allowed_taggers import LOCAL_TAGGERS, AllowedTaggers
from annotator.store.runs import tagging_state
from annotator.worker.features.watched_command import start_command, stop_command
from annotator.worker.features.worker_context import WorkerContext

CHECK_SECONDS = 1.0  # between two looks at what is asked for
RESTART_SECONDS = 30.0  # after a process that ended although it was still wanted, until it is started again


class TaggerStarter:
    """The worker duty of starting prelabeling."""

    def __init__(self, context: WorkerContext, taggers: AllowedTaggers = LOCAL_TAGGERS):
        self._db, self._taggers = context.db, taggers
        self._process: subprocess.Popen[bytes] | None = None
        self._check_at = self._retry_at = 0.0

    def start_if_requested(self) -> None:
        now = time.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + CHECK_SECONDS
        if self._process is not None and self._process.poll() is not None:
            self._process, self._retry_at = None, now + RESTART_SECONDS
        wanted = tagging_state.get_request(self._db)
        if wanted is None:
            self._retry_at = 0.0
        elif self._process is None and now >= self._retry_at and tagging_state.get_running(self._db) is None:
            try:
                tagger = self._taggers.find(wanted.url)
            except AnnotatorError as error:
                tagging_state.set_result(self._db, {"name": wanted.model, "error": str(error), "at": time.time()})
                return
            words = ["--images-may-leave"] if wanted.may_leave else []
            # An empty --key-from sends no key: that of the environment belongs to another server.
            options = [f"--url={tagger.url}", f"--key-from={tagger.key_variable}", f"--model={wanted.model}", *words]
            self._process = start_command(self._db, "tag", *options)
            if self._process is None:
                self._retry_at = now + RESTART_SECONDS

    def stop_process(self) -> None:
        """Terminate the started process. The next worker resumes it."""
        stop_command(self._process)
