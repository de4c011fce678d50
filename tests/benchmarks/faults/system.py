"""The processes that are harmed: a real `annotator serve` with its worker, and commands run beside them.

SIGKILL for kills, SIGSTOP for a disk that does not answer, a limit on the size of files (RLIMIT_FSIZE) for a full one,
and, where libfaketime is installed, another clock for a server and its worker.
"""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Collection
from pathlib import Path

from harness.child_processes import LOCAL_ADDRESS, close_input, free_port, start_module, wait_for

from annotator.errors import AnnotatorError
from annotator.store.database import heartbeat, jobs
from annotator.store.database.database import Database
from annotator.ui.access.access_keys import build_request_headers

FAKE_TIME = [
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/lib").glob("faketime/libfaketimeMT.so.1"),
]
CLOCK_JUMPS = ("-2d", "+2d", "-1h", "+0")
ENDING_SECONDS = 20.0
UNLIMITED_BYTES = -1


class Server:
    """An `annotator serve` process on one port, started again after each kill."""

    def __init__(self, db: Database, logs: Path):
        self.db, self.port, self._logs, self._starts = db, free_port(), logs, 0
        self.address = f"http://{LOCAL_ADDRESS}:{self.port}"
        self.process: subprocess.Popen
        self._headers: dict[str, dict[str, str]] = {}

    def start(self, jump: str = "") -> None:
        """Start the server and wait until it answers.

        Args:
            jump: The offset of its clock in the notation of libfaketime; "": none.
        """
        self._starts += 1
        faked = {"LD_PRELOAD": str(FAKE_TIME[0]), "FAKETIME": jump, "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if jump else {}
        log = self._logs / f"serve-{self._starts}.log"
        with log.open("wb") as output:
            self.process = start_module(
                "annotator", "serve", self.db.paths.project, "--port", self.port, "--no-browser",
                output=output, environment=faked,
            )  # fmt: skip
        self._headers.clear()
        wait_for(lambda: self.process.poll() is not None or self._is_answering(), "the server")
        if self.process.poll() is not None:
            last_output = log.read_text(errors="replace")[-2000:]
            raise AnnotatorError(f"The server did not start again:\n{last_output}")

    def get_headers(self, annotator: str) -> dict[str, str]:
        """Return the headers of this annotator's requests."""
        if annotator not in self._headers:
            self._headers[annotator] = build_request_headers(self.db.paths.project, self.address, annotator)
        return self._headers[annotator]

    def kill(self) -> None:
        """Kill the server, and wait for its end."""
        self.process.kill()
        self.process.wait()
        close_input(self.process)

    def end(self) -> None:
        """Ask the server to end, as Ctrl+C does.

        Raises:
            AnnotatorError: It does not end.
        """
        self.process.terminate()
        try:
            self.process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AnnotatorError(f"The server did not end {ENDING_SECONDS:.0f} s after SIGTERM.") from None
        close_input(self.process)

    def wait_for_worker(self, states: Collection[str], seconds: float) -> bool:
        """Request a training and wait until the worker is in one of these states; return False if it takes too long."""
        jobs.request_training(self.db)
        with contextlib.suppress(AnnotatorError):
            return wait_for(lambda: heartbeat.load_worker_state(self.db).state in states, "a training", seconds)
        return False

    def kill_worker(self) -> str:
        """Kill the worker, if one runs, and return the state it was in; "" without a worker."""
        state = heartbeat.load_worker_state(self.db)
        if state.pid is None or not self._is_worker(state.pid):
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGKILL)
        return state.state

    def stall(self, seconds: float) -> None:
        """Stop server and worker for `seconds`, as a disk that does not answer would."""
        pids = self._list_pids()
        _signal_processes(pids, signal.SIGSTOP)
        time.sleep(seconds)
        _signal_processes(pids, signal.SIGCONT)

    def fill_disk(self, seconds: float, room: int) -> bool:
        """Let no file grow beyond `room` bytes for `seconds`; return False if the system cannot do that."""
        import resource  # not on Windows

        if not hasattr(resource, "prlimit"):  # Linux has it
            return False
        for limit in (room, UNLIMITED_BYTES):
            for pid in self._list_pids():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if limit == UNLIMITED_BYTES else limit, hard))
            if limit != UNLIMITED_BYTES:
                time.sleep(seconds)
        return True

    def _list_pids(self) -> list[int]:
        worker = heartbeat.load_worker_state(self.db).pid
        return [self.process.pid, *([worker] if worker is not None and self._is_worker(worker) else [])]

    def _is_worker(self, pid: int) -> bool:
        # The process id may have been given to another process since.
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(bytes(1))
        except OSError:
            return False
        return b"worker" in command and str(self.db.paths.project).encode() in command

    def _is_answering(self) -> bool:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=5).read()
            return True
        return False


class Commands:
    """A thread that runs commands beside the server, one after another; most are killed at a random moment.

    Attributes:
        kill_counts: The number of commands killed, by name.
        end_counts: The number of commands that ended by themselves, by name.
        odd_outputs: The last output of commands that ended with a traceback.
        export_paths: The files that exports were to write.
    """

    NAMES = ("audit", "export", "certificate", "accept", "train", "once", "export")

    def __init__(self, db: Database, folder: Path, seed: int):
        self.kill_counts: dict[str, int] = {}
        self.end_counts: dict[str, int] = {}
        self.odd_outputs: list[str] = []
        self.export_paths: list[Path] = []
        self._db, self._folder, self._chance = db, folder, random.Random(f"commands {seed}")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run_commands, name="commands", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end, and wait until it has."""
        self._ending.set()
        self._thread.join()

    def count_kills(self) -> int:
        """Return the number of commands that were killed."""
        return sum(self.kill_counts.values())

    def run_command(self, name: str, seconds: float) -> None:
        """Run one command, and kill it after `seconds`."""
        project, target = self._db.paths.project, self._folder / f"{len(self.export_paths)}.csv"
        arguments = {
            "audit": ["audit", project, "--cells", 40],
            "export": ["export", project, target],
            "certificate": ["certificate", project],
            "accept": ["accept", project, "--precision", 0.9],
            "train": ["train", project],
            "once": ["worker", project, "--once"],
        }[name]
        if name == "export":
            self.export_paths.append(target)
        log = self._folder / "command.log"
        with log.open("wb") as output:
            process = start_module("annotator", *arguments, output=output)
        try:
            process.wait(seconds)
            self.end_counts[name] = self.end_counts.get(name, 0) + 1
            if b"Traceback" in log.read_bytes():
                self.odd_outputs.append(f"{name}: {log.read_text(errors='replace')[-1500:]}")
            if name == "export" and process.returncode == 0 and not target.exists():
                self.odd_outputs.append(f"{target} does not exist, though the export ended with status 0")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.kill_counts[name] = self.kill_counts.get(name, 0) + 1
        close_input(process)

    def _run_commands(self) -> None:
        while not self._ending.is_set():
            self.run_command(self._chance.choice(self.NAMES), self._chance.uniform(0.5, 8))
            self._ending.wait(self._chance.uniform(0, 3))  # the worker is niced: leave it time to train


def _signal_processes(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
