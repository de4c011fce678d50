"""Web servers, which may be hostile: where a connection may lead, and how much they may send.

Redirects and the addresses that a name server gives are looked at before they are followed: an address outside of this
machine and its network never leads into it. A page of links has an end, a file no more bytes than were stated, and one
whose size is not stated no more than an image or labels have.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotator.errors import AnnotatorError
from annotator.store.locations.addresses import check_host, check_place, redacted

CONNECT_SECONDS, READ_SECONDS, LISTING_SECONDS = 10, 30, 600
LARGEST_MEMBER = 4 << 30  # bytes; an image or a file of labels
LARGEST_PAGE = 64 << 20  # bytes of a page of links: some 500,000 of them
CHUNK = 1 << 20  # bytes


def client(aiohttp: Any, host: str, may_be_own: bool) -> Any:
    """What fsspec makes its session with, for an address of this host.

    Args:
        may_be_own: Whether a connection may lead to this machine or its network.
    """

    class Resolver(aiohttp.DefaultResolver):
        async def resolve(self, host: str, *values: Any, **options: Any) -> Any:
            found: Any = await aiohttp.DefaultResolver.resolve(self, host, *values, **options)
            for place in found:
                check_place(host, place["host"], may_be_own)
            return found

    class Response(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            if getattr(self, "_body", None) is None:
                content = bytearray()
                async for chunk in self.content.iter_any():
                    content += chunk
                    if len(content) > LARGEST_PAGE:
                        self.close()
                        raise AnnotatorError(f"{host} sends a page of more than {LARGEST_PAGE:,} bytes.")
                self._body = bytes(content)
            return self._body

    async def make(**ignored: Any) -> Any:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=Resolver()),
            response_class=Response,
            timeout=aiohttp.ClientTimeout(LISTING_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS),
            trace_configs=[_redirects(aiohttp, host, may_be_own)],
            headers={"Accept-Encoding": "identity"},
        )

    return make


def is_own(host: str) -> bool:
    """Whether a host is this machine or in its network."""
    try:
        check_host(host, may_be_own=False)
    except AnnotatorError:
        return True
    return False


def _redirects(aiohttp: Any, host: str, may_be_own: bool) -> Any:
    """Looks at every redirect before it is followed."""
    config = aiohttp.TraceConfig()

    async def check(session: Any, context: Any, params: Any) -> None:
        target = urlsplit(str(params.response.headers.get("Location", "")))
        if target.scheme and target.scheme not in ("http", "https"):
            raise AnnotatorError(f"{host} redirects to {target.scheme}://, which is not followed.")
        if target.hostname:
            check_host(target.hostname, may_be_own)

    config.on_request_redirect.append(check)
    return config


def download(
    files: Any,
    address: str,
    part: Path,
    size: int,
    is_version: Callable[[Any], bool],
    stop: threading.Event,
    came: Callable[[int], None],
) -> None:
    """Download a file, after what an earlier attempt has brought of it where the server sends the rest of the same.

    Args:
        part: The file to write, or to go on with.
        size: As stated, -1: not.
        is_version: Whether the headers of an answer are those of the wanted version for certain.
        came: Called with the bytes that are there; what it raises ends the download.

    Raises:
        AnnotatorError: It is not as stated, and what fsspec raises.
    """
    start = part.stat().st_size if part.exists() and size >= 0 else 0
    if 0 <= size == start:
        return
    opened = _opened(files, address, start)
    if start and not (opened and opened.r.status == 206 and _begin(opened.r) == start and is_version(opened.r.headers)):
        start = 0
        if opened is None or opened.r.status != 200:
            opened = _opened(files, address, 0)
    try:
        if opened is None or opened.r.status != (206 if start else 200):
            raise AnnotatorError(f"{redacted(address)} answers with status {opened.r.status if opened else 416}.")
        most = size if size >= 0 else LARGEST_MEMBER
        with part.open("ab") as file:
            file.truncate(start)
            while chunk := opened.read(CHUNK):
                start += len(chunk)
                if stop.is_set():
                    raise AnnotatorError("stopped")
                if start > most:
                    file.truncate(0)
                    stated = "it stated" if size >= 0 else "an image or labels have; its size is not stated"
                    raise AnnotatorError(f"{redacted(address)} sends more than the {most:,} bytes that {stated}.")
                came(start)
                file.write(chunk)
    finally:
        if opened:
            opened.close()
    if 0 <= size != start:
        raise ConnectionError(f"{redacted(address)} sent {start:,} of {size:,} bytes")


def _opened(files: Any, address: str, start: int) -> Any:
    """The answer from a byte on; None where the server says that there is no such byte."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        return files.open(address, "rb", block_size=0, size=1, headers=headers, timeout=timeout)
    except aiohttp.ClientResponseError as error:
        if start and error.status == 416:
            return None
        raise


def _begin(answer: Any) -> int:
    """The first byte of a partial answer, -1 where it does not say."""
    unit, _, span = answer.headers.get("Content-Range", "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else -1
