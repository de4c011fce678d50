"""Processes that a measurement starts: ready when it goes on, ended when it is over, their last output in the error."""

import itertools
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database

LOCAL_ADDRESS = "127.0.0.1"
TESTS_FOLDER = Path(__file__).resolve().parents[1]
# Below the ports that the system gives to connections, and above those that Ray has for itself (10,002 to 19,999).
PORT_RANGES, FIRST_RANGE_PORT, PORTS_PER_RANGE = 10, 20_000, 1200


def _claim_ports() -> tuple[socket.socket, int]:
    """Return a claim on a range of ports, and its first port. Another run of the tests takes another range."""
    own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for number in range(own, own + PORT_RANGES):
        claim, port = socket.socket(), FIRST_RANGE_PORT + PORTS_PER_RANGE * (number % PORT_RANGES)
        with suppress(OSError):
            claim.bind((LOCAL_ADDRESS, port))
            return claim, port
        claim.close()
    return socket.socket(), FIRST_RANGE_PORT + PORTS_PER_RANGE * (own % PORT_RANGES)


_CLAIM, _BASE_PORT = _claim_ports()  # the claim lasts as long as this process
FIRST_PORT = _BASE_PORT + 1 + random.randrange(100)
# Not one after the other: a start page gives the next ports to its projects.
_PORTS = itertools.chain.from_iterable(itertools.repeat(range(_BASE_PORT + 600, _BASE_PORT + 1200, 10)))
GRACE_SECONDS = 10.0  # between asking a process to end and killing it


@dataclass(frozen=True)
class Server:
    """A running server that answers requests."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        """Return the address of the server, without a path."""
        return f"http://{LOCAL_ADDRESS}:{self.port}"


@contextmanager
def run_module(module: str, *arguments: object) -> Iterator[subprocess.Popen]:
    """Run `python -m module arguments` in a process of its own for the duration of the block.

    Raises:
        AnnotatorError: The process ended before the block did; the message holds its last output.
    """
    with tempfile.TemporaryFile() as output:
        process = start_module(module, *arguments, output=output)
        failure: Exception | None = None
        try:
            try:
                yield process
            except Exception as error:
                failure = error
            if process.poll() is not None:
                output.seek(0)
                last_output = output.read()[-2000:].decode(errors="replace").strip()
                raise AnnotatorError(
                    f"python -m {module} ended by itself with status {process.returncode}:\n{last_output}"
                ) from failure
            if failure:
                raise failure
        finally:
            process.terminate()
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            close_input(process)


def start_module(
    module: str,
    *arguments: object,
    output: IO[bytes],
    results: int | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen:
    """Start `python -m module arguments` in a process that ends with this one, however this one ends (child_runner.py).

    Args:
        module: The name of the module that is run.
        *arguments: Its arguments, which are turned into text.
        output: The file for standard output and standard error.
        results: subprocess.PIPE: standard output goes there instead.
        environment: Variables of the process beside those of this one.
        folder: Its working folder. None selects that of this process.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.child_runner", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=output if results is None else results,
        stderr=output,
        env=build_environment(environment),
        cwd=folder,
        start_new_session=True,  # Ctrl+C is for the measurement, which then ends its processes
    )


def build_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that imports modules of tests/, such as those of the harness.

    Args:
        variables: Further variables, or other values of those of this process.
    """
    environment = {**os.environ, **(variables or {})}
    places = [str(TESTS_FOLDER), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(places)}


def close_input(process: subprocess.Popen) -> None:
    """Close the standard input of a process that has ended."""
    if process.stdin:
        process.stdin.close()


@contextmanager
def run_server(module: str, *arguments: object, port: int | None = None, pause: float = 0.05) -> Iterator[Server]:
    """Start a server whose last argument is its port, and yield it once it listens.

    Args:
        module: The name of the module that is run.
        *arguments: Its arguments before the port.
        port: None: a free one.
        pause: Seconds between two attempts to reach it.
    """
    port = free_port() if port is None else port
    with run_module(module, *arguments, port) as process:
        wait_for(lambda: process.poll() is not None or is_listening(port), f"an answer of {module}", pause=pause)
        yield Server(port, process.pid)


def serve_page(db: Database) -> AbstractContextManager[Server]:
    """Serve the app on a project, without a worker (page_alone.py)."""
    return run_server("harness.page_alone", db.paths.project)


def serve_floor(db: Database) -> AbstractContextManager[Server]:
    """Serve the floor on the images of a project made by projects.py (floor.py)."""
    return run_server(*build_floor_command(db))


def build_floor_command(db: Database) -> tuple[str, Path, Path]:
    """Return the arguments with which `server` serves the floor for the images of a project."""
    folder = db.paths.project.parent
    return "harness.floor", folder / "images", folder / "floor.jsonl"


def wait_for(condition: Callable[[], Any], description: str, seconds: float = 120.0, pause: float = 0.05) -> Any:
    """Return the first true value of `condition`.

    Raises:
        AnnotatorError: The time is over.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AnnotatorError(f"Waited {seconds:.0f} s in vain for {description}.")
        time.sleep(pause)
    return value


def free_port() -> int:
    """Return a port on which nothing listens, another one at each call.

    A port that the system chooses may be given to a connection before the server listens.
    """
    return next(port for port in _PORTS if can_listen(port))


def can_listen(port: int) -> bool:
    """Return whether a server could listen on the port."""
    with socket.socket() as probe, suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOCAL_ADDRESS, port))
        return True
    return False


def is_listening(port: int) -> bool:
    """Return whether a process of this machine listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOCAL_ADDRESS, port)) == 0
