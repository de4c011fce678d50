"""The duty of starting `annotator tag` when Settings ask for it, again after a kill; it asks beside the worker."""

import contextlib
import subprocess
import sys
import time

from annotator.store.runs import tagging_state
from annotator.worker.features.context import Context

LOOK_SECONDS = 1.0  # between two looks at what is asked for
AGAIN_SECONDS = 30.0  # after a process that ended although it was still wanted, until it is started again


class TaggerStarter:
    """Starts the tagger; each worker has one instance."""

    def __init__(self, context: Context):
        self._db = context.db
        self._process: subprocess.Popen[bytes] | None = None
        self._look_at = self._again_at = 0.0

    def start_if_wanted(self) -> None:
        """Start `annotator tag` where it was asked for, unless a tagger is running."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        if self._process is not None and self._process.poll() is not None:
            self._process, self._again_at = None, now + AGAIN_SECONDS
        wanted = tagging_state.wanted(self._db)
        if wanted is None:
            self._again_at = 0.0
        elif self._process is None and now >= self._again_at and tagging_state.running(self._db) is None:
            words = ["--images-may-leave"] if wanted.may_leave else []
            options = [f"--url={wanted.url}", f"--model={wanted.model}", *words]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "annotator", "tag", str(self._db.paths.project), *options, "--watched"],
                stdin=subprocess.PIPE,  # its end is the end of this process
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """End the process that was started; the next worker's process goes on from what is stored."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._process.terminate()
