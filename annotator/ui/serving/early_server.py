"""Answers for browsers while Streamlit and the app are still being imported.

Imports take most of the time to the first page, and a browser takes as long to load Streamlit's scripts. Here both
happen at once: threads accept connections on the socket that the app gets later. They send Streamlit's HTML page to
browsers with access, and its static files. Everything else that reads waits for the app and is then redirected to it,
with the same address, so that access and data are decided on by the app alone. What writes is to be sent again.

Only for one person on this computer: with members, every answer needs a session.
"""

import socket
import threading
from collections.abc import Callable
from email.message import Message
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer as _TCPServer
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlsplit

from annotator.ui.access.security_headers import build_security_headers
from annotator.ui.access.serving_modes import LOOPBACK_HOSTS
from annotator.ui.serving.streamlit_static import (
    CACHE_HEADERS,
    INDEX_HEADERS,
    MEDIA_TYPES,
    list_preloads,
    list_static_files,
    render_index_page,
)

MAX_CONNECTIONS = 64  # a browser opens six
MAX_BODY_BYTES = 10_000_000  # of a request that waits for the app
REQUEST_SECONDS = 20  # for the head of a request, and for each piece of its body
ACCEPT_POLL_SECONDS = 0.01
READING_METHODS = ("GET", "HEAD")
HTML_TYPE = "text/html; charset=utf-8"
# Shown for a link with a key, which only the app can accept: the browser loads the scripts meanwhile.
OPENING_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Annotator</title>
<link rel="icon" href="data:,"><style>
:root { color-scheme: light dark; font: 16px sans-serif; background: #fcfcfb }
@media (prefers-color-scheme: dark) { :root { background: #161817 } }
body { margin: 40vh auto; text-align: center }
</style>
%s</head><body role="status">Opening the project ...
<script>fetch("_stcore/health").finally(() => location.reload())</script></body></html>
"""


class EarlyServer(ThreadingMixIn, _TCPServer):
    """The threads that answer on a listening socket until `hand_over`.

    Args:
        listening: Bound to a loopback address and listening.
        pages: URL paths of the app's pages that get the HTML page, such as "/annotate".
        has_access: Whether the value of the access cookie is valid.
        cookie_name: Name of the access cookie.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, listening: socket.socket, pages: frozenset[str], has_access: Callable[[str], bool], cookie_name: str
    ):
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()  # the one that TCPServer made
        self.socket, self.pages = listening, pages
        self._has_access, self._cookie_name = has_access, cookie_name
        self.connection_count = 0
        self._counting = threading.Lock()
        self._handed_over = threading.Event()
        threading.Thread(
            target=self.serve_forever, args=[ACCEPT_POLL_SECONDS], name="early server", daemon=True
        ).start()

    def hand_over(self) -> socket.socket:
        """Stop accepting connections, redirect what waits, and return the socket, which stays open."""
        self.shutdown()
        self._handed_over.set()
        return self.socket

    @property
    def is_handed_over(self) -> bool:
        return self._handed_over.is_set()

    def wait_for_app(self) -> None:
        self._handed_over.wait()

    def admits(self, headers: Message) -> bool:
        """Return whether a request comes from an own page, or none, of a browser with access."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return cookie is not None and self._has_access(cookie.value)

    def is_own_host(self, headers: Message) -> bool:
        """Return whether a request names this computer, and no foreign page sent it."""
        port = self.socket.getsockname()[1]
        host, origin = headers.get("host", ""), headers.get("origin")
        return host in {f"{name}:{port}" for name in LOOPBACK_HOSTS} and origin in (None, f"http://{host}")

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, unless there are too many."""
        with self._counting:
            is_free = self.connection_count < MAX_CONNECTIONS
            self.connection_count += is_free
        if is_free:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._counting:
                self.connection_count -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection: the browser asks again, and then the app answers."""


class _Handler(BaseHTTPRequestHandler):
    """One connection: what needs no app is answered, all else waits for it."""

    protocol_version = "HTTP/1.1"
    timeout = REQUEST_SECONDS
    disable_nagle_algorithm = True
    server: EarlyServer

    def do_GET(self) -> None:
        if self.server.is_handed_over or not self.server.is_own_host(self.headers):
            self._redirect_to_app()
            return
        address = urlsplit(self.path)
        file = list_static_files().get(address.path)
        if file is not None:
            self._send(file.read_bytes(), MEDIA_TYPES[file.suffix], CACHE_HEADERS)
        elif address.path in self.server.pages and "key" in (query := parse_qs(address.query)) and self._is_browser():
            self._send((OPENING_PAGE % "\n".join(list_preloads())).encode(), HTML_TYPE, {"cache-control": "no-store"})
        elif address.path in self.server.pages and "image" not in query and self.server.admits(self.headers):
            self._send(render_index_page("").encode(), HTML_TYPE, INDEX_HEADERS)
        else:
            self._redirect_to_app()

    def _is_browser(self) -> bool:
        return self.headers.get("sec-fetch-dest") == "document"  # a program would take the page for the answer

    def _redirect_to_app(self) -> None:
        """Wait for the app, and redirect to the same address on a new connection, which the app accepts.

        What writes waits for nothing. Programs, which do not follow such a redirect, get status 503 and try again, as
        does a page before the app is ready.
        """
        self.close_connection = True
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES or "transfer-encoding" in self.headers:
            return
        self.rfile.read(int(length))  # an answer that overtakes the body may be lost
        is_reading = self.command in READING_METHODS
        if is_reading:
            self.server.wait_for_app()
        if is_reading or (self.server.is_handed_over and "sec-fetch-site" in self.headers):
            self.send_response_only(307)
            self.send_header("location", self.path if self.path.startswith("/") and self.path[1:2] != "/" else "/")
        else:
            self.send_response_only(503)
            self.send_header("retry-after", "1")
        self.send_header("content-length", "0")
        self.send_header("connection", "close")
        self.end_headers()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _redirect_to_app  # noqa: N815 - names of http.server

    def _send(self, content: bytes, media_type: str, headers: dict[str, str]) -> None:
        self.send_response_only(200)
        sent = {"content-type": media_type, "content-length": str(len(content)), **headers}
        for name, value in (sent | build_security_headers(f"ws://{self.headers.get('host')}")).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, as the app logs no requests either."""
