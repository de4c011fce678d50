"""The servers of all projects: each is started, and started again when it ends by itself, after growing pauses."""

import json
import logging
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from annotator.ui.access.serving_modes import INVITATION, OIDC
from annotator.ui.home.projects import Place, is_archived

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
HEALTHY_AFTER = 60.0  # a server that ran for so many seconds is started again after FIRST_PAUSE
GRACE = 6.0  # seconds for a server to end; it forces its own end after 4.5 (ui/serving/shutdown.py)
KEPT_LINES = 12  # of what a server printed last

log = logging.getLogger("annotator.home")


@dataclass(frozen=True)
class How:
    """The options by which all projects are served, as of `annotator serve`; address: of the start page."""

    auth: str
    address: str
    behind: str = ""
    oidc: str = ""
    json_log: bool = False

    @property
    def is_team(self) -> bool:
        """Return whether people sign in as members."""
        return self.auth in (INVITATION, OIDC)

    def serves(self, place: Place) -> bool:
        """Return whether a project has a server: it can be opened, and is not archived on one's own computer.

        Members sign in at the servers of their projects: those of archived ones run on.
        """
        return place.db is not None and (self.is_team or not is_archived(place))


class Child:
    """The server of one project, in a process of its own, watched by a thread."""

    def __init__(self, place: Place, how: How):
        self.place, self._how = place, how
        self._ending = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._thread = threading.Thread(target=self._run, name=f"server of {place.name}", daemon=True)

    @property
    def is_running(self) -> bool:
        """Return whether the process of the project runs."""
        process = self._process
        return process is not None and process.poll() is None

    @property
    def has_run(self) -> bool:
        """Return whether a process of the project was started; false in the first moments only."""
        return self._process is not None

    @property
    def trouble(self) -> str:
        """Return the last lines that the server printed, where it is not running; "" where it is."""
        return "" if self.is_running else "\n".join(self._last)

    def start(self) -> None:
        """Start the threads that keep the processes running."""
        self._thread.start()

    def ask_to_end(self) -> None:
        """Close the server's input: it ends within a few seconds."""
        self._ending.set()
        process = self._process
        if process and process.stdin:
            process.stdin.close()

    def join(self, seconds: float) -> None:
        """Wait until the server has ended, and kill it after this many seconds."""
        process = self._process
        if process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(1.0)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            began = time.monotonic()
            self._serve()
            if self._ending.is_set():
                return
            pause = FIRST_PAUSE if time.monotonic() - began >= HEALTHY_AFTER else min(2 * pause, LONGEST_PAUSE)
            log.error("The server of %s has ended; it is started again in %.0f s.", self.place.name, pause)
            self._ending.wait(pause)

    def _serve(self) -> None:
        place, how = self.place, self._how
        said = {
            "project": str(place.path),
            "auth": how.auth,
            "port": place.port,
            "url": f"{how.address}/{place.name}/" if how.is_team else "",
            "behind": how.behind,
            "oidc": how.oidc,
            "json_log": how.json_log,
            "home": f"{how.address}/",
        }
        command = [sys.executable, "-P", "-m", "annotator.ui.home.child"]
        self._last.clear()
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(said) + "\n")
        process.stdin.flush()
        self._process = process
        if self._ending.is_set():
            process.stdin.close()
        for line in process.stdout:
            self._last.append(line.rstrip("\n"))
            if how.is_team or how.json_log or not line.strip().startswith(("Open this", "http", "Ctrl+C")):
                sys.stdout.write(f"[{place.name}] {line}" if not how.json_log else line)
                sys.stdout.flush()
        process.wait()


class Children:
    """The servers of all projects."""

    def __init__(self, places: Sequence[Place], how: How):
        self._how = how
        self.by_name = {place.name: Child(place, how) for place in places}

    def add(self, place: Place) -> None:
        """Start the server of one more project."""
        child = Child(place, self._how)
        self.by_name[place.name] = child
        child.start()

    def remove(self, name: str) -> None:
        """End the server of a project, if it has one, and wait until it has ended."""
        if child := self.by_name.pop(name, None):
            child.ask_to_end()
            child.join(GRACE)

    def start(self) -> None:
        """Start the threads that keep the processes running."""
        for child in self.by_name.values():
            child.start()

    def stop(self) -> None:
        """End all servers at once, and wait until they have ended."""
        children = list(self.by_name.values())
        for child in children:
            child.ask_to_end()
        until = time.monotonic() + GRACE
        for child in children:
            child.join(max(0.1, until - time.monotonic()))
