"""The app as a process, and what a browser does to it, for tests that kill it."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from annotator.ui.access.access_keys import build_request_headers
from harness import page_alone
from harness.child_processes import FIRST_PORT, build_environment, can_listen

APP = ("-P", "-m", "annotator", "serve")
PAGES_ALONE = ()  # without a worker, and without the second that Python takes to load Streamlit: see Forked
# The pages without a worker, served to members, as `annotator serve --auth invitation` does.
TEAM_PAGES = (
    "-P",
    "-c",
    """
import sys
from pathlib import Path
from annotator.ui.access import served_project as context
from annotator.ui.access.serving_modes import parse_access
from annotator.ui.access.access_keys import SERVED_TO_TEAM_SETTING
from annotator.ui.page_app import build_page_app, run_app
how = parse_access("invitation", int(sys.argv[3]))
context.open_project(Path(sys.argv[1]))
context.db().set_setting(SERVED_TO_TEAM_SETTING, True)
run_app(build_page_app(access=how), how)
""",
)
_FORKS = multiprocessing.get_context("forkserver")
# A module that is found without the paths of this process, which the fork server does not have: it skips what it cannot
# import, and each server then loads Streamlit anew.
_FORKS.set_forkserver_preload(["annotator.ui.page_app"])


def free_port() -> int:
    """The first free port from FIRST_PORT on: servers that follow each other have the same address, under which the
    contexts of the tests' browser (person.py) have Streamlit's scripts already."""
    return next(port for port in range(FIRST_PORT, FIRST_PORT + 500) if can_listen(port))


def until(condition, seconds: float = 180.0, pause: float = 0.05):
    """The first true answer; fails with what was waited for when none comes in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := condition():
            return answer
        time.sleep(pause)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {getattr(condition, '__name__', condition)}")


class Forked:
    """The pages without a worker, in a process forked from one that has loaded them; what is used of a Popen."""

    def __init__(self, project: Path, port: int, log: Path):
        self._process = _FORKS.Process(target=_serve_pages, args=(project, port, log), daemon=True)
        # A new process imports what is the main module here; AppTest leaves the page there that it ran last.
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            self._process.start()
        finally:
            sys.modules["__main__"] = main
        self.pid = self._process.pid
        self.terminate, self.kill = self._process.terminate, self._process.kill

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("the pages", timeout or 0)
        return self.returncode


def _serve_pages(project: Path, port: int, log: Path) -> None:
    os.setsid()
    with log.open("wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    page_alone.serve_pages(project, port)


class Served:
    """The app on a free port; its routes as a browser calls them."""

    def __init__(
        self,
        project: Path,
        processes: list[subprocess.Popen | Forked],
        *,
        log: Path | None = None,
        python: Sequence[str] = APP,
        **options,
    ):
        """python: what follows `python` in the command; APP is `annotator serve` with its worker, PAGES_ALONE has none.
        options: of Popen."""
        assert python or not options, "a forked process takes no options of Popen"
        self.project, self.processes, self.port = project, processes, free_port()
        if python != APP:  # code of a test, which may import what tests share
            options.setdefault("env", build_environment())
        self.logs, self.python, self.options = log or project, python, options
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers; again after a kill."""
        self.log = self.logs / f"serve-{len(self.processes)}.log"
        if self.python == PAGES_ALONE:
            self.process = Forked(self.project, self.port, self.log)
        else:
            words = [*self.python, str(self.project), "--port", str(self.port), "--no-browser"]
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, *words], stdout=log, stderr=log, start_new_session=True, **self.options
                )
        self.processes.append(self.process)
        until(self.answers)
        self.headers = build_request_headers(self.project, self.address, "Ann")
        self.token = self.headers["x-annotator-token"]

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=5).read()
            return True
        return False

    def kill(self) -> None:
        """kill -9, as a crash or the out-of-memory killer would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def post(self, path: str, body: dict, token: str | None = None, timeout: float = 30) -> dict:
        """One request; raises urllib.error.HTTPError for an error status, OSError when nobody answers."""
        request = urllib.request.Request(
            self.address + path,
            data=json.dumps(body).encode(),
            headers=self.headers if token is None else self.headers | {"x-annotator-token": token},
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read())

    def get(self, path: str, token: str | None = None, more: str = "") -> tuple[int, bytes, dict]:
        """Status, body and headers of a GET, whatever the status. more: further query parameters, "&full=1"."""
        address = f"{self.address}{path}?token={self.token if token is None else token}{more}"
        try:
            request = urllib.request.Request(address, headers={"cookie": self.headers["cookie"]})
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read(), dict(error.headers)


@contextlib.contextmanager
def serving(project: Path, python: Sequence[str] = PAGES_ALONE) -> Iterator[Served]:
    """The app on this project for as long as the block lasts; without a worker what the model says stays as the test
    has set it."""
    processes: list[subprocess.Popen | Forked] = []
    try:
        yield Served(project, processes, python=python)
    finally:
        for process in processes:  # a page that is still open keeps a server from an orderly end for seconds
            process.kill() if python == PAGES_ALONE else process.terminate()
            process.wait(120)
