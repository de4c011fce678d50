"""The connection to a Ray cluster or a local one, with error messages.

Clusters started here have a private token, because a Ray cluster runs any code sent to it.
"""

import contextlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotator.cluster.exit_watcher import report_sudden_exit
from annotator.errors import AnnotatorError
from spmll.usable_cores import count_usable_cores

CONNECT_TIMEOUT_SECONDS = 5.0  # within which a head must accept a connection
CLIENT_PORT = 10001
CLUSTER_LOST_MESSAGE = (
    "Error: The Ray cluster ({on}) stopped answering, and Ray has ended this command in the middle of its work.\n"
    "    Its process on this machine (raylet) has gone, or the head of the cluster, or memory was full.\n"
    "    {lost}\n"
)
OBJECT_STORE_BYTES = 512 << 20  # shared memory of a cluster that is started here: it holds chunks for moments


@dataclass(frozen=True)
class ClusterUse:
    """What error messages say about a command that uses a cluster."""

    # value of --on
    cluster: str
    local_command: str
    recovery_advice: str


def check_cluster_option(on: str) -> None:
    """Raise AnnotatorError unless --on is local, ray or ray://HOST[:PORT]."""
    if on in ("local", "ray"):
        return
    parts = urlsplit(on)
    try:
        good = parts.scheme == "ray" and bool(parts.hostname) and (parts.port or 1) > 0 and parts.path in ("", "/")
    except ValueError:
        good = False
    if not good:
        raise AnnotatorError(
            f"--on {on}: there is no such place. There is: local (this machine), ray (the cluster that RAY_ADDRESS "
            f"names, else one started here), ray://HOST:{CLIENT_PORT} (a cluster, through its head)."
        )


@contextlib.contextmanager
def connect_to_cluster(use: ClusterUse) -> Iterator[Any]:
    """Yield the connected module ray, then disconnect and stop a cluster started here.

    Raises:
        AnnotatorError: Ray is missing, unreachable or of another version.
    """
    address = use.cluster if use.cluster != "ray" else os.environ.get("RAY_ADDRESS", "")
    is_own = address in ("", "local")
    # Ray prints what it thinks of killed workers among the results of the command, whatever it is told.
    with _set_ray_environment(is_own), Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield from _connect(address, is_own, use)


