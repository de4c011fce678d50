"""A real Ray cluster of processes on this machine, started as people start one; nothing of it leaves the machine."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.child_processes import (
    LOCAL_ADDRESS,
    close_input,
    free_port,
    is_listening,
    start_module,
    wait_for,
)

QUIET_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",  # else a head waits 30 s for its own calls to end
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",  # it waits so long before it sees that a training has ended
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120",
}
TOKEN_ENVIRONMENT = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # Ray reads it once a process
STORE_BYTES = 80_000_000
OUTPUT_FILE, STARTED_MESSAGE = "output", b"Ray runtime started"
GRACE_SECONDS = 20.0  # in which a machine ends its processes
HEAD_ARGUMENTS = "--port={port} --ray-client-server-port={client} --include-dashboard=false --disable-usage-stats"
MACHINE_ARGUMENTS = "--address={head}:{port} --disable-usage-stats"
"""Words of `ray start` (--head), as docs/scale.md has them."""


class Cluster:
    """A Ray cluster of processes on this machine: a head, and machines that `add` starts.

    `end` ends it; it also ends if the process that started it is killed.

    Attributes:
        client: The value for --on; it needs `environment` to be set.
        environment: The environment of a command that uses the cluster; with it, --on ray works, too.
    """

    def __init__(self, cpus: int = 1, path: Path | None = None):
        """Start the head, and wait until it listens.

        Args:
            cpus: The cores that the head offers for work.
            path: The place where its Python finds the program; None: the same as this process.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="ray"))  # short: it holds sockets, whose paths end after 107 bytes
        self._started: list[subprocess.Popen] = []
        self._port, client = free_port(), free_port()
        self.client = f"ray://{LOCAL_ADDRESS}:{client}"
        self.environment = QUIET_ENVIRONMENT | TOKEN_ENVIRONMENT | {"RAY_ADDRESS": f"{LOCAL_ADDRESS}:{self._port}"}
        self._start_node(
            "--head", *HEAD_ARGUMENTS.format(port=self._port, client=client).split(), f"--temp-dir={self._folder}",
            cpus=cpus, path=path,
        )  # fmt: skip
        wait_for(lambda: is_listening(self._port) and is_listening(client), "the head of the cluster")

    def add_machine(self, cpus: int = 1) -> subprocess.Popen:
        """Start one more machine with these cores, and return once it has joined.

        If several start at the same time on one computer, one may hang.
        """
        started = self._start_node(
            *MACHINE_ARGUMENTS.format(head=LOCAL_ADDRESS, port=self._port).split(), cpus=cpus, path=None
        )
        said = self._folder / OUTPUT_FILE
        wait_for(lambda: said.read_bytes().count(STARTED_MESSAGE) == len(self._started), "a machine of the cluster")
        return started

    def list_workers(self, name: str = "NodeWorker") -> list[int]:
        """Return the processes that embed images now, or run another task of this name; needs Linux, for /proc."""
        return self.list_processes(f"ray::{name}")

    def list_processes(self, words: str) -> list[int]:
        """Return the cluster's processes with this text in their command line ("raylet", "gcs_server"); needs Linux."""
        return [pid for pid in self._list_own_processes() if words.encode() in _read_command_line(pid)]

    def _list_own_processes(self) -> list[int]:
        mine = {started.pid for started in self._started}
        parents = {
            pid: _read_parent(pid)
            for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        }
        return [pid for pid in sorted(parents) if mine & set(_list_ancestors(pid, parents))]

    def end(self) -> None:
        """End all processes of the cluster, and wait until they have ended."""
        for started in reversed(self._started):
            started.send_signal(signal.SIGTERM)
        for started in self._started:
            try:
                started.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
            close_input(started)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_node(self, *words: str, cpus: int, path: Path | None) -> subprocess.Popen:
        variables = QUIET_ENVIRONMENT | TOKEN_ENVIRONMENT
        words = ("start", "--block", f"--num-cpus={cpus}", f"--object-store-memory={STORE_BYTES}", *words)
        with (self._folder / OUTPUT_FILE).open("ab") as output:
            if path is None:
                started = start_module(
                    "ray.scripts.scripts", *words, output=output, environment=variables, folder=self._folder
                )
            else:  # where the program may be too incomplete to end the process with this one
                started = subprocess.Popen(
                    [sys.executable, "-m", "ray.scripts.scripts", *words],
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env=os.environ | variables | {"PYTHONPATH": str(path)},
                    cwd=self._folder,
                )
        self._started.append(started)
        return started


def _read_command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def _read_parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _list_ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    above: list[int] = []
    while pid := parents.get(pid, 0):
        above.append(pid)
    return above
