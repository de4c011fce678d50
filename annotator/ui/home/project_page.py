"""Renaming, archiving, backup and trash of a project, for owners or the local user.

Nothing is deleted: trashed projects move to `.trash`.
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
from annotator.humanize import format_count
from annotator.snapshot.project_progress import load_progress
from annotator.store.people import members
from annotator.ui.access.serving_modes import INVITATION, OIDC
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import hosted_projects, markup
from annotator.ui.home.backup_runner import BackupRunner, get_backups_folder
from annotator.ui.home.hosted_projects import HostedProject
from annotator.ui.home.project_servers import ProjectServers, ServingOptions
from annotator.ui.home.visitors import Visitor, Visitors
from annotator.ui.server import is_port_free
from annotator.ui.shared.guard import NO_STORE_HEADERS, answer_or_error, build_error_response, read_body
from annotator.ui.shared.requests import parse_body

TRASH_FOLDER_NAME = ".trash"
WORKER_STOP_SECONDS = 15.0  # that a worker may take to end after its server

ChangeHandler = Callable[[bytes, Visitor], dict[str, Any]]


class ProjectRequest(Struct):
    project: str


class RenameRequest(ProjectRequest):
    """The request body with a project's new name."""

    name: str


class ArchiveRequest(ProjectRequest):
    archived: bool


class TrashRequest(ProjectRequest):
    """The request body to trash a project, with its name typed as confirmation."""

    typed: str


