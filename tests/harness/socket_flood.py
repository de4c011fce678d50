"""How long others wait while one person's sockets send without end.

Run `PYTHONPATH=tests python tests/harness/socket_flood.py 1x20 1x200 20x20`.

Each phase is SOCKETSxMESSAGES_A_SECOND, 15 seconds long, on a server of its own with 2,000 images: a guest's sockets
run Progress, an owner asks for an image's facts every 50 ms and runs Progress twice a second. With --alone first,
without `--auth`, where all of them are the same person's. Prints milliseconds: the median, the 95th percentile and the
worst. tests/promises/test_websocket_floods.py holds what must not happen.
"""

import asyncio
import http.client
import json
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from annotator.roles import Role
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.access_keys import build_request_headers, cookie_name
from annotator.ui.access.tokens import Tokens
from harness import projects
from harness.child_processes import free_port, run_module, wait_for

SECONDS = 15.0  # seconds for which the sockets send where nothing holds them up
MOST_SECONDS = 300.0  # seconds after which they give up
MESSAGE = BackMsg()
MESSAGE.rerun_script.page_name = "progress"
RERUN = MESSAGE.SerializeToString()


def socket(port: int, cookie: str) -> websockets.connect:
    """The socket of a page, to be opened."""
    here = f"127.0.0.1:{port}"
    options = {"subprotocols": ["streamlit"], "max_size": None, "ping_interval": None, "proxy": None}
    headers = {"cookie": cookie}
    address = f"ws://{here}/_stcore/stream"
    return websockets.connect(address, origin=f"http://{here}", additional_headers=headers, open_timeout=300, **options)


async def send_messages(port: int, cookie: str, count: int, a_second: float, sent: list[int]) -> None:
    """Send so many messages, that often, whoever reads them or closes the socket."""
    end = time.monotonic() + MOST_SECONDS
    while count and (at := time.monotonic()) < end:
        with suppress(websockets.ConnectionClosed, TimeoutError, OSError, websockets.InvalidStatus):
            async with socket(port, cookie) as page:
                reading = asyncio.create_task(_read(page))
                while count and at < end:
                    await asyncio.wait_for(page.send(RERUN), max(0.1, end - time.monotonic()))
                    sent.append(1)
                    count -= 1
                    at += 1 / a_second
                    await asyncio.sleep(max(0.0, at - time.monotonic()))
                reading.cancel()


async def _read(page: websockets.ClientConnection) -> None:
    async for _ in page:
        pass


async def run_pages(port: int, cookie: str, waits: list[float], is_over: threading.Event) -> None:
    """Run a page twice a second until it is over; how long each run took."""
    async with socket(port, cookie) as page:
        while not is_over.is_set():
            at = time.monotonic()
            await page.send(RERUN)
            said = ForwardMsg()
            while said.WhichOneof("type") != "script_finished":
                said.ParseFromString(await page.recv())
            waits.append(time.monotonic() - at)
            await asyncio.sleep(0.5)


def ask(port: int, headers: dict[str, str], waits: list[float], is_over: threading.Event) -> None:
    """Ask for an image's facts every 50 ms until it is over; how long each answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    while not is_over.is_set():
        at = time.monotonic()
        connection.request("POST", "/api/items", json.dumps({"images": [1]}), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        waits.append(time.monotonic() - at)
        time.sleep(0.05)


def measured(folder: Path, sockets: int, a_second: float, is_team: bool = True) -> tuple[list[float], list[float], int]:
    """One phase: the seconds of each answer and of each run of others, and how many messages the sockets sent."""
    db, port = projects.make_project(folder, 2000, 20), free_port()
    words = ["--auth", "invitation"] if is_team else []
    with run_module("annotator", "serve", db.paths.project, "--no-browser", "--port", port, *words):
        wait_for(lambda: _is_up(port), "the server")
        return _flooded(db, port, sockets, a_second, is_team)


def _flooded(
    db: Database, port: int, sockets: int, a_second: float, is_team: bool
) -> tuple[list[float], list[float], int]:
    headers = build_request_headers(db.paths.project, f"http://127.0.0.1:{port}", "Ann", is_member=is_team)
    cookies = [headers["cookie"]] * 2
    if is_team:
        known = {member.name: member for member in members.load_members(db)}
        roles = (("Ann", Role.OWNER), ("Guest", Role.GUEST))
        both = [known.get(name) or members.add(db, name, role, "flood") for name, role in roles]
        session = Tokens(db.paths.secret).create_session_cookie
        cookies = [f"{cookie_name(port)}={session(port, member.id)}" for member in both]
        time.sleep(1.5)  # for which members are not looked up again
    sent: list[int] = []
    answers: list[float] = []
    runs: list[float] = []
    is_over = threading.Event()

    async def flood() -> None:
        count = round(SECONDS * a_second)
        try:
            await asyncio.gather(*(send_messages(port, cookies[1], count, a_second, sent) for _ in range(sockets)))
        finally:
            is_over.set()

    threads = [
        threading.Thread(target=asyncio.run, args=[flood()]),
        threading.Thread(target=ask, args=[port, headers | {"cookie": cookies[0]}, answers, is_over]),
        threading.Thread(target=asyncio.run, args=[run_pages(port, cookies[0], runs, is_over)]),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, runs, len(sent)


def _in_words(waits: list[float]) -> str:
    some = sorted(1000 * wait for wait in waits)
    return f"{some[len(some) // 2]:.0f} {some[int(0.95 * len(some))]:.0f} {some[-1]:.0f} ms ({len(some)})"


def main(phases: list[str]) -> None:
    """Measure each of these phases."""
    is_team = "--alone" not in phases
    for phase in [phase for phase in phases if phase != "--alone"]:
        sockets, a_second = phase.split("x")
        with TemporaryDirectory() as folder:
            answers, runs, sent = measured(Path(folder), int(sockets), float(a_second), is_team)
            print(f"{phase}: answers {_in_words(answers)}; runs {_in_words(runs)}; {sent} messages", flush=True)


def _is_up(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with suppress(OSError):
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