def _connect(address: str, is_own: bool, use: ClusterUse) -> Iterator[Any]:
    try:
        import ray
    except ImportError as error:
        raise AnnotatorError(
            f"Ray is not installed on this machine ({error}).\n    Install it with: pip install "
            f"'multilabel-annotator[cluster]'. Without it: {use.local_command}"
        ) from error
    if ray.is_initialized():
        raise AnnotatorError("This process uses a Ray cluster already; end that use first (ray.shutdown()).")
    _check_head(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if is_own:
        quiet |= {
            "address": "local",
            "num_cpus": count_usable_cores(),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
        }
    else:
        quiet["address"] = _add_default_port(address)
    try:
        with _restore_sigterm_handler():
            _init_ray(ray, quiet)
    except Exception as error:  # Ray raises a dozen kinds, depending on how far it came
        with contextlib.suppress(Exception):
            ray.shutdown()
        raise _translate_error(address, error, use) from error
    try:
        with report_sudden_exit(CLUSTER_LOST_MESSAGE.format(on=use.cluster, lost=use.recovery_advice)):
            yield ray
    except Exception as error:
        if isinstance(error, AnnotatorError) or not _is_ray_error(error):
            raise
        raise build_cluster_lost_error(use, error) from error
    finally:
        with contextlib.suppress(Exception):
            ray.shutdown()


def _init_ray(ray: Any, options: dict[str, Any]) -> None:
    """Connect to Ray, retrying once because gRPC forks sometimes die (GRPC_ENABLE_FORK_SUPPORT=0 helps)."""
    try:
        ray.init(**options)
    except ConnectionError as error:
        if "Starting Ray client server failed" not in str(error):
            raise
        ray.shutdown()
        ray.init(**options)


@contextlib.contextmanager
def _restore_sigterm_handler() -> Iterator[None]:
    """Restore the SIGTERM handler that Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _set_ray_environment(is_own: bool) -> Iterator[None]:
    """Set Ray's environment variables within the block, with a token if this command owns the cluster."""
    wanted = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    wanted |= {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}  # else it waits at SIGTERM, for its own processes to end
    if is_own and "RAY_AUTH_MODE" not in os.environ:
        wanted |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # else Ray leaves one in the home
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def build_missing_program_error(use: ClusterUse, error: Exception) -> AnnotatorError:
    """Return the error for a cluster head that lacks a complete installation of annotator."""
    return AnnotatorError(
        f"The head of the Ray cluster ({use.cluster}) has no complete annotator ({_first_line(error)}).\n"
        "    Install the same version there as here: pip install 'multilabel-annotator[cluster]'"
    )


def build_cluster_lost_error(use: ClusterUse, error: Exception) -> AnnotatorError:
    """Return the error for a cluster lost during work."""
    return AnnotatorError(
        f"The Ray cluster ({use.cluster}) does not answer any more: {_first_line(error)}.\n    {use.recovery_advice}"
    )


def _is_ray_error(error: BaseException | None) -> bool:
    """Return whether Ray or its connection failed, not our function."""
    if error is None or "RayTaskError" in type(error).__name__:
        return False
    is_rays = type(error).__module__.partition(".")[0] in ("ray", "grpc")
    return is_rays or isinstance(error, ConnectionError) or _is_ray_error(error.__cause__)


def _add_default_port(address: str) -> str:
    parts = urlsplit(address)
    return f"ray://{parts.hostname}:{parts.port or CLIENT_PORT}" if parts.scheme == "ray" else address


def _check_head(address: str) -> None:
    """Check the head's port first, because Ray retries for nearly a minute."""
    if not address or address in ("local", "auto"):
        return
    parts = urlsplit(_add_default_port(address) if "://" in address else f"//{address}")
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 6379), CONNECT_TIMEOUT_SECONDS):
            return
    except (OSError, ValueError) as error:
        raise AnnotatorError(
            f"The head of the Ray cluster at {address} cannot be reached "
            f"({getattr(error, 'strerror', None) or error}).\n"
            "    Is it running there (ray start --head), is the address right, and does a firewall let it through?\n"
            f"    ray:// goes to port {CLIENT_PORT} of the head, RAY_ADDRESS without it to port 6379."
        ) from error


def _translate_error(address: str, error: Exception, use: ClusterUse) -> AnnotatorError:
    text = str(error)
    if "version" in text.lower() and "match" in text.lower():
        return AnnotatorError(
            f"The Ray cluster at {address} has other versions than this machine:\n{_indent_lines(text)}\n"
            "    Ray and Python must be the same on all machines. Install the cluster's versions here, or these there: "
            "pip install 'ray[client]==VERSION'"
        )
    if "No space left" in text:
        return AnnotatorError(
            f"Ray could not start: the disk of its folder for temporary files is full ({_first_line(error)}).\n"
            "    Free some space there, or name another place: RAY_TMPDIR=/folder annotator ..."
        )
    if "uthenticat" in text or ("timeout" in text and address.startswith("ray://")):
        return AnnotatorError(
            f"The Ray cluster at {address} does not let this machine in: {_first_line(error)}.\n"
            "    Does it ask for a token (Ray does so where it finds one)? Then this machine needs the same: "
            "RAY_AUTH_MODE=token,\n    and the token in RAY_AUTH_TOKEN, or in the file that RAY_AUTH_TOKEN_PATH names."
        )
    where = f"The Ray cluster at {address} cannot be used" if address else "Ray could not start a cluster here"
    return AnnotatorError(f"{where}: {_first_line(error)}.\n    {use.local_command} works without it.")


def _first_line(error: Exception) -> str:
    """Return an error's first line, with the last line appended if the first ends with a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]).rstrip(".")


def _indent_lines(text: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in text.strip().splitlines()[-8:])
