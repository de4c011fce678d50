"""Connections: small answers leave at once, and a request that is never finished is not waited for.

Streamlit binds its socket without naming TCP as the protocol, and asyncio then leaves Nagle's algorithm on for every
connection: the second half of a small answer waited for the browser to acknowledge the first, 40 ms on Linux. And
uvicorn waits for the rest of a request for ever, so a few hundred of them would hold all connections there are.
"""

import asyncio
import functools
import socket

from streamlit.web.server.starlette import starlette_server
from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE = 20.0  # seconds for the head of a request, and for each further piece of its body


class Patient(AutoHTTPProtocol):
    """uvicorn's protocol, with an end to waiting for the rest of a request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, error: Exception | None) -> None:
        self._forget()
        super().connection_lost(error)

    def _look(self) -> None:
        cycle = self.cycle
        in_head = cycle is None or cycle.response_complete
        if self.transport.get_protocol() is not self or not (in_head or cycle.more_body):
            self._forget()  # a WebSocket by now, or a request that is here in full
            return
        if not in_head:
            self._forget()  # a body may be large and its way slow, as long as it moves
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


def set_up_connections() -> None:
    """Both for the connections of the server that is started next."""
    # Not Streamlit's public interface: where a later version has it no more, answers are slower, and half-sent requests
    # are waited for.
    bind = getattr(starlette_server, "_bind_socket", None)
    chosen = getattr(starlette_server, "_get_uvicorn_config_kwargs", None)
    if bind is None or chosen is None or hasattr(bind, "__wrapped__"):
        return

    @functools.wraps(bind)
    def bound(*args: object, **options: object) -> socket.socket:
        listening = bind(*args, **options)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        return listening

    starlette_server._bind_socket = bound
    starlette_server._get_uvicorn_config_kwargs = lambda: chosen() | {"http": Patient}
