"""The page that creates a project, for local users or owners.

Nothing is written before "Create". Paths are checked against the allowed roots.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.roles import Role
from annotator.store.classes.name_lists import KEEP, SPLIT
from annotator.store.imports import unfinished_projects
from annotator.store.imports.unfinished_projects import ProjectAttempt
from annotator.store.labels.answer_mode import MODE_ONE
from annotator.store.people import members
from annotator.store.pictures.files import unescape_path
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES
from annotator.ui.access.access_keys import build_name_cookie_name
from annotator.ui.access.security_headers import SECURITY_HEADERS
from annotator.ui.access.serving_modes import INVITATION
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import folder_scan, hosted_projects, markup
from annotator.ui.home.allowed_roots import AllowedRoots
from annotator.ui.home.hosted_projects import HostedProject
from annotator.ui.home.image_uploads import PHOTOS_FOLDER_NAME, ImageUploads
from annotator.ui.home.project_creator import CreatedProject, NewProjectOptions, ProjectCreator
from annotator.ui.home.project_servers import ProjectServers, ServingOptions
from annotator.ui.home.visitors import Visitor, Visitors
from annotator.ui.pages.imports.uploads_routes import receive_file
from annotator.ui.server import is_port_free
from annotator.ui.shared.guard import NO_STORE_HEADERS, answer_or_error, build_error_response, read_body
from annotator.ui.shared.requests import UploadQuery, convert_values, parse_body

SAMPLE_PAGE_PATH, SAMPLE_PROJECT_NAME = "/start/sample", "demo"
MAX_PARALLEL_SCANS = 2  # folders that are looked through, and thumbnails that are made, at a time

TypedText = Annotated[str, Meta(max_length=4096)]
Handler = Callable[[Request, Visitor], Awaitable[Response]]


class FolderRequest(Struct):
    """The request body that names a server folder ("" for the first allowed one)."""

    path: TypedText = ""


class ClassesRequest(Struct):
    """The request body with classes as typed or pasted."""

    text: Annotated[str, Meta(max_length=500_000)]
    commas: Literal["split", "keep"] = SPLIT


class CreateRequest(ClassesRequest, kw_only=True):
    """The request body to create a project, with a label file or ""."""

    name: Annotated[str, Meta(max_length=100)]
    path: TypedText
    labels: TypedText = ""
    mode: Literal["one", "all"] = MODE_ONE


class UnfinishedRequest(Struct):
    name: Annotated[str, Meta(max_length=100)]


class ImageQuery(UploadQuery):
    """The query parameters of an uploaded image: its name and batch."""

    batch: Annotated[str, Meta(max_length=100)]


class EndBatchRequest(Struct):
    """The request body that finishes an upload batch (`keep`) or removes it."""

    batch: Annotated[str, Meta(max_length=100)]
    keep: bool


class NewProjectPage:
    """The page that creates a project, and its routes.

    Args:
        folder: Folder of new projects.
        places: Served projects, extended by new ones.
        sample: Folder of sample images, or None.
    """

    def __init__(
        self,
        folder: Path,
        roots: AllowedRoots,
        places: list[HostedProject],
        children: ProjectServers,
        how: ServingOptions,
        port: int,
        sample: Path | None = None,
    ):
        self._folder, self._roots, self._places, self.sample = folder, roots, places, sample
        self._children, self._how, self._port = children, how, port
        self._few = CapacityLimiter(MAX_PARALLEL_SCANS)
        self.making = ProjectCreator(self._serve_new_project)
        self.dropping = ImageUploads(roots.paths[0] if roots.paths else None)

    def build_routes(self, visitors: Visitors, tokens: Tokens) -> list[Route]:
        """Return the routes, for visitors who may create projects."""

        def page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
            async def route(request: Request) -> Response:
                visitor = await run_sync(visitors.identify, dict(request.cookies))
                if not visitor.may_create_projects:
                    return build_error_response(403, "Only owners of a project may make another one. Ask an owner.")
                return await answer_or_error(handler(request, visitor))

            return route

        def guard_handler(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
            async def check_and_handle(request: Request, visitor: Visitor) -> Response:
                if tokens.read_annotator(request.headers.get("x-annotator-token", "")) != visitor.identity:
                    return build_error_response(401, "This page's pass is missing or has run out. Reload the page.")
                return await handler(request, visitor)

            return page(check_and_handle)

        async def new(request: Request, visitor: Visitor) -> Response:
            token, unfinished = tokens.mint(visitor.identity), request.query_params.get("unfinished", "")
            return await run_sync(lambda: self._render_page(token, unfinished=unfinished))

        async def with_sample(request: Request, visitor: Visitor) -> Response:
            return self._render_page(tokens.mint(visitor.identity), self.sample)

        posts = {
            "folders": self._list_folders,
            "look": self._scan_folder,
            "labels": self._find_labels,
            "classes": self._parse_classes,
            "make": self._create_project,
            "state": self._get_creation_state,
            "cancel": self._cancel_creation,
            "remove_unfinished": self._remove_unfinished,
            "images_begin": self._begin_images,
            "image": self._receive_image,
            "images_end": self._end_images,
        }
        api = [Route(f"/start/api/{name}", guard_handler(handler), methods=["POST"]) for name, handler in posts.items()]
        pages = {"/start/new": new, SAMPLE_PAGE_PATH: with_sample, "/start/thumb": self._send_thumbnail}
        return [*(Route(path, page(handler)) for path, handler in pages.items()), *api]

    def find_unfinished(self) -> list[ProjectAttempt]:
        """Return the projects whose creation was killed."""
        return unfinished_projects.find(self._folder)

    def _render_page(self, token: str, sample: Path | None = None, unfinished: str = "") -> Response:
        base = self._how.address.split("://", 1)[1].partition("/")[2].rstrip("/")
        base = f"/{base}" if base else ""
        data: dict[str, Any] = {
            "token": token,
            "base": base,
            "folder": str(self._folder),
            "is_team": self._how.is_team,
            "sample": None,
            "attempt": None,
            "endings": sorted(IMAGE_SUFFIXES),
            "photos": str(self._roots.paths[0] / PHOTOS_FOLDER_NAME) if self._roots.paths else "",
        }
        if sample:
            name = hosted_projects.choose_free_name(SAMPLE_PROJECT_NAME, self._places, self._folder)
            data["sample"] = {"folder": str(sample / "images"), "name": name}
        if attempt := next((one for one in self.find_unfinished() if one.project.name == unfinished), None):
            data["attempt"] = {"folder": unescape_path(attempt.images), "name": attempt.project.name}
        text = markup.render_script_page(base, "New project · Annotator", data, "start/new_project.js")
        return HTMLResponse(text, headers=markup.NO_STORE_HEADERS)

    async def _list_folders(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {path}: return the folder's subfolders."""
        given = parse_body(await read_body(request), FolderRequest).path
        found = await run_sync(self._build_folder_listing, given)
        return JSONResponse(found, headers=NO_STORE_HEADERS)

    def _build_folder_listing(self, given: str) -> dict[str, Any]:
        if not self._roots.paths:
            raise AnnotatorError("No folder may be read here. Whoever started Annotator can allow some with --roots.")
        inside = self._roots.list_folder(given or str(self._roots.paths[0]))
        return {
            "path": str(inside.path),
            "parent": str(inside.parent) if inside.parent else "",
            "folders": [{"name": name, "path": str(inside.path / name)} for name in inside.folders],
            "images": inside.images,
            "roots": [str(root) for root in self._roots.paths],
        }

    async def _scan_folder(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {path}: return the images and class lists of a folder."""
        given = parse_body(await read_body(request), FolderRequest).path
        found = await run_sync(self._build_scan, given, limiter=self._few)
        return JSONResponse(found, headers=NO_STORE_HEADERS)

    def _build_scan(self, given: str) -> dict[str, Any]:
        folder = self._roots.resolve_folder(given)
        found = asdict(folder_scan.scan_folder(folder, self._roots, self._folder))
        return found | {"name": hosted_projects.choose_free_name(folder.name, self._places, self._folder)}

    async def _find_labels(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {path}: return the labels found in a folder, or null."""
        given = parse_body(await read_body(request), FolderRequest).path
        find = folder_scan.find_labels
        labels = await run_sync(lambda: find(self._roots.resolve_folder(given), self._roots), limiter=self._few)
        return JSONResponse({"labels": asdict(labels) if labels else None}, headers=NO_STORE_HEADERS)

    async def _send_thumbnail(self, request: Request, visitor: Visitor) -> Response:
        """Handle GET ?path=: return a thumbnail."""
        given = request.query_params.get("path", "")
        content = await run_sync(lambda: folder_scan.make_thumbnail(self._roots.resolve_path(given)), limiter=self._few)
        headers = SECURITY_HEADERS | {"cache-control": "private, max-age=600"}
        return Response(content, media_type="image/jpeg", headers=headers)

    async def _begin_images(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST: start a batch."""
        return JSONResponse(
            {"batch": await run_sync(self.dropping.begin_batch, visitor.identity)}, headers=NO_STORE_HEADERS
        )

    async def _receive_image(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST ?name=&batch=: add an image to a batch."""
        asked = convert_values(dict(request.query_params), ImageQuery)
        size = request.headers.get("content-length", "")
        if not size.isdecimal():
            return build_error_response(411, "The size of the image has to be said first.")
        incoming = await run_sync(self.dropping.receive_image, visitor.identity, asked.batch, asked.name, int(size))
        return JSONResponse({"name": await receive_file(request, incoming)}, headers=NO_STORE_HEADERS)

    async def _end_images(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {batch, keep}: finish or remove a batch."""
        asked = parse_body(await read_body(request), EndBatchRequest)
        if asked.keep:
            folder = await run_sync(self.dropping.finish_batch, visitor.identity, asked.batch)
            return JSONResponse({"path": str(folder)}, headers=NO_STORE_HEADERS)
        await run_sync(self.dropping.cancel_batch, visitor.identity, asked.batch)
        return JSONResponse({}, headers=NO_STORE_HEADERS)

    async def _parse_classes(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {text, commas}: return the class names."""
        asked = parse_body(await read_body(request), ClassesRequest)
        pairs = await run_sync(folder_scan.parse_classes, asked.text, asked.commas)
        has_commas = asked.commas == KEEP or await run_sync(folder_scan.has_lists, asked.text)
        return JSONResponse({"names": [name for name, _ in pairs], "has_commas": has_commas}, headers=NO_STORE_HEADERS)

    async def _create_project(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST: start creating a project."""
        asked = parse_body(await read_body(request), CreateRequest)
        await run_sync(self._start_creation, asked, visitor)
        return await self._get_creation_state(request, visitor)

    def _start_creation(self, asked: CreateRequest, visitor: Visitor) -> None:
        name = asked.name.strip()
        hosted_projects.check_name(name, self._places)
        images = self._roots.resolve_folder(asked.path)
        labels = self._roots.resolve_path(asked.labels) if asked.labels else None
        folder_scan.parse_classes(asked.text, asked.commas)  # its errors are told at once
        wanted = NewProjectOptions(self._folder / name, images, asked.text, asked.commas, labels, asked.mode)
        self.making.start(wanted, visitor)

    async def _get_creation_state(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST: return the creation progress."""
        return JSONResponse(asdict(self.making.get_state(visitor)), headers=NO_STORE_HEADERS)

    async def _cancel_creation(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST: cancel this visitor's creation."""
        if self.making.get_state(visitor).is_at_work:
            self.making.cancel()
        return await self._get_creation_state(request, visitor)

    async def _remove_unfinished(self, request: Request, visitor: Visitor) -> Response:
        """Handle POST {name}: remove an unfinished project."""
        name = parse_body(await read_body(request), UnfinishedRequest).name
        attempt = next((one for one in await run_sync(self.find_unfinished) if one.project.name == name), None)
        if attempt is None:
            raise AnnotatorError(f"There is no unfinished project called {name} any more. Reload the page.")
        await run_sync(unfinished_projects.remove, attempt.project)
        return JSONResponse({}, headers=NO_STORE_HEADERS)

    def _serve_new_project(self, project: Path, visitor: Visitor) -> CreatedProject:
        """Serve a new project, whose owner is the visitor."""
        place = hosted_projects.open_project(project)
        if place.db is None:
            raise AnnotatorError(place.trouble)
        link = f"{self._how.address}/open/{place.name}"
        if owner := visitor.owner:
            link = f"{self._how.address}/{place.name}/"
            by = f"the start page, by {owner.name}"
            members.add(place.db, owner.name, Role.OWNER, by, owner.email, owner.subject)
            if self._how.auth == INVITATION:
                link += f"?invitation={members.create_link(place.db, owner.name, owner.name)}"
        self._places.append(place)
        hosted_projects.assign_ports(self._places, self._port + 1, is_port_free)
        name_cookie = build_name_cookie_name(place.db)
        self._children.add(place)
        return CreatedProject(link, name_cookie)