class ProjectPage:
    """The page that manages one project, and its routes."""

    def __init__(
        self, places: list[HostedProject], children: ProjectServers, how: ServingOptions, port: int, visitors: Visitors
    ):
        self._places, self._children, self._how, self._port = places, children, how, port
        self._visitors = visitors
        self._lock = threading.Lock()
        self._backing_up = BackupRunner()

    def build_routes(self, base: str, tokens: Tokens) -> list[Route]:

        def guard_change(change: ChangeHandler) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request, visitor: Visitor) -> Response:
                content = await run_sync(change, await read_body(request), visitor)
                return JSONResponse(content, headers=NO_STORE_HEADERS)

            async def route(request: Request) -> Response:
                visitor = await run_sync(self._visitors.identify, dict(request.cookies))
                if tokens.read_annotator(request.headers.get("x-annotator-token", "")) != get_token_name(visitor):
                    return build_error_response(401, "This page's pass is missing or has run out. Reload the page.")
                return await answer_or_error(answer(request, visitor))

            return route

        async def page(request: Request) -> Response:
            async def answer() -> Response:
                name = request.path_params["name"]
                visitor = await run_sync(self._visitors.identify, dict(request.cookies))
                data = await run_sync(self._describe_project, name, visitor)
                data |= {"token": tokens.mint(get_token_name(visitor)), "base": base}
                text = markup.render_script_page(base, f"{name} · Annotator", data, "start/project_page.js")
                return HTMLResponse(text, headers=markup.NO_STORE_HEADERS)

            return await answer_or_error(answer())

        changes: dict[str, ChangeHandler] = {
            "rename": self._rename_project,
            "archive": self._archive_project,
            "backup": self._start_backup,
            "backup_state": self._get_backup_state,
            "trash": self._trash_project,
        }
        api = [Route(f"/start/api/{name}", guard_change(change), methods=["POST"]) for name, change in changes.items()]
        return [Route("/start/project/{name}", page), *api]

    def _describe_project(self, name: str, visitor: Visitor) -> dict[str, Any]:
        place = self._find_project(name, visitor)
        about = ""
        if place.db is not None:
            progress = load_progress(place.db)
            answers = format_count(progress.pairs_answered, "answer")
            about = f"{answers} about {format_count(progress.images, 'image')}"
        return {
            "name": place.name,
            "path": str(place.path),
            "about": about,
            "trash": str(place.path.parent / TRASH_FOLDER_NAME),
            "backups": str(get_backups_folder(place.path)),
            "is_archived": hosted_projects.is_archived(place),
            "is_served": place.db is not None,
            "is_team": self._how.is_team,
            "is_oidc": self._how.auth == OIDC,
        }

    def _rename_project(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        """Rename a project and its folder, which ends its sessions."""
        asked = parse_body(body, RenameRequest)
        with self._lock:
            place, name = self._find_project(asked.project, visitor), asked.name.strip()
            hosted_projects.check_name(name, [one for one in self._places if one is not place])
            member = next((one.member for one in visitor.visible_projects if one.place is place), None)
            if name != place.name:
                self._move_project(place, place.path.with_name(name))
                place = next(one for one in self._places if one.name == name)
        if not self._how.is_team:
            return {}
        link = f"{self._how.address}/{name}/"
        if self._how.auth == INVITATION and member is not None and place.db is not None:
            link += f"?invitation={members.create_link(place.db, member.name, member.name)}"
        return {"link": link}

    def _archive_project(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        asked = parse_body(body, ArchiveRequest)
        with self._lock:
            place = self._find_project(asked.project, visitor)
            if place.db is None:
                raise AnnotatorError(place.trouble)
            place.db.set_setting(hosted_projects.ARCHIVED_SETTING, asked.archived)
            if not self._how.serves(place):
                self._children.remove(place.name)
            elif place.name not in self._children.by_name:
                self._children.add(place)
        return {}

    def _start_backup(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        project = parse_body(body, ProjectRequest).project
        with self._lock:
            self._backing_up.start(self._find_project(project, visitor).path)
        return self._get_backup_state(body, visitor)

    def _get_backup_state(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        return asdict(
            self._backing_up.get_state(self._find_project(parse_body(body, ProjectRequest).project, visitor).path)
        )

    def _trash_project(self, body: bytes, visitor: Visitor) -> dict[str, Any]:
        asked = parse_body(body, TrashRequest)
        with self._lock:
            place = self._find_project(asked.project, visitor)
            if asked.typed.strip() != place.name:
                raise AnnotatorError(f"Type the name of the project, {place.name}, to move it to the trash.")
            trash = place.path.parent / TRASH_FOLDER_NAME
            trash.mkdir(mode=0o700, exist_ok=True)
            self._move_project(place, trash / f"{place.name}-{time.strftime('%Y%m%d-%H%M%S')}")
        return {}

    def _move_project(self, place: HostedProject, target: Path) -> None:
        """Move a stopped project, then serve it from its new or (on failure) old folder."""
        if target.exists():
            raise AnnotatorError(f"{target} is there already. Choose another name.")
        self._backing_up.check_not_running(place.path)
        self._places.remove(place)
        self._children.remove(place.name)
        where = place.path
        try:
            if place.db is not None:
                _check_not_in_use(place)
            where = place.path.rename(target)
        finally:
            if where.parent.name != TRASH_FOLDER_NAME:
                moved = hosted_projects.open_project(where)
                self._places.append(moved)
                self._places.sort(key=lambda one: one.path)
                hosted_projects.assign_ports(self._places, self._port + 1, is_port_free)
                if self._how.serves(moved):
                    self._children.add(moved)

    def _find_project(self, name: str, visitor: Visitor) -> HostedProject:
        """Return a project that the visitor may manage, or raise AnnotatorError or Forbidden."""
        seen = [one.place for one in visitor.visible_projects] if visitor.is_team else self._places
        place = next((one for one in seen if one.name == name), None)
        if place is None:
            raise AnnotatorError(f"There is no project called {name} here any more. Was it renamed? Reload the page.")
        if not visitor.may_manage(place):
            raise Forbidden(f"Only owners of {name} may do this. Ask an owner.")
        return place


def get_token_name(visitor: Visitor) -> str:
    return f"keeping {visitor.identity}"


def _check_not_in_use(place: HostedProject) -> None:
    """Raise AlreadyRunning if another program uses the project, after waiting for its own worker."""
    assert place.db is not None
    try:
        with (
            FileLock(place.db.paths.server_lock, timeout=0),
            FileLock(place.db.paths.worker_lock, timeout=WORKER_STOP_SECONDS),
        ):
            pass
    except Timeout as problem:
        raise AlreadyRunning(
            f"{place.name} is in use by another program. End it first (Ctrl+C there), then try again."
        ) from problem
