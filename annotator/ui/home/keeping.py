"""Renaming a project and moving it to the trash, from the start page of one's own computer.

Its server is ended first. Nothing is deleted: a project that is moved to the trash lies in the folder `.trash` beside
the projects until somebody deletes that; moved back, it is there again. Photos lie elsewhere and are not touched.
"""

import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio.to_thread import run_sync
from filelock import FileLock, Timeout
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.shares import counted
from annotator.snapshot.progress import progress_of
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import markup, projects
from annotator.ui.home.children import Children
from annotator.ui.home.projects import Place
from annotator.ui.routes.guard import FRESH, body_of, error, readable
from annotator.ui.routes.requests import parsed
from annotator.ui.server import is_free

TRASH = ".trash"
WORKER_ENDS = 15.0  # seconds that a worker may take to end after its server
PASS = "keeping"  # for what the pass of the page is made


class RenameRequest(Struct):
    """A project and its new name."""

    project: str
    name: str


class TrashRequest(Struct):
    """A project, and its name as somebody has typed it."""

    project: str
    typed: str


class Keeping:
    """The page of one project on the start page, and its routes; `places` is the list that the start page shows."""

    def __init__(self, places: list[Place], children: Children, port: int):
        self._places, self._children, self._port = places, children, port
        self._lock = threading.Lock()

    def routes(self, tokens: Tokens) -> list[Route]:
        """Return the routes; requests need the page's pass."""

        def guarded(change: Callable[[bytes], None]) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                await run_sync(change, await body_of(request))
                return JSONResponse({}, headers=FRESH)

            async def route(request: Request) -> Response:
                if tokens.annotator(request.headers.get("x-annotator-token", "")) != PASS:
                    return error(401, "This page's pass is missing or has run out. Reload the page.")
                return await readable(answer(request))

            return route

        async def page(request: Request) -> Response:
            async def answer() -> Response:
                name = request.path_params["name"]
                data = await run_sync(self._about, name)
                text = markup.script_page(
                    "", f"{name} · Annotator", data | {"token": tokens.mint(PASS)}, "start/keeping.js"
                )
                return HTMLResponse(text, headers=markup.NO_STORE)

            return await readable(answer())

        return [
            Route("/start/project/{name}", page),
            Route("/start/api/rename", guarded(self._rename), methods=["POST"]),
            Route("/start/api/trash", guarded(self._trash), methods=["POST"]),
        ]

    def _about(self, name: str) -> dict[str, str]:
        place = self._place(name)
        about = ""
        if place.db is not None:
            progress = progress_of(place.db)
            answers = counted(progress.pairs_answered, "answer")
            about = f"{answers} about {counted(progress.images, 'image')}"
        return {"name": place.name, "path": str(place.path), "about": about, "trash": str(place.path.parent / TRASH)}

    def _rename(self, body: bytes) -> None:
        """Rename a project and its folder; it is served again under the new name."""
        asked = parsed(body, RenameRequest)
        with self._lock:
            place, name = self._place(asked.project), asked.name.strip()
            projects.refuse_name(name, [one for one in self._places if one is not place])
            if name == place.name:
                return
            self._move(place, place.path.with_name(name))

    def _trash(self, body: bytes) -> None:
        """Move a project to the trash, if its name was typed."""
        asked = parsed(body, TrashRequest)
        with self._lock:
            place = self._place(asked.project)
            if asked.typed.strip() != place.name:
                raise AnnotatorError(f"Type the name of the project, {place.name}, to move it to the trash.")
            trash = place.path.parent / TRASH
            trash.mkdir(mode=0o700, exist_ok=True)
            self._move(place, trash / f"{place.name}-{time.strftime('%Y%m%d-%H%M%S')}")

    def _move(self, place: Place, target: Path) -> None:
        """End the server of a project, move its folder, and serve it there, unless that is the trash.

        If it cannot be moved, it is served as before.
        """
        if target.exists():
            raise AnnotatorError(f"{target} is there already. Choose another name.")
        self._places.remove(place)
        self._children.remove(place.name)
        where = place.path
        try:
            if place.db is not None:
                _refuse_served(place)
            where = place.path.rename(target)
        finally:
            if where.parent.name != TRASH:
                moved = projects.opened(where)
                self._places.append(moved)
                self._places.sort(key=lambda one: one.path)
                projects.give_ports(self._places, self._port + 1, is_free)
                if moved.db is not None:
                    self._children.add(moved)

    def _place(self, name: str) -> Place:
        place = next((one for one in self._places if one.name == name), None)
        if place is None:
            raise AnnotatorError(f"There is no project called {name} here any more. Was it renamed? Reload the page.")
        return place


def _refuse_served(place: Place) -> None:
    """Raise AlreadyRunning if another program serves a project or trains its model: it would lose its folder.

    The worker of the server that was just ended takes some seconds to end.
    """
    assert place.db is not None
    try:
        with FileLock(place.db.paths.server_lock, timeout=0), FileLock(place.db.paths.worker_lock, timeout=WORKER_ENDS):
            pass
    except Timeout as problem:
        raise AlreadyRunning(
            f"{place.name} is in use by another program. End it first (Ctrl+C there), then try again."
        ) from problem
