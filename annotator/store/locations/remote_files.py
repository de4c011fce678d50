"""Remote file reads with timeouts that pause unresponsive URLs.

After MAX_LATE_REQUESTS unanswered requests (MAX_LATE_PATIENT_REQUESTS if patient), requests fail at once for
AWAY_SECONDS, then one caller retries first.
"""

import base64
import binascii
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from annotator.errors import AnnotatorError, RequestSkipped, StorageTimeout
from annotator.store.locations import file_systems
from annotator.store.locations.addresses import Address, is_address, remove_secrets
from annotator.store.pictures.files import GONE_PROBLEM, escape_path, unescape_path

# for one image that somebody waits for: less than ui/serving/reader_pool.py waits for a disk
READ_TIMEOUT_SECONDS = 10.0
PATIENT_TIMEOUT_SECONDS = 30.0  # for registering and embedding, and more for a large image:
MIN_BYTES_PER_SECOND = 250_000  # bytes a second
MAX_TRIES = 3  # of patient callers
RETRY_WAIT_SECONDS = 2.0  # before the second try, and twice as much before the third
MAX_LATE_REQUESTS, AWAY_SECONDS = 2, 10.0
MAX_LATE_PATIENT_REQUESTS = 64  # twice as many as are read at a time
MAX_CONNECTIONS = 64
MAX_IMAGE_BYTES = 1 << 30  # bytes of an image
MAX_UNSTATED_BYTES = 64 << 20  # bytes of an image whose size the server does not state
MAX_PARALLEL_BYTES = 64 << 20  # bytes; patient callers read larger images one after the other
CHUNK_BYTES = 1 << 20
SHA256_DIGITS = 64  # of a sha256
# the kind of problem of an image whose store does not answer, or refuses
UNREADABLE_NOW_PROBLEM = "its file cannot be read now"


