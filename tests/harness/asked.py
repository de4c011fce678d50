"""The routes without a server: one request in, status and bytes out, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from anyio import sleep_forever
from anyio.from_thread import start_blocking_portal
from starlette.applications import Starlette

from annotator.ui.access import served_project
from annotator.ui.route_table import load_routes


class Asked:
    """The routes of a project, asked as a browser would."""

    def __init__(self, portal, project: Path):
        served_project.open_project(project)
        self.portal, self.app = portal, Starlette(routes=load_routes())
        self.token = served_project.tokens().mint("Ann")

    def send(self, method: str, path: str, body: bytes = b"", token: str | None = None) -> tuple[int, bytes]:
        """Status and body of the answer; raises what the app raises."""
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "scheme": "http", "server": ("127.0.0.1", 1),
            "headers": [(b"x-annotator-token", (self.token if token is None else token).encode())],
        }  # fmt: skip
        sent: list[dict] = []
        waiting = [{"type": "http.request", "body": body}]

        async def receive() -> dict:
            if not waiting:
                await sleep_forever()  # the browser stays
            return waiting.pop()

        async def collect(message: dict) -> None:
            sent.append(message)

        self.portal.call(self.app, scope, receive, collect)
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])

    def post(self, path: str, body: object, token: str | None = None) -> tuple[int, dict]:
        """Status and JSON of a POST; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        status, answer = self.send("POST", path, data, token)
        return status, msgspec.json.decode(answer)


@contextmanager
def asked(project: Path) -> Iterator[Asked]:
    """The routes of this project for as long as the block lasts."""
    with start_blocking_portal() as portal:
        yield Asked(portal, project)
