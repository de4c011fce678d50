"""The servers of all projects, restarted after growing pauses."""

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
from annotator.ui.home.hosted_projects import HostedProject, is_archived

FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0
HEALTHY_AFTER_SECONDS = 60.0  # a server that ran for so many seconds is started again after FIRST_RESTART_SECONDS
STOP_GRACE_SECONDS = 6.0  # for a server to end; it forces its own end after 4.5 (ui/serving/shutdown.py)
MAX_KEPT_LINES = 12  # of what a server printed last

log = logging.getLogger("annotator.home")


@dataclass(frozen=True)
class ServingOptions:
    """The serving options of all projects, as for `annotator serve`."""

    auth: str
    address: str
    behind: str = ""
    oidc: str = ""
    json_log: bool = False
    tagger_urls: tuple[str, ...] = ()

    @property
    def is_team(self) -> bool:
        return self.auth in (INVITATION, OIDC)

    def serves(self, place: HostedProject) -> bool:
        """Return whether a project has a server (archived ones only with members, who sign in there)."""
        return place.db is not None and (self.is_team or not is_archived(place))


class ProjectServer:
    """The server process of one project, watched by a thread."""

    def __init__(self, place: HostedProject, how: ServingOptions):
        self.place, self._how = place, how
        self._ending = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=MAX_KEPT_LINES)
        self._thread = threading.Thread(target=self._keep_running, name=f"server of {place.name}", daemon=True)

    @property
    def is_running(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None

    @property
    def has_run(self) -> bool:
        """Return whether a process was ever started."""
        return self._process is not None

    @property
    def last_output(self) -> str:
        """Return the last lines of a stopped server, or ""."""
        return "" if self.is_running else "\n".join(self._last)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        """End the server by closing its input."""
        self._ending.set()
        process = self._process
        if process and process.stdin:
            process.stdin.close()

    def join(self, seconds: float) -> None:
        """Wait for the server's end, killing it after `seconds`."""
        process = self._process
        if process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(1.0)

    def _keep_running(self) -> None:
        pause = FIRST_RESTART_SECONDS
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                self._run_process()
            except Exception as error:  # such as no memory for another process: nothing restarts this thread
                log.exception("The server of %s could not be started.", self.place.name)
                self._last.append(f"The server could not be started: {error}")
            if self._ending.is_set():
                return
            pause = (
                FIRST_RESTART_SECONDS
                if time.monotonic() - began >= HEALTHY_AFTER_SECONDS
                else min(2 * pause, MAX_RESTART_SECONDS)
            )
            log.error("The server of %s has ended; it is started again in %.0f s.", self.place.name, pause)
            self._ending.wait(pause)

    def _run_process(self) -> None:
        place, how = self.place, self._how
        said = {
            "project": str(place.path),
            "auth": how.auth,
            "port": place.port,
            "url": f"{how.address}/{place.name}/" if how.is_team else "",
            "behind": how.behind,
            "oidc": how.oidc,
            "json_log": how.json_log,
            "tagger_urls": how.tagger_urls,
            "home": f"{how.address}/",
        }
        command = [sys.executable, "-P", "-m", "annotator.ui.home.project_process"]
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


class ProjectServers:
    """The servers of all projects."""

    def __init__(self, places: Sequence[HostedProject], how: ServingOptions):
        self._how = how
        self.by_name = {place.name: ProjectServer(place, how) for place in places}

    def add(self, place: HostedProject) -> None:
        child = ProjectServer(place, self._how)
        self.by_name[place.name] = child
        child.start()

    def remove(self, name: str) -> None:
        """Stop a project's server and wait for its end."""
        if child := self.by_name.pop(name, None):
            child.request_stop()
            child.join(STOP_GRACE_SECONDS)

    def start(self) -> None:
        for child in self.by_name.values():
            child.start()

    def stop(self) -> None:
        children = list(self.by_name.values())
        for child in children:
            child.request_stop()
        until = time.monotonic() + STOP_GRACE_SECONDS
        for child in children:
            child.join(max(0.1, until - time.monotonic()))
