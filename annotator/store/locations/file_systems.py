"""File systems of remote stores, read with fsspec: https://filesystem-spec.readthedocs.io.

Each library finds its own credentials.
"""

import re
import time
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from annotator.errors import AnnotatorError
from annotator.store.locations import web_servers
from annotator.store.locations.addresses import PACKAGE_BY_SCHEME, Address, check_host, remove_secrets

MAX_TRIES = 3
RETRY_WAIT_SECONDS = 1  # before the second try, and twice as much before the third
RETRY_ADVICE = "Give the same command again to go on."
# names of exceptions of botocore, aiohttp, httpx
_CONNECTION_ERROR_PATTERN = re.compile("Connect|Disconnect|HTTPClientError")


def open_file_system(
    address: Address,
    may_be_own: bool = True,
    *,
    connect: float = 0,
    read: float = 0,
    tries: int = MAX_TRIES,
    connections: int = 0,
) -> Any:
    """Return the file system of a URL.

    Args:
        may_be_own: Whether hosts of the local network are allowed.
        connect, read: S3 timeouts in seconds, 0 for the defaults.
        tries: Attempts per S3 request.
        connections: Concurrent S3 connections, 0 for the default.

    Raises:
        AnnotatorError: The URL is forbidden, or its package is missing.
    """
    scheme = address.scheme
    try:
        fsspec, module = import_module("fsspec"), import_module(PACKAGE_BY_SCHEME[scheme])
    except ImportError as error:
        raise AnnotatorError(
            f"{scheme}:// needs the package {PACKAGE_BY_SCHEME[scheme]}. Install it with: pip install "
            f"'multilabel-annotator[cloud]' {PACKAGE_BY_SCHEME[scheme]}"
        ) from error
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if address.is_web:
        check_host(address.host, may_be_own)
        # a host outside of this network must not lead into it
        may_be_own = may_be_own and web_servers.is_own_host(address.host)
        client = web_servers.build_client_factory(module, address.host, may_be_own)
        return fsspec.filesystem(scheme, get_client=client, **options)
    if "@" in urlsplit(address.plain).netloc and not scheme.startswith(("az", "abfs")):
        raise AnnotatorError(f"{address}: keys belong into the environment or your settings, not into addresses.")
    if address.is_s3:
        times: dict[str, Any] = {"connect_timeout": connect or web_servers.CONNECT_TIMEOUT_SECONDS}
        times |= {"read_timeout": read or web_servers.READ_TIMEOUT_SECONDS, "retries": {"max_attempts": tries}}
        times |= {"max_pool_connections": connections} if connections else {}
        return fsspec.filesystem("s3", anon=not _has_s3_keys(), config_kwargs=times, **options)
    return fsspec.filesystem(scheme, **options)


def _has_s3_keys() -> bool:
    return import_module("botocore.session").get_session().get_credentials() is not None


def call_with_retry(call: Any, *values: Any, **options: Any) -> Any:
    """Call a file system function and retry network failures.

    Raises permanent errors at once, others after MAX_TRIES attempts.
    """
    for attempt in range(1, MAX_TRIES + 1):
        try:
            return call(*values, **options)
        except Exception as error:
            cause = find_first_cause(error)
            status = _get_status(cause)
            is_final = isinstance(cause, (FileNotFoundError, PermissionError, AnnotatorError))
            if attempt == MAX_TRIES or is_final or (400 <= status < 500 and status != 429):
                raise
            time.sleep(attempt * RETRY_WAIT_SECONDS)
    raise AssertionError("not reached")


def find_first_cause(error: BaseException) -> BaseException:
    """Return the original error (fsspec turns many into "file not found")."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    for cause in reversed(chain):
        if isinstance(cause, (AnnotatorError, TimeoutError)) or type(cause).__module__.startswith("aiohttp"):
            return cause
    return error


def build_read_error(address: Address, error: BaseException, again: str = RETRY_ADVICE) -> AnnotatorError:
    """Return an error with URL, cause and advice (`again`), without secrets."""
    error = find_first_cause(error)
    if isinstance(error, AnnotatorError):
        return AnnotatorError(remove_secrets(str(error), address))
    kind, text = type(error).__name__, " ".join(remove_secrets(str(error), address).split()).rstrip(".")
    if is_missing(error):
        advice = "There is nothing of this name. Is the bucket and the path spelled right?"
    elif is_refused(error):
        advice = "Access is refused. Are the keys in the environment those of this bucket, and may they list it?"
    elif is_timeout(error):
        advice = f"There was no answer within {web_servers.READ_TIMEOUT_SECONDS} seconds. {again}"
    else:
        advice = f"Is the network there, and the address right? {again}"
    return AnnotatorError(f"{address} cannot be read ({kind}{': ' if text else ''}{text}). {advice}")


def _get_status(error: BaseException) -> int:
    status: object = getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else 0


def is_missing(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or _get_status(error) == 404


def is_bucket_missing(error: BaseException) -> bool:
    answer: Any = getattr(error.__cause__, "response", None) or {}
    return hasattr(answer, "get") and answer.get("Error", {}).get("Code") == "NoSuchBucket"


def is_refused(error: BaseException) -> bool:
    """Return whether an error means denied access."""
    return (
        isinstance(error, PermissionError) or _get_status(error) in (401, 403) or "Credentials" in type(error).__name__
    )


def is_unreachable(error: BaseException) -> bool:
    """Return whether an error means a timeout or no connection."""
    return is_timeout(error) or bool(_CONNECTION_ERROR_PATTERN.search(type(error).__name__))


def is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