class RemoteFiles:
    """A reader of the files below one URL, safe across threads and forks."""

    def __init__(self, address: Address):
        self.address = address
        self._lock = threading.Lock()
        self._made: tuple[int, Any] | None = None  # process id, file system
        self._late, self._away_until = 0, 0.0

    def read(self, path: str, size: int = -1, *, patient: bool = False) -> bytes:
        """Return the content of a file.

        Args:
            path: Below the URL, escaped.
            size: Registered bytes, -1 if unknown.

        Raises:
            AnnotatorError: Missing or too large. StorageTimeout if temporarily unreadable, RequestSkipped if paused.
        """
        if size > MAX_IMAGE_BYTES:
            raise AnnotatorError(f"its file has {size:,} bytes, more than the {MAX_IMAGE_BYTES:,} of an image: {path}")
        most = MAX_UNSTATED_BYTES if size < 0 else size
        seconds = PATIENT_TIMEOUT_SECONDS + max(size, 0) / MIN_BYTES_PER_SECOND if patient else READ_TIMEOUT_SECONDS
        full = self._build_full_path(path)
        with _large_file_lock if patient and size > MAX_PARALLEL_BYTES else nullcontext():
            content = self._call(lambda files: self._fetch_content(files, full, most), path, seconds, patient=patient)
        if size < 0 and len(content) > most:
            raise AnnotatorError(f"its file states no size, and has more than {most:,} bytes: {path}")
        if 0 <= size != len(content):
            raise AnnotatorError(
                f"its file holds another picture now: {self.address}/{path} does not have the {size:,} bytes "
                "any more that were listed. Run annotator init again to look for changes."
            )
        return content

    def fetch_sha256(self, path: str) -> str:
        """Return the hex SHA-256 that S3 stores, or "". Raises as `read` does."""
        bucket, _, key = self._build_full_path(path).partition("/")

        def ask(files: Any) -> Any:
            return files._call_s3("head_object", Bucket=bucket, Key=key, ChecksumMode="ENABLED")

        facts = self._call(ask, path, PATIENT_TIMEOUT_SECONDS, patient=True)
        value = facts.get("ChecksumSHA256") or ""
        if "-" in value or facts.get("ChecksumType") == "COMPOSITE":  # the checksum of its parts, not of the whole file
            return ""
        try:
            digits = base64.b64decode(value, validate=True).hex()
        except binascii.Error:
            return ""
        return digits if len(digits) == SHA256_DIGITS else ""

    def is_reachable(self) -> bool:
        """Return whether the URL answers one request, even if paused."""
        try:
            full = self._build_full_path("")
            return bool(self._call(lambda files: _call_exists(files, full), "", READ_TIMEOUT_SECONDS, is_probe=True))
        except AnnotatorError:
            return False

    @property
    def is_late(self) -> bool:
        """Return whether the last request had no answer."""
        return self._late > 0

    def get_file_system(self) -> Any:
        """Return the file system. Raises AnnotatorError if unavailable or forbidden."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                files = file_systems.open_file_system(
                    self.address,
                    connect=READ_TIMEOUT_SECONDS / 2,
                    read=READ_TIMEOUT_SECONDS,
                    tries=1,
                    connections=MAX_CONNECTIONS,
                )
                files.retries = 1  # s3fs has tries of its own, with long pauses between them
                self._made = os.getpid(), files
            return self._made[1]

    def _build_full_path(self, path: str) -> str:
        name = unescape_path(path)
        if self.address.is_web:
            return f"{self.address.plain}/{quote(name)}"
        base = self.get_file_system()._strip_protocol(self.address.plain).rstrip("/")
        return f"{base}/{name}" if name else base

    def _fetch_content(self, files: Any, full: str, max_bytes: int) -> Any:
        """Return at most `max_bytes` + 1 bytes, or an awaitable if `files` is asynchronous."""
        if not files.async_impl:
            return files.cat_file(full, start=0, end=max_bytes + 1)
        if self.address.is_s3:
            return _fetch_from_s3(files, full, max_bytes)
        if self.address.is_web:
            return _fetch_from_web(files, full, max_bytes)
        return files._cat_file(full, start=0, end=max_bytes + 1)

    def _call(
        self,
        ask: Callable[[Any], Any],
        path: str,
        seconds: float,
        *,
        patient: bool = False,
        is_probe: bool = False,
    ) -> Any:
        """Call the file system, retrying if patient and ignoring pauses if a probe."""
        files = self.get_file_system()
        for attempt in range(1, MAX_TRIES + 1):
            if not is_probe and self._is_away(seconds, patient=patient):
                raise RequestSkipped(
                    f"{UNREADABLE_NOW_PROBLEM}: {self.address} has not answered for a while and is asked again soon."
                )
            try:
                if files.async_impl:
                    answer = import_module("fsspec.asyn").sync(files.loop, ask, files, timeout=seconds)
                else:
                    answer = _get_wait_pool(os.getpid()).submit(ask, files).result(seconds)
                self._late = 0
                return answer
            except Exception as error:
                problem = self._to_error(error, path, seconds)
                is_final = not isinstance(problem, StorageTimeout) or file_systems.is_refused(
                    file_systems.find_first_cause(error)
                )
                if not patient or attempt == MAX_TRIES or is_final:
                    raise problem from None
            time.sleep(attempt * RETRY_WAIT_SECONDS)
        raise AssertionError("not reached")

    def _is_away(self, seconds: float, *, patient: bool) -> bool:
        """Return whether the URL is paused. After a pause, one impatient caller tries alone."""
        with self._lock:
            if self._late < (MAX_LATE_PATIENT_REQUESTS if patient else MAX_LATE_REQUESTS):
                return False
            now = time.monotonic()
            if now < self._away_until:
                return True
            if not patient:
                self._away_until = now + seconds
            return False

    def _to_error(self, error: Exception, path: str, seconds: float) -> AnnotatorError:
        """Return a user-facing error and count requests without an answer."""
        cause = file_systems.find_first_cause(error)
        shown = f"{self.address}/{path}"
        if isinstance(cause, AnnotatorError):
            return AnnotatorError(remove_secrets(str(cause), self.address))
        text = " ".join(remove_secrets(str(cause), self.address).split())[:200].rstrip(".")
        said = f"{type(cause).__name__}{': ' if text else ''}{text}"
        if file_systems.is_timeout(cause):
            said = f"no answer within {seconds:g} seconds"
        if file_systems.is_missing(cause) and not file_systems.is_bucket_missing(cause):
            self._late = 0
            return AnnotatorError(
                f"{GONE_PROBLEM}: there is no {shown} any more. If it was moved, run annotator init again: images are "
                "known by their content."
            )
        if file_systems.is_unreachable(cause):
            self._late += 1
            if self._late >= MAX_LATE_REQUESTS:
                self._away_until = time.monotonic() + AWAY_SECONDS
        else:
            self._late = 0
        return StorageTimeout(
            f"{UNREADABLE_NOW_PROBLEM}: {shown} ({said}). Is the network there, and are the keys those of this bucket?"
        )


def _call_exists(files: Any, path: str) -> Any:
    return files._exists(path) if files.async_impl else files.exists(path)


async def _fetch_from_s3(files: Any, path: str, most: int) -> bytes:
    bucket, _, key = path.partition("/")
    answer = await files._call_s3("get_object", Bucket=bucket, Key=key)
    async with answer["Body"] as body:
        return await _read_beginning(body, most)


async def _fetch_from_web(files: Any, address: str, most: int) -> bytes:
    session = await files.set_session()
    async with session.get(files.encode_url(address), **files.kwargs) as answer:
        files._raise_not_found_for_status(answer, address)
        return await _read_beginning(answer.content, most)


async def _read_beginning(stream: Any, most: int) -> bytes:
    content = bytearray()
    while len(content) <= most and (chunk := await stream.read(min(CHUNK_BYTES, most + 1 - len(content)))):
        content += chunk
    return bytes(content)


@cache
def _get_wait_pool(process: int) -> ThreadPoolExecutor:
    """Return the thread pool that calls libraries without an event loop, for timeouts."""
    return ThreadPoolExecutor(MAX_CONNECTIONS, "address-wait")


_large_file_lock = threading.Lock()
_objects_lock = threading.Lock()
_files_by_address: dict[Address, RemoteFiles] = {}


def get_remote_files(address: Address) -> RemoteFiles:
    with _objects_lock:
        return _files_by_address.setdefault(address, RemoteFiles(address))


def to_folder_address(named: Address) -> Address:
    """Return the URL to store for images read in place. Raises AnnotatorError for credentials or a query."""
    address = named.plain.split("?")[0].split("#")[0].rstrip("/")
    if address != named.plain.rstrip("/") or "@" in address.partition("://")[2].partition("/")[0]:
        raise AnnotatorError(
            f"{named} has a password, a key or a query in it, which a project does not keep: images that are "
            "read where they lie are found by the credentials of this machine. Without --in-place they are downloaded."
        )
    if escape_path(address) != address:
        raise AnnotatorError(f"{named} has a backslash that reads like an escaped byte. Name another.")
    return Address.parse(f"{named.scheme}{address[len(named.scheme) :]}")


def is_remote(folder: str) -> bool:
    return is_address(folder)


def parse_stored_folder(folder: str) -> Address | Path:
    """Parse a stored folder. Raises AnnotatorError for a forbidden URL."""
    return Address.parse(folder) if is_remote(folder) else Path(unescape_path(folder))
