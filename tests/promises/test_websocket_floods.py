"""Messages of WebSockets: a flood of them holds up nobody else, a person's hands never notice, and none is lost."""

import asyncio
import itertools
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import websockets
import websockets.sync.client
from harness import socket_flood
from harness.person import served_photos
from harness.served import Served
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg

from annotator.ui.access import websocket_throttle
from annotator.ui.access.rate_limit import RateLimiter
from annotator.ui.access.websocket_throttle import MAX_MESSAGE_BYTES, TRY_AGAIN_LATER_CODE, WebSocketThrottle

FLOOD, A_SECOND = 600, 200


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with served_photos(tmp_path_factory.mktemp("pacing"), 6, ("fox", "heron")) as started:
        yield started


def page_of(served: Served) -> websockets.sync.client.ClientConnection:
    """The socket of an open page."""
    address = f"ws://127.0.0.1:{served.port}/_stcore/stream"
    cookie = {"cookie": served.headers["cookie"]}
    options = {"subprotocols": ["streamlit"], "max_size": None, "ping_interval": None, "proxy": None}
    return websockets.sync.client.connect(address, origin=served.address, additional_headers=cookie, **options)


def rerun(page: str) -> bytes:
    message = BackMsg()
    message.rerun_script.page_name = page
    return message.SerializeToString()


@pytest.mark.slow
@pytest.mark.process
def test_server_answers_other_requests_while_one_page_floods_its_websocket(served):
    is_over, sent = threading.Event(), []
    with page_of(served) as page:

        def send() -> None:
            for _ in range(FLOOD):
                page.send(rerun("progress"))
                sent.append(1)
                is_over.wait(1 / A_SECOND)
            is_over.set()

        sending = threading.Thread(target=send)
        sending.start()
        answered = 0
        while not is_over.is_set() and answered < 20:
            assert served.get("/api/thumb/1")[0] == 200
            answered += 1
        is_over.set()
        sending.join()
    assert answered == 20, f"{answered} answers while {len(sent)} messages came"


@pytest.mark.process
@pytest.mark.slow
def test_owner_is_served_while_a_guest_floods_twenty_websockets(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_flood, "SECONDS", 8.0)
    answers, runs, sent = socket_flood.measured(tmp_path, 20, 20)
    assert sent == 20 * 20 * 8
    assert len(answers) > 20 and len(runs) > 3, "others had no answer before it was over"


@pytest.mark.process
def test_oversized_websocket_message_closes_the_socket(served):
    with page_of(served) as page, pytest.raises(websockets.ConnectionClosedError) as closed:
        page.send(bytes(MAX_MESSAGE_BYTES + 1))
        while True:
            page.recv()
    # Where the server closes while much of it is on its way, the reason may be lost.
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009


def ran(coroutine: Coroutine) -> Any:
    """What it gives, in an event loop of its own: that of the tests' browser may be running in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class App:
    """An application that takes messages until its socket ends, and remembers when which came."""

    def __init__(self):
        self.got, self.ended = [], None

    async def __call__(self, scope, receive, send):
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.ended = message["code"]
                return
            self.got.append((asyncio.get_running_loop().time(), message["bytes"]))


def carried(pace: WebSocketThrottle, who: object, messages: list[bytes]) -> tuple[App, list[Message]]:
    """What the application got of these messages, all there at once, and what was sent to the other side."""
    app, sent, waiting = App(), [], [*messages]

    async def receive() -> dict:
        await asyncio.sleep(0)
        if waiting:
            return {"type": "websocket.receive", "bytes": waiting.pop(0)}
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Message) -> None:
        sent.append(message)

    ran(pace.serve_socket(app, {"type": "websocket"}, receive, send, who))
    return app, sent


def test_throttled_websocket_messages_are_delivered_together_and_in_order(monkeypatch):
    for name, value in (("SOCKET_BURST_RUNS", 1), ("SOCKET_RUNS_PER_SECOND", 20), ("MERGE_SECONDS", 0.01)):
        monkeypatch.setattr(websocket_throttle, name, value)
    messages = [b"%d" % number for number in range(2000)]
    app, _ = carried(WebSocketThrottle(), "Ann", messages)
    assert [content for _, content in app.got] == messages and app.ended == 1000
    times = [at for at, _ in app.got]
    groups = 1 + sum(later - at > 0.02 for at, later in itertools.pairwise(times))
    assert groups < 100, "each message waited by itself"


def test_socket_with_too_many_delayed_messages_is_closed_with_try_again_later(monkeypatch):
    for name, value in (
        ("SOCKET_BURST_RUNS", 1),
        ("SOCKET_RUNS_PER_SECOND", 25),
        ("MERGE_SECONDS", 0),
        ("MAX_DELAYED_MESSAGES", 20),
    ):
        monkeypatch.setattr(websocket_throttle, name, value)
    app, sent = carried(WebSocketThrottle(), "Ann", [b"x"] * 100)
    assert 21 <= len(app.got) < 100 and app.ended == TRY_AGAIN_LATER_CODE
    assert sent == [{"type": "websocket.close", "code": TRY_AGAIN_LATER_CODE}]


def test_websocket_limit_is_shared_by_the_sockets_of_a_member_but_not_between_members():
    pace = WebSocketThrottle()
    sockets = [object() for _ in range(20)]

    async def waits(who: str) -> list[float]:
        return [pace.charge_message(who, socket, 20) for _ in range(10) for socket in sockets]

    hasty, other = ran(waits("hasty")), ran(waits("other"))
    for seconds in (hasty, other):
        assert sum(not wait for wait in seconds) in range(
            websocket_throttle.PERSON_BURST_RUNS, websocket_throttle.PERSON_BURST_RUNS + 3
        )
        assert seconds[-1] > 10


def test_large_websocket_message_counts_as_several_for_the_rate_limit(monkeypatch):
    pace = WebSocketThrottle()

    async def wait(size: int) -> float:
        return pace.charge_message("Ann", pace, size)

    assert ran(wait(1000)) == 0
    assert ran(wait(MAX_MESSAGE_BYTES)) > 5


def test_socket_limit_per_member_counts_only_open_sockets(monkeypatch):
    monkeypatch.setattr(websocket_throttle, "MAX_SOCKETS_PER_PERSON", 2)
    pace, over = WebSocketThrottle(), asyncio.Event()
    closed: list[int] = []

    async def until_over(scope, receive, send) -> None:
        await over.wait()

    async def nothing() -> dict:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        closed.append(message["code"])

    async def play() -> None:
        opened = [asyncio.create_task(pace.serve_socket(until_over, {}, nothing, send, "Ann")) for _ in range(3)]
        opened.append(asyncio.create_task(pace.serve_socket(until_over, {}, nothing, send, "Bea")))
        await asyncio.sleep(0)
        assert closed == [TRY_AGAIN_LATER_CODE]
        over.set()
        await asyncio.gather(*opened)
        await pace.serve_socket(until_over, {}, nothing, send, "Ann")
        assert closed == [TRY_AGAIN_LATER_CODE]

    ran(play())


def test_rate_limiter_delays_accumulate_separately_per_member():
    owed = RateLimiter(burst=2, per_second=10)
    assert [owed.charge("Ann", 1), owed.charge("Ann", 1)] == [0, 0]
    assert 0 < owed.charge("Ann", 5) <= 0.5 < owed.charge("Ann", 5) <= 1.0
    assert owed.charge("Bea", 1) == 0
