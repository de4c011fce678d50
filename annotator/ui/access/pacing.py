"""Limits on how often one person's pages may run: WebSocket messages wait, so that the answers of others do not.

Each message on a WebSocket of Streamlit's makes a page's script run, 50 to 100 ms in which other threads get little
done. A person, and each of their sockets, has an allowance of runs. Beyond it messages wait; none is lost, and
messages that arrived meanwhile are passed on together, so that Streamlit makes one run of them. So dragging a slider
stays smooth, and a program that sends without end gets no more runs than a person could cause. A socket that does so
for a minute is closed, and its page, if it is one, connects again by itself.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Hashable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotator.ui.access.rate_limit import Allowance

BURST, A_SECOND = 30, 3.0  # runs at once of all pages of one person, and runs regained per second
SOCKET_BURST, SOCKET_A_SECOND = 12, 1.5  # of one page
TOGETHER = 0.05  # seconds; messages within them count as one run
LARGE = 100_000  # bytes of a message; each further LARGE bytes cost as much as a run
MOST_OPEN = 50  # sockets of one person: tabs and windows
MOST_LATE = 100  # messages in a row that had to wait
TRY_LATER = 1013  # of a closed WebSocket (RFC 6455, IANA registry)
COLLECT_AFTER = 10.0  # seconds
LARGEST = 5 << 20  # bytes of a message; uvicorn would take as much as Streamlit sends, 200 MB


class Pacing:
    """The allowances of all WebSockets of the process."""

    def __init__(self) -> None:
        self._people = Allowance(BURST, A_SECOND)
        self._sockets = Allowance(SOCKET_BURST, SOCKET_A_SECOND)
        self._open: Counter[Hashable] = Counter()
        self._collecting: asyncio.TimerHandle | None = None

    async def carry(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, who: Hashable) -> None:
        """Have the application answer a WebSocket of this person, whose messages come no faster than allowed.

        Over MOST_OPEN of a person the WebSocket is closed at once.
        """
        if self._open[who] >= MOST_OPEN:
            await receive()
            await send({"type": "websocket.close", "code": TRY_LATER})
            return
        self._open[who] += 1
        try:
            await app(scope, _Paced(self, who, receive, send), send)
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]

    def wait_for(self, who: Hashable, socket: object, size: int) -> float:
        """Count a message of this many bytes and return the seconds that it has to wait."""
        cost = 1 + size // LARGE
        self._collect_later()
        return max(self._people.charge(who, cost), self._sockets.charge(id(socket), cost))

    def _collect_later(self) -> None:
        """Schedule one garbage collection for all runs. Streamlit would collect after each, and stop all answers."""
        if self._collecting is None:
            self._collecting = asyncio.get_running_loop().call_later(COLLECT_AFTER, self._collect)

    def _collect(self) -> None:
        self._collecting = None
        gc.collect()


class _Paced:
    """The `receive` of one WebSocket, which waits where its person or the socket is over the allowance."""

    def __init__(self, pacing: Pacing, who: Hashable, receive: Receive, send: Send):
        self._pacing, self._who, self._receive, self._send = pacing, who, receive, send
        self._free_until = 0.0
        self._late = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return message
        loop = asyncio.get_running_loop()
        size = _size(message)
        if size < LARGE and loop.time() < self._free_until:
            return message
        seconds = self._pacing.wait_for(self._who, self, size)
        if seconds:
            self._late += 1
            if self._late > MOST_LATE:
                await self._send({"type": "websocket.close", "code": TRY_LATER})
                return {"type": "websocket.disconnect", "code": TRY_LATER}
            await asyncio.sleep(seconds)
        else:
            self._late = 0
        self._free_until = loop.time() + TOGETHER
        return message


def _size(message: Message) -> int:
    content: Any = message.get("bytes") or message.get("text") or b""
    return len(content)
