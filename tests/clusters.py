"""A real Ray cluster of processes on this machine, started as people start one; nothing of it leaves the machine."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RAY = Path(sys.executable).parent / "ray"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # of these clusters, nobody else's
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120",
}
PATIENCE = 60.0


class Cluster:
    """`ray start --head` with one core; `add` is `ray start --address`.

    client    what --on takes
    path      where the Python of its workers finds the program
    """

    def __init__(self, path: Path = ROOT):
        self._folder = Path(tempfile.mkdtemp(prefix="ray"))  # short: it holds sockets, whose paths end after 107 bytes
        self._started: list[subprocess.Popen] = []
        self.port, client = _free_port(), _free_port()
        self.client = f"ray://127.0.0.1:{client}"
        self._start(
            "--head", f"--port={self.port}", f"--ray-client-server-port={client}", "--include-dashboard=false",
            "--disable-usage-stats", f"--temp-dir={self._folder}", path=path,
        )  # fmt: skip
        _wait_for(self.port)
        _wait_for(client)

    @property
    def environment(self) -> dict[str, str]:
        """For a command that uses it by --on ray."""
        return QUIET | TOKEN | {"RAY_ADDRESS": f"127.0.0.1:{self.port}"}

    def add(self, path: Path = ROOT) -> subprocess.Popen:
        """A machine with one core more. path: where its Python finds the program."""
        return self._start(f"--address=127.0.0.1:{self.port}", path=path)

    def _start(self, *words: str, path: Path = ROOT) -> subprocess.Popen:
        started = subprocess.Popen(
            [RAY, "start", "--block", "--num-cpus=1", "--object-store-memory=80000000", *words],
            env=os.environ | QUIET | TOKEN | {"PYTHONPATH": str(path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            start_new_session=True,
        )
        self._started.append(started)
        return started

    def workers(self, name: str = "Member") -> list[int]:
        """Processes in which images are embedded now, or another task of this name runs."""
        mine = {started.pid for started in self._started}
        parents = {
            pid: _parent(pid) for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        }
        return [pid for pid in parents if _is_worker(pid, name) and mine & set(_ancestors(pid, parents))]

    def end(self) -> None:
        for started in reversed(self._started):
            started.send_signal(signal.SIGTERM)
        for started in self._started:
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _is_worker(pid: int, name: str) -> bool:
    try:
        return f"ray::{name}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    above = []
    while pid := parents.get(pid, 0):
        above.append(pid)
    return above


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < until, "the head of the cluster did not start"
            time.sleep(0.1)
