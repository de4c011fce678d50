"""Commands that the worker starts in processes of their own, which end with the worker."""

import contextlib
import subprocess
import sys

from annotator.store.database import heartbeat
from annotator.store.database.database import Database


def start_command(db: Database, name: str, *options: str) -> subprocess.Popen[bytes] | None:
    """Start `annotator NAME PROJECT` in a process, or record the error and return None."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", name, str(db.paths.project), *options, "--watched"],
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:  # such as no memory for another process: the worker goes on and tries again
        heartbeat.record_error(db, f"annotator {name} could not be started: {error}")
        return None


def stop_command(process: subprocess.Popen[bytes] | None) -> None:
    """Terminate a started process that still runs. The next worker resumes its work."""
    if process is not None and process.poll() is None:
        with contextlib.suppress(OSError):
            process.terminate()
