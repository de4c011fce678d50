"""Processes that a measurement starts: ready when it goes on, ended when it is over, their last words in the error."""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from annotator.errors import AnnotatorError

ADDRESS = "127.0.0.1"
GRACE = 10.0  # seconds between asking a process to end and ending it


@contextmanager
def python(module: str, *arguments: object) -> Iterator[subprocess.Popen]:
    """`python -m module arguments`, in a process of its own for as long as the block runs.

    Raises AnnotatorError with the last words of a process that ended before the block did.
    """
    with tempfile.TemporaryFile() as words:
        process = start(module, *arguments, words=words)
        trouble: Exception | None = None
        try:
            try:
                yield process
            except Exception as error:
                trouble = error
            if process.poll() is not None:
                words.seek(0)
                said = words.read()[-2000:].decode(errors="replace").strip()
                raise AnnotatorError(
                    f"python -m {module} ended by itself with status {process.returncode}:\n{said}"
                ) from trouble
            if trouble:
                raise trouble
        finally:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()


def start(module: str, *arguments: object, words: IO[bytes], **options: Any) -> subprocess.Popen:
    """`python -m module arguments`, in a process that ends with this one, however this one ends (tied.py).

    words      takes what it prints
    options    for Popen
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "annotator.benchmark.harness.tied", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=words,
        stderr=words,
        start_new_session=True,  # Ctrl+C is for the measurement, which then ends its processes
        **options,
    )


@contextmanager
def server(module: str, *arguments: object) -> Iterator[str]:
    """A server, given a free port as the last argument: its address, once it answers there."""
    port = free_port()
    with python(module, *arguments, port) as process:
        wait_for(lambda: process.poll() is not None or answers(port), f"an answer of {module}")
        yield f"http://{ADDRESS}:{port}"


def wait_for(found: Callable[[], Any], what: str, seconds: float = 120.0, pause: float = 0.05) -> Any:
    """The first true answer of `found`. Raises AnnotatorError when it takes longer than that."""
    until = time.monotonic() + seconds
    while not (answer := found()):
        if time.monotonic() > until:
            raise AnnotatorError(f"Waited {seconds:.0f} s in vain for {what}.")
        time.sleep(pause)
    return answer


def say(text: str) -> None:
    """A line of progress, away from the result on standard output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((ADDRESS, port)) == 0
