"""Work in forked processes that are killed: before one of their steps, or after some seconds.

`python -m benchmarks.faults.fork_server` forks a process for each line of its input, so that none of them
loads
anything anew. A step is what changes a disk (store/disk/counted_steps.py). A process that is to die at a step kills
itself before it, so that step n + 1 is a kill right after step n.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.child_processes import build_environment
from harness.counted_steps import StepCounter

PRELOADED_MODULES = (  # before anything is forked
    *(
        "annotator.cli",
        "annotator.store.upkeep.backup",
        "annotator.store.upkeep.restoring",
        "annotator.store.classes.class_changes",
    ),
    *("annotator.exchange.exports.export_writer", "numpy", "PIL.Image"),
)
MAX_PROCESS_SECONDS = 180.0  # seconds of one process
ENDING_SECONDS = 5.0


@dataclass(frozen=True)
class ProcessEnd:
    """The end of a process that was run with counted steps.

    Attributes:
        status: The exit status, -9 if the process was killed.
        steps: The number of steps that it took; 0 if it was killed.
        turns: The steps that renamed a file or committed to the database.
        seconds: The time that it ran.
        output: The end of its output.
        leftover_processes: Command lines of processes that it had started and that still ran after it.
    """

    status: int
    steps: int
    turns: tuple[int, ...]
    seconds: float
    output: str
    leftover_processes: tuple[str, ...]

    @property
    def is_killed(self) -> bool:
        """Return whether the process ended by SIGKILL."""
        return self.status == -signal.SIGKILL


class ForkServer:
    """A process that forks others to be killed; close it at the end.

    Args:
        modules: The modules that it loads before it forks, besides PRELOADED_MODULES.
    """

    def __init__(self, *modules: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmarks.faults.fork_server", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=build_environment({"PYTHONDONTWRITEBYTECODE": "1"}),  # a module that is compiled is no step
        )

    def run(
        self, *words: object, kill_step: int = 0, kill_seconds: float = 0.0, ending_seconds: float = ENDING_SECONDS
    ) -> ProcessEnd:
        """Run a command in a forked process, and wait until it has ended.

        Args:
            words: The command line after "annotator"; "call", MODULE:FUNCTION and strings call that function with them.
            kill_step: The step before which the process kills itself; 0: none.
            kill_seconds: Seconds after which it is killed; 0: never.
            ending_seconds: Seconds that processes which it has started may take to end once it has.
        """
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(
            json.dumps([kill_step, kill_seconds, ending_seconds, *map(str, words)]).encode() + b"\n"
        )
        self._process.stdin.flush()
        status, steps, turns, seconds, output, left = json.loads(self._process.stdout.readline())
        return ProcessEnd(status, steps, tuple(turns), seconds, output, tuple(left))

    def close(self) -> None:
        """Close the standard input of the process, and wait for its end."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _run_words(words: list[str]) -> int:
    if words[0] == "call":
        module, _, function = words[1].partition(":")
        call: Callable[..., object] = getattr(importlib.import_module(module), function)
        call(*words[2:])
        return 0
    sys.argv = ["annotator", *words]
    try:
        importlib.import_module("annotator.__main__").main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return 0


def _run_child(kill_step: int, words: list[str], output: int, answer_pipe: int) -> None:
    import atexit
    import traceback

    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    steps = StepCounter(kill_step)
    steps.begin()
    status = 1
    try:
        status = _run_words(words)
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with os.fdopen(answer_pipe, "w") as answer:
        json.dump([steps.count, steps.turns], answer)
    os._exit(status)


def list_session_processes(session: int) -> list[str]:
    """Return the command lines of the processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            facts = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes().replace(bytes(1), b" ").decode(errors="replace")
        except OSError:
            continue
        if facts[0] != "Z" and int(facts[3]) == session:
            found.append(f"{path.name}: {command.strip()}")
    return found


def _end_leftovers(session: int, ending_seconds: float) -> list[str]:
    deadline = time.monotonic() + ending_seconds
    while (left := list_session_processes(session)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for each in left:  # nobody waits for them
        os.kill(int(each.partition(":")[0]), signal.SIGKILL)
    return left


def _wait_for_exit(pid: int, seconds: float) -> int:
    """Wait for a process, which is killed after `seconds`, and return its exit status."""
    timer = threading.Timer(seconds, os.kill, [pid, signal.SIGKILL])
    timer.start()
    # The process is waited for, and its id taken back, only once the timer can no longer kill another one of that id.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    timer.cancel()
    timer.join()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _serve_forks() -> None:
    import tempfile

    for module in (*PRELOADED_MODULES, *sys.argv[1:]):
        importlib.import_module(module)

    for line in sys.stdin:
        at, after, ending, *words = json.loads(line)
        with tempfile.TemporaryFile() as output:
            reading, told = os.pipe()
            began = time.monotonic()
            pid = os.fork()
            if not pid:
                _run_child(at, words, output.fileno(), told)
            os.close(told)
            status = _wait_for_exit(pid, after or MAX_PROCESS_SECONDS)
            seconds = time.monotonic() - began
            with os.fdopen(reading) as answer:
                steps, turns = json.loads(answer.read() or "[0, []]")
            output.seek(0)
            last = output.read()[-2000:].decode(errors="replace")
        sys.stdout.write(f"{json.dumps([status, steps, turns, seconds, last, _end_leftovers(pid, ending)])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve_forks()
