"""Rate limits on page runs, so that one person's WebSocket messages do not slow others.

Each message runs a page script for 50 to 100 ms. Excess messages wait and are passed on together, and none
is lost. A socket over its allowance for a minute is closed.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Hashable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotator.ui.access.rate_limit import RateLimiter

# runs at once of all pages of one person, and runs regained per second
PERSON_BURST_RUNS, PERSON_RUNS_PER_SECOND = (30, 3.0)
SOCKET_BURST_RUNS, SOCKET_RUNS_PER_SECOND = 12, 1.5  # of one page
MERGE_SECONDS = 0.05  # seconds; messages within them count as one run
LARGE_MESSAGE_BYTES = 100_000  # bytes of a message; each further LARGE_MESSAGE_BYTES cost as much as a run
MAX_SOCKETS_PER_PERSON = 50  # sockets of one person: tabs and windows
MAX_DELAYED_MESSAGES = 100  # messages in a row that had to wait
TRY_AGAIN_LATER_CODE = 1013  # of a closed WebSocket (RFC 6455, IANA registry)
COLLECTION_DELAY_SECONDS = 10.0
MAX_MESSAGE_BYTES = 5 << 20  # bytes of a message; uvicorn would take as much as Streamlit sends, 200 MB


class WebSocketThrottle:
    """The rate limits of WebSocket messages, per person and per socket."""

    def __init__(self) -> None:
        self._people = RateLimiter(PERSON_BURST_RUNS, PERSON_RUNS_PER_SECOND)
        self._sockets = RateLimiter(SOCKET_BURST_RUNS, SOCKET_RUNS_PER_SECOND)
        self._open: Counter[Hashable] = Counter()
        self._collecting: asyncio.TimerHandle | None = None

    async def serve_socket(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, client: Hashable) -> None:
        """Serve a WebSocket, delaying messages over the rate limit, or close it beyond MAX_SOCKETS_PER_PERSON."""
        if self._open[client] >= MAX_SOCKETS_PER_PERSON:
            await receive()
            await send({"type": "websocket.close", "code": TRY_AGAIN_LATER_CODE})
            return
        self._open[client] += 1
        try:
            await app(scope, _ThrottledReceive(self, client, receive, send), send)
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]

    def charge_message(self, client: Hashable, socket: object, size: int) -> float:
        """Count a message of `size` bytes, and return its delay in seconds."""
        cost = 1 + size // LARGE_MESSAGE_BYTES
        self._schedule_collection()
        return max(self._people.charge(client, cost), self._sockets.charge(id(socket), cost))

    def _schedule_collection(self) -> None:
        if self._collecting is None:
            self._collecting = asyncio.get_running_loop().call_later(COLLECTION_DELAY_SECONDS, self._collect_garbage)

    def _collect_garbage(self) -> None:
        self._collecting = None
        gc.collect()


class _ThrottledReceive:
    """The ASGI `receive` of one WebSocket, which delays messages over the rate limits."""

    def __init__(self, pacing: WebSocketThrottle, client: Hashable, receive: Receive, send: Send):
        self._pacing, self._who, self._receive, self._send = pacing, client, receive, send
        self._free_until = 0.0
        self._late = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return message
        loop = asyncio.get_running_loop()
        size = _get_message_size(message)
        if size < LARGE_MESSAGE_BYTES and loop.time() < self._free_until:
            return message
        seconds = self._pacing.charge_message(self._who, self, size)
        if seconds:
            self._late += 1
            if self._late > MAX_DELAYED_MESSAGES:
                await self._send({"type": "websocket.close", "code": TRY_AGAIN_LATER_CODE})
                return {"type": "websocket.disconnect", "code": TRY_AGAIN_LATER_CODE}
            await asyncio.sleep(seconds)
        else:
            self._late = 0
        self._free_until = loop.time() + MERGE_SECONDS
        return message


def _get_message_size(message: Message) -> int:
    content: Any = message.get("bytes") or message.get("text") or b""
    return len(content)
