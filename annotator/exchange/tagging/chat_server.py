"""Client for a server with the OpenAI chat format and images.

Duration and size of answers are limited, redirects and environment proxies ignored. The key is never stored, printed or
sent elsewhere.
"""

import contextlib
import http.client
import ipaddress
import json
import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from annotator.errors import AnnotatorError
from annotator.store.locations.addresses import REDACTION_MARK

MAX_ANSWER_BYTES = 4_000_000
MAX_MESSAGE_CHARS = 300  # characters of what a server says that are shown
MAX_MODELS = 1000  # names of models that are compared with the given one
BUSY_STATUSES = (408, 409, 425, 429, 500, 502, 503, 504)  # the same request may be answered later


class ServerBusyError(Exception):
    """The error of a request that may be repeated after `after` seconds (0 if unknown)."""

    def __init__(self, why: str, after: float = 0.0):
        super().__init__(why)
        self.after = after


class RequestRefusedError(Exception):
    """The error of a request that was refused for good, with its HTTP `status`."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class ChatServer:
    """A chat server and its access.

    Attributes:
        url: Base URL including /v1.
        key: Bearer token, or "".
        timeout: Seconds per request, until its answer is complete.
    """

    url: str
    key: str = field(default="", repr=False)
    timeout: float = 120.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        try:
            is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:  # a port that is no number
            is_whole = False
        if not is_whole or parts.username or parts.query or parts.fragment:
            raise AnnotatorError(
                f"{self.display_url} is no address of a server. Give one such as http://127.0.0.1:11434/v1; a key "
                "belongs into the environment."
            )
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            # Errors of http.client would show the key.
            raise AnnotatorError(
                f"The key for {self.display_url} contains a space, a line break or a character that is not ASCII. "
                "Correct the environment variable that holds it."
            )

    @property
    def display_url(self) -> str:
        parts = urlsplit(self.url)
        return self.url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2]) if "@" in parts.netloc else self.url

    @property
    def is_local(self) -> bool:
        """Return whether the server is on this machine, so that images stay here."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def list_models(self) -> list[str]:
        """Return the model names, or [] if unknown. Raises as `ask`."""
        found, _ = self._request_json("GET", "/models", None)
        listed = found.get("data")
        models = listed[:MAX_MODELS] if isinstance(listed, list) else []
        ids = [one.get("id") for one in models if isinstance(one, dict)]
        return [self._shorten(name) for name in ids if isinstance(name, str)]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request for a chat answer, and return {"text", "tokens"}, tokens with log probabilities.

        Raises:
            ServerBusyError: Retry later.
            RequestRefusedError: Refused, or invalid answer.
        """
        found, said = self._request_json("POST", "/chat/completions", request)
        try:
            choice = found["choices"][0]
            text = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise RequestRefusedError(200, f"its answer is not a chat completion: {said}") from None
        if not isinstance(text, str):
            text = ""
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        is_list = isinstance(tokens, list) and all(isinstance(token, dict) for token in tokens)
        return {"text": text, "tokens": tokens if is_list else []}

    def _request_json(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
        """Return the JSON object of an answer, and its beginning for an error message."""
        status, headers, content = self._send(method, path, body)
        said = self._shorten(_parse_error_message(content))
        if status in BUSY_STATUSES:
            raise ServerBusyError(f"it answers {status}: {said}", _parse_retry_after(headers.get("retry-after", "")))
        if status != 200:
            raise RequestRefusedError(status, f"it answers {status}: {said}")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise RequestRefusedError(status, f"its answer is not JSON: {said}") from None
        if not isinstance(found, dict):
            raise RequestRefusedError(status, f"its answer is no JSON object: {said}")
        return found, said

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        context = ssl.create_default_context() if parts.scheme == "https" else None
        if context:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
        headers = {"Accept": "application/json", "Connection": "close"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            with _connect_until(connection, context, time.monotonic() + self.timeout):
                connection.request(method, parts.path.rstrip("/") + path, content, headers)
                answer = connection.getresponse()
                read = answer.read(MAX_ANSWER_BYTES + 1)
        except TimeoutError:
            raise ServerBusyError(f"its answer was not complete within {self.timeout:g} s") from None
        except ssl.SSLError as error:
            raise RequestRefusedError(0, f"its certificate is not accepted ({self._shorten(str(error))})") from None
        except socket.gaierror:
            raise ServerBusyError(f"no machine is called {host}") from None
        except (OSError, http.client.HTTPException) as error:
            said = self._shorten(str(error) or type(error).__name__)
            raise ServerBusyError(f"the connection failed ({said})") from None
        finally:
            connection.close()
        if len(read) > MAX_ANSWER_BYTES:
            raise RequestRefusedError(answer.status, f"its answer has over {MAX_ANSWER_BYTES:,} bytes")
        if answer.length:  # of the announced bytes so many are missing
            raise ServerBusyError("the connection was cut in the middle of an answer")
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, read

    def _shorten(self, text: str) -> str:
        """Return one line of what a server sent, without the key."""
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        return self._mask_key(" ".join(plain.split()))[:MAX_MESSAGE_CHARS] or "nothing"

    def _mask_key(self, text: str) -> str:
        """Remove the key, which a server may repeat in errors that are stored and shown."""
        for written in (self.key, json.dumps(self.key)[1:-1], repr(self.key)[1:-1]) if self.key else ():
            text = text.replace(written, REDACTION_MARK)
        return text


@contextlib.contextmanager
def _connect_until(
    connection: http.client.HTTPConnection, context: ssl.SSLContext | None, deadline: float
) -> Iterator[None]:
    """Connect for the block, and end the connection with TimeoutError at a time of time.monotonic().

    A socket's timeout limits only each read.
    """
    http.client.HTTPConnection.connect(connection)  # without TLS, whose handshake the deadline includes
    watched, is_over = connection.sock.dup(), threading.Event()

    def end_connection() -> None:
        is_over.set()
        with contextlib.suppress(OSError):  # the server has closed it already
            watched.shutdown(socket.SHUT_RDWR)  # ends the reads and writes of all threads, unlike close

    timer = threading.Timer(max(deadline - time.monotonic(), 0.0), end_connection)
    timer.start()
    try:
        if context:
            connection.sock = context.wrap_socket(connection.sock, server_hostname=connection.host)
        yield
    except (OSError, http.client.HTTPException):
        if not is_over.is_set():
            raise
    finally:
        timer.cancel()
        timer.join()
        watched.close()
    if is_over.is_set():
        raise TimeoutError


def _parse_error_message(content: bytes) -> str:
    text = content[:20_000].decode("utf-8", "replace")
    try:
        found = json.loads(text)
        error = found.get("error", found) if isinstance(found, dict) else found
        return str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError):
        return text


def _parse_retry_after(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:  # a date, or nonsense
        return 0.0
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), 60.0)
