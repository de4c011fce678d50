"""Connection settings: small responses are sent at once, unfinished requests dropped.

Streamlit's socket leaves Nagle's algorithm on, which delays small responses by 40 ms. uvicorn waits for
requests without limit, so unfinished ones could use up all connections.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from annotator.ui.access.websocket_throttle import MAX_MESSAGE_BYTES
from annotator.ui.streamlit_features import set_up_server, use_listening_socket

REQUEST_TIMEOUT_SECONDS = 20.0  # for the head of a request, and for each further piece of its body


class TimeoutProtocol(AutoHTTPProtocol):
    """uvicorn's protocol with a request timeout."""

    # Of uvicorn's two implementations, which share no declared type.
    cycle: Any
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start waiting for the first request of a new connection."""
        super().connection_made(transport)
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        """Process received data, and restart the wait for the rest of the request."""
        super().data_received(data)
        self._watch_request()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop waiting for requests of a closed connection."""
        self._stop_timer()
        super().connection_lost(error)

    def _watch_request(self) -> None:
        cycle = self.cycle
        in_head = cycle is None or cycle.response_complete
        in_body = cycle is not None and not in_head and cycle.more_body
        if self.transport.get_protocol() is not self or not (in_head or in_body):
            self._stop_timer()  # a WebSocket, or a request that has arrived in full
            return
        if not in_head:
            self._stop_timer()  # a large body may be slow as long as it arrives
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


def use_socket(take_socket: Callable[[], socket.socket]) -> None:
    """Make the next server accept connections on a socket that listens already, after `set_up_connections`."""

    def take_without_delay() -> socket.socket:
        listening = take_socket()
        _send_without_delay(listening)
        return listening

    use_listening_socket(take_without_delay)


def set_up_connections(trusted_proxies: Sequence[str] = (), own_log: bool = False) -> None:
    """Configure the next server's connections.

    Args:
        trusted_proxies: Addresses and networks trusted for X-Forwarded headers.
        own_log: Keep uvicorn from configuring logs.
    """
    # uvicorn would believe every program on this machine, unless it is told otherwise.
    options: dict[str, Any] = {"proxy_headers": bool(trusted_proxies), "forwarded_allow_ips": list(trusted_proxies)}
    options |= {"http": TimeoutProtocol, "ws_max_size": MAX_MESSAGE_BYTES}
    if own_log:
        options["log_config"] = None
    set_up_server(_send_without_delay, options)


def _send_without_delay(listening: socket.socket) -> None:
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
