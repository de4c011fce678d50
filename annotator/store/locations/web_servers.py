"""Defenses against hostile web servers: allowed connections and size limits.

Every socket is checked, so no name server or redirect leads into the local network. Environment proxies are ignored.
Files may not exceed their stated size, or MAX_MEMBER_BYTES.
"""

import socket
import threading
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback
from annotator.store.locations.addresses import check_ip_address, redact_address

CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, LISTING_TIMEOUT_SECONDS = 10, 30, 600
MAX_MEMBER_BYTES = 4 << 30  # bytes; an image or a file of labels
MAX_PAGE_BYTES = 64 << 20  # bytes of a page of links: some 500,000 of them
CHUNK_BYTES = 1 << 20
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 10


def build_client_factory(aiohttp: Any, host: str, may_be_own: bool) -> Any:
    """Return the function that creates fsspec's HTTP session for a host (`may_be_own`: local networks are allowed)."""

    def connecting(info: Any) -> socket.socket:
        """Check an IP address before the connection and return an unconnected socket."""
        family, kind, protocol, _, place = info
        check_ip_address(str(place[0]), str(place[0]), may_be_own)
        return socket.socket(family, kind, protocol)

    class Resolver(aiohttp.DefaultResolver):
        """A DNS resolver that raises AnnotatorError for forbidden IP addresses."""

        async def resolve(self, host: str, *values: Any, **options: Any) -> Any:
            found: Any = await aiohttp.DefaultResolver.resolve(self, host, *values, **options)
            for place in found:
                check_ip_address(host, place["host"], may_be_own)
            return found

    class Response(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            if getattr(self, "_body", None) is None:
                content = bytearray()
                async for chunk in self.content.iter_any():
                    content += chunk
                    if len(content) > MAX_PAGE_BYTES:
                        self.close()
                        raise AnnotatorError(f"{host} sends a page of more than {MAX_PAGE_BYTES:,} bytes.")
                self._body = bytes(content)
            return self._body

    async def make(**ignored: Any) -> CheckedSession:
        return CheckedSession(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=Resolver(), socket_factory=connecting),
                response_class=Response,
                timeout=aiohttp.ClientTimeout(
                    LISTING_TIMEOUT_SECONDS, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=READ_TIMEOUT_SECONDS
                ),
                headers={"Accept-Encoding": "identity"},
                trust_env=False,  # a proxy would look names up by itself, and connect where it likes
            )
        )

    return make


class CheckedSession:
    """A substitute for aiohttp's session with the methods fsspec needs, which checks each redirect."""

    def __init__(self, session: Any):
        self._session = session
        self._connector = session.connector  # fsspec closes it where its loop has ended

    def get(self, address: Any, **options: Any) -> "_PendingAnswer":
        """Send a GET request. The result supports `await` and `async with`."""
        return _PendingAnswer(self._request("GET", address, **options))

    def head(self, address: Any, **options: Any) -> "_PendingAnswer":
        """Send a HEAD request. The result supports `await` and `async with`."""
        return _PendingAnswer(self._request("HEAD", address, **options))

    async def close(self) -> None:
        await self._session.close()

    async def _request(self, method: str, address: Any, **options: Any) -> Any:
        options["allow_redirects"] = False
        place = _to_url(address)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._session.request(method, place, **options)
            if answer.status not in REDIRECT_STATUSES:
                return answer
            answer.close()
            place = _follow_redirect(place, answer.headers.get("Location", ""))
        raise AnnotatorError(f"{place.host} redirects more than {MAX_REDIRECTS} times.")


class _PendingAnswer:
    def __init__(self, asked: Coroutine[Any, Any, Any]):
        self._asked = asked

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._asked.__await__()

    async def __aenter__(self) -> Any:
        self._answer = await self._asked
        return self._answer

    async def __aexit__(self, *error: object) -> None:
        await self._answer.__aexit__(*error)


def _follow_redirect(place: Any, named: str) -> Any:
    try:
        target = place.join(_to_url(named))
    except ValueError:
        raise AnnotatorError(f"{place.host} redirects to what is no address.") from None
    if target.scheme not in ("http", "https"):
        raise AnnotatorError(f"{place.host} redirects to {target.scheme}://, which is not followed.")
    if not named or not target.host:
        raise AnnotatorError(f"{place.host} redirects without an address.")
    if target.origin() == place.origin():
        return target.with_user(place.user).with_password(place.password)
    return target


def _to_url(address: Any) -> Any:
    from yarl import URL  # comes with aiohttp

    return URL(address)


def is_own_host(host: str) -> bool:
    """Return whether all addresses of a host are local. Mixed addresses must not open the local network."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(_is_own_address(host, place) for place in found)


def _is_own_address(host: str, place: str) -> bool:
    try:
        check_ip_address(host, place, may_be_own=False)
    except AnnotatorError:
        return True
    return False


def download(
    files: Any,
    address: str,
    part: Path,
    size: int,
    is_version: Callable[[Any], bool],
    stop: threading.Event,
    on_progress: ProgressCallback,
) -> None:
    """Download a file, resuming an earlier attempt if the server sends the rest of the same version.

    Args:
        part: File to write or resume.
        size: Stated size in bytes, -1 if unknown.
        is_version: Returns whether response headers certainly belong to the wanted version.
        stop: Event that ends the download with AnnotatorError.
        on_progress: Called with (bytes received so far, bytes). Its exceptions end the download.

    Raises:
        AnnotatorError: The file is not as stated, or the server refuses it. fsspec's errors pass through.
    """
    start = part.stat().st_size if part.exists() and size >= 0 else 0
    if 0 <= size == start:
        return
    opened = _open_at(files, address, start)
    if start and not (
        opened and opened.r.status == 206 and _parse_first_byte(opened.r) == start and is_version(opened.r.headers)
    ):
        start = 0
        if opened is None or opened.r.status != 200:
            opened = _open_at(files, address, 0)
    try:
        if opened is None or opened.r.status != (206 if start else 200):
            raise AnnotatorError(f"{redact_address(address)} answers with status {opened.r.status if opened else 416}.")
        most = size if size >= 0 else MAX_MEMBER_BYTES
        with part.open("ab") as file:
            file.truncate(start)
            while chunk := opened.read(CHUNK_BYTES):
                start += len(chunk)
                if stop.is_set():
                    raise AnnotatorError("stopped")
                if start > most:
                    file.truncate(0)
                    stated = "it stated" if size >= 0 else "an image or labels have; its size is not stated"
                    raise AnnotatorError(f"{redact_address(address)} sends more than the {most:,} bytes that {stated}.")
                on_progress(start, max(size, 0))
                file.write(chunk)
    finally:
        if opened:
            opened.close()
    if 0 <= size != start:
        raise ConnectionError(f"{redact_address(address)} sent {start:,} of {size:,} bytes")


def _open_at(files: Any, address: str, start: int) -> Any:
    """Request a file from byte `start` on and return the response, or None if out of range."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=READ_TIMEOUT_SECONDS)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        return files.open(address, "rb", block_size=0, size=1, headers=headers, timeout=timeout)
    except aiohttp.ClientResponseError as error:
        if start and error.status == 416:
            return None
        raise


def _parse_first_byte(answer: Any) -> int:
    unit, _, span = answer.headers.get("Content-Range", "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else -1
