"""Renaming, archiving, backing up a project and moving it to the trash, from the start page.

Whoever is at this computer may; where people are members, the owners of the project. Before a project is moved, its
server is ended. Nothing is deleted: a project that is moved to the trash lies in the folder `.trash` beside the
projects until somebody deletes that; moved back, it is there again. Photos lie elsewhere and are not touched.
"""

import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from filelock import FileLock, Timeout
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AlreadyRunning, AnnotatorError, Forbidden
from annotator.shares import counted
from annotator.snapshot.progress import progress_of
from annotator.store.people import members
from annotator.ui.access.serving_modes import INVITATION, OIDC
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import markup, projects
from annotator.ui.home.backing_up import BackingUp, backups_of
from annotator.ui.home.children import Children, How
from annotator.ui.home.projects import Place
from annotator.ui.home.visitors import Visitor, Visitors
from annotator.ui.routes.guard import FRESH, body_of, error, readable
from annotator.ui.routes.requests import parsed
from annotator.ui.server import is_free

TRASH = ".trash"
WORKER_ENDS = 15.0  # seconds that a worker may take to end after its server

Change = Callable[[bytes, Visitor], dict[str, Any]]


class ProjectRequest(Struct):
    """A project."""

    project: str


class RenameRequest(ProjectRequest):
    """A project and its new name."""

    name: str


class ArchiveRequest(ProjectRequest):
    """A project, and whether it is to be archived or brought back."""

    archived: bool


class TrashRequest(ProjectRequest):
    """A project, and its name as somebody has typed it."""

    typed: str


class Keeping:
    """The page of one project on the start page, and its routes; `places` is the list that the start page shows."""

    def __init__(self, places: list[Place], children: Children, how: How, port: int, visitors: Visitors):
        self._places, self._children, self._how, self._port = places, children, how, port
        self._visitors = visitors
        self._lock = threading.Lock()
        self._backing_up = BackingUp()

    def routes(self, base: str, tokens: Tokens) -> list[Route]:
        """Return the routes; requests need the page's pass. base: the path before them."""

        def guarded(change: Change) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request, visitor: Visitor) -> Response:
                content = await run_sync(change, await body_of(request), visitor)
                return JSONResponse(content, headers=FRESH)

            async def route(request: Request) -> Response:
                visitor = await run_sync(self._visitors.of, dict(request.cookies))
                if tokens.annotator(request.headers.get("x-annotator-token", "")) != pass_of(visitor):
                    return error(401, "This page's pass is missing or has run out. Reload the page.")
                return await readable(answer(request, visitor))

            return route

        async def page(request: Request) -> Response:
            async def answer() -> Response:
                name = request.path_params["name"]
                visitor = await run_sync(self._visitors.of, dict(request.cookies))
                data = await run_sync(self._about, name, visitor)
                data |= {"token": tokens.mint(pass_of(visitor)), "base": base}
                text = markup.script_page(base, f"{name} · Annotator", data, "start/project_page.js")
                return HTMLResponse(text, headers=markup.NO_STORE)

            return await readable(answer())

        changes: dict[str, Change] = {
            "rename": self._rename,
            "archive": self._archive,
            "backup": self._back_up,
            "backup_state": self._backup_state,
            "trash": self._trash,
        }
        api = [Route(f"/start/api/{name}", guarded(change), methods=["POST"]) for name, change in changes.items()]
        return [Route("/start/project/{name}", page), *api]

    def _about(self, name: str, visitor: Visitor) -> dict[str, Any]:
        place = self._place(name, visitor)
        about = ""
        if place.db is not None:
            progress = progress_of(place.db)
            answers = counted(progress.pairs_answered, "answer")
            about = f"{answers} about {counted(progress.images, 'image')}"
        return {
            "name": place.name,
            "path": str(place.path),
            "about": about,
            "trash": str(place.path.parent / TRASH),
            "backups": str(backups_of(place.path)),
            "is_archived": projects.is_archived(place),
            "is_served": place.db is not None,
            "is_team": self._how.is_team,
            "is_oidc": self._how.auth == OIDC,
        }

    def _rename(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Rename a project and its folder; it is served again under the new name.

        Sessions end with the old address: whoever signs in by invitations gets a new one for themselves.
        """
        asked = parsed(body, RenameRequest)
        with self._lock:
            place, name = self._place(asked.project, visitor), asked.name.strip()
            projects.refuse_name(name, [one for one in self._places if one is not place])
            member = next((one.member for one in visitor.listed if one.place is place), None)
            if name != place.name:
                self._move(place, place.path.with_name(name))
                place = next(one for one in self._places if one.name == name)
        if not self._how.is_team:
            return {}
        link = f"{self._how.address}/{name}/"
        if self._how.auth == INVITATION and member is not None and place.db is not None:
            link += f"?invitation={members.new_link(place.db, member.name, member.name)}"
        return {"link": link}

    def _archive(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Fold a project away on the start page, or bring it back; its files stay as they are."""
        asked = parsed(body, ArchiveRequest)
        with self._lock:
            place = self._place(asked.project, visitor)
            if place.db is None:
                raise AnnotatorError(place.trouble)
            place.db.set_setting(projects.ARCHIVED, asked.archived)
            if not self._how.serves(place):
                self._children.remove(place.name)
            elif place.name not in self._children.by_name:
                self._children.add(place)
        return {}

    def _back_up(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Begin to back a project up."""
        project = parsed(body, ProjectRequest).project
        with self._lock:
            self._backing_up.start(self._place(project, visitor).path)
        return self._backup_state(body, visitor)

    def _backup_state(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Return how far the backup is."""
        return asdict(self._backing_up.state(self._place(parsed(body, ProjectRequest).project, visitor).path))

    def _trash(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Move a project to the trash, if its name was typed."""
        asked = parsed(body, TrashRequest)
        with self._lock:
            place = self._place(asked.project, visitor)
            if asked.typed.strip() != place.name:
                raise AnnotatorError(f"Type the name of the project, {place.name}, to move it to the trash.")
            trash = place.path.parent / TRASH
            trash.mkdir(mode=0o700, exist_ok=True)
            self._move(place, trash / f"{place.name}-{time.strftime('%Y%m%d-%H%M%S')}")
        return {}

    def _move(self, place: Place, target: Path) -> None:
        """End the server of a project, move its folder, and serve it there, unless that is the trash.

        If it cannot be moved, it is served as before.
        """
        if target.exists():
            raise AnnotatorError(f"{target} is there already. Choose another name.")
        self._backing_up.refuse_at_work(place.path)
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
                if self._how.serves(moved):
                    self._children.add(moved)

    def _place(self, name: str, visitor: Visitor) -> Place:
        """Return the project of this name. Raises AnnotatorError unless the visitor sees it, Forbidden for no owner."""
        seen = [one.place for one in visitor.listed] if visitor.is_team else self._places
        place = next((one for one in seen if one.name == name), None)
        if place is None:
            raise AnnotatorError(f"There is no project called {name} here any more. Was it renamed? Reload the page.")
        if not visitor.may_keep(place):
            raise Forbidden(f"Only owners of {name} may do this. Ask an owner.")
        return place


def pass_of(visitor: Visitor) -> str:
    """Return for whom the pass of a page is made that may change projects."""
    return f"keeping {visitor.key}"


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
