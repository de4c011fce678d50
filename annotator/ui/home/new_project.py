"""The page that makes a project: its routes below /start, for the person at this computer, or for owners.

Every path that a page names is checked by roots.py. Nothing is written before "Create"; what is written then is what
`annotator init` writes (making.py).
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
from annotator.settings import login
from annotator.store.classes.name_lists import KEEP, SPLIT
from annotator.store.imports import unfinished_projects
from annotator.store.imports.unfinished_projects import Attempt
from annotator.store.labels.answering import ONE
from annotator.store.people import members
from annotator.store.pictures.files import unescaped
from annotator.store.pictures.kinds import IMAGE_SUFFIXES
from annotator.ui.access.middleware import HEADERS
from annotator.ui.access.serving_modes import INVITATION
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import looking, markup, projects
from annotator.ui.home.children import Children, How
from annotator.ui.home.dropping import FOLDER, Dropping
from annotator.ui.home.making import Making, Wanted
from annotator.ui.home.projects import Place
from annotator.ui.home.roots import Roots
from annotator.ui.home.visitors import Visitor, Visitors
from annotator.ui.routes.guard import FRESH, body_of, error, readable
from annotator.ui.routes.requests import UploadQuery, converted, parsed
from annotator.ui.routes.uploads import received
from annotator.ui.server import is_free

SAMPLE_PAGE, SAMPLE_NAME = "/start/sample", "demo"
AT_ONCE = 2  # folders that are looked through, and thumbnails that are made, at a time

Typed = Annotated[str, Meta(max_length=4096)]
Handler = Callable[[Request, Visitor], Awaitable[Response]]


class FolderRequest(Struct):
    """A folder of the server; "": the first root."""

    path: Typed = ""


class ClassesRequest(Struct):
    """Classes as they were typed or pasted."""

    text: Annotated[str, Meta(max_length=500_000)]
    commas: Literal["split", "keep"] = SPLIT


class MakeRequest(ClassesRequest, kw_only=True):
    """A project to make; labels: the path of the file with its labels, "" for none."""

    name: Annotated[str, Meta(max_length=100)]
    path: Typed
    labels: Typed = ""
    mode: Literal["one", "all"] = ONE


class UnfinishedRequest(Struct):
    """The name of a project that was begun and not finished."""

    name: Annotated[str, Meta(max_length=100)]


class ImageQuery(UploadQuery):
    """The name of an image, and the batch that it belongs to."""

    batch: Annotated[str, Meta(max_length=100)]


class ImagesEndRequest(Struct):
    """The images of a batch become a folder, or are removed."""

    batch: Annotated[str, Meta(max_length=100)]
    keep: bool


class NewProject:
    """The page and its routes.

    Args:
        folder: Of new projects.
        places: The projects that are served; one that was made is added.
        port: Of the start page; projects have those after it.
        sample: A folder with sample images and their classes, with which the page can be filled in; None without.
    """

    def __init__(
        self,
        folder: Path,
        roots: Roots,
        places: list[Place],
        children: Children,
        how: How,
        port: int,
        sample: Path | None = None,
    ):
        self._folder, self._roots, self._places, self.sample = folder, roots, places, sample
        self._children, self._how, self._port = children, how, port
        self._few = CapacityLimiter(AT_ONCE)
        self.making = Making(self._made)
        self.dropping = Dropping(roots.paths[0] if roots.paths else None)

    def routes(self, visitors: Visitors, tokens: Tokens) -> list[Route]:
        """Return the routes, each for a visitor who may make projects; those of requests need the page's pass, too."""

        def page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
            async def route(request: Request) -> Response:
                visitor = await run_sync(visitors.of, dict(request.cookies))
                if not visitor.may_make:
                    return error(403, "Only owners of a project may make another one. Ask an owner.")
                return await readable(handler(request, visitor))

            return route

        def guarded(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
            async def checked(request: Request, visitor: Visitor) -> Response:
                if tokens.annotator(request.headers.get("x-annotator-token", "")) != visitor.key:
                    return error(401, "This page's pass is missing or has run out. Reload the page.")
                return await handler(request, visitor)

            return page(checked)

        async def new(request: Request, visitor: Visitor) -> Response:
            token, unfinished = tokens.mint(visitor.key), request.query_params.get("unfinished", "")
            return await run_sync(lambda: self._page(token, unfinished=unfinished))

        async def with_sample(request: Request, visitor: Visitor) -> Response:
            return self._page(tokens.mint(visitor.key), self.sample)

        posts = {
            "folders": self._folders,
            "look": self._look,
            "labels": self._labels,
            "classes": self._classes,
            "make": self._make,
            "state": self._state,
            "cancel": self._cancel,
            "remove_unfinished": self._remove_unfinished,
            "images_begin": self._images_begin,
            "image": self._image,
            "images_end": self._images_end,
        }
        api = [Route(f"/start/api/{name}", guarded(handler), methods=["POST"]) for name, handler in posts.items()]
        pages = {"/start/new": new, SAMPLE_PAGE: with_sample, "/start/thumb": self._thumb}
        return [*(Route(path, page(handler)) for path, handler in pages.items()), *api]

    def unfinished(self) -> list[Attempt]:
        """Return the projects that were being made when the start page, or the command that made them, was killed."""
        return unfinished_projects.find(self._folder)

    def _page(self, token: str, sample: Path | None = None, unfinished: str = "") -> Response:
        base = self._how.address.split("://", 1)[1].partition("/")[2].rstrip("/")
        base = f"/{base}" if base else ""
        data: dict[str, Any] = {
            "token": token,
            "base": base,
            "folder": str(self._folder),
            "person": "" if self._how.is_team else login(),
            "is_team": self._how.is_team,
            "sample": None,
            "attempt": None,
            "endings": sorted(IMAGE_SUFFIXES),
            "photos": str(self._roots.paths[0] / FOLDER) if self._roots.paths else "",
        }
        if sample:
            name = projects.free_name(SAMPLE_NAME, self._places, self._folder)
            data["sample"] = {"folder": str(sample / "images"), "name": name}
        if attempt := next((one for one in self.unfinished() if one.project.name == unfinished), None):
            data["attempt"] = {"folder": unescaped(attempt.images), "name": attempt.project.name}
        text = markup.script_page(base, "New project · Annotator", data, "start/new_project.js")
        return HTMLResponse(text, headers=markup.NO_STORE)

    async def _folders(self, request: Request, visitor: Visitor) -> Response:
        """POST {path}: the folders in it, for the list to walk through and for completion."""
        given = parsed(await body_of(request), FolderRequest).path
        found = await run_sync(self._inside, given)
        return JSONResponse(found, headers=FRESH)

    def _inside(self, given: str) -> dict[str, Any]:
        if not self._roots.paths:
            raise AnnotatorError("No folder may be read here. Whoever started Annotator can allow some with --roots.")
        inside = self._roots.inside(given or str(self._roots.paths[0]))
        return {
            "path": str(inside.path),
            "parent": str(inside.parent) if inside.parent else "",
            "folders": [{"name": name, "path": str(inside.path / name)} for name in inside.folders],
            "images": inside.images,
            "roots": [str(root) for root in self._roots.paths],
        }

    async def _look(self, request: Request, visitor: Visitor) -> Response:
        """POST {path}: what lies in the folder and those below it."""
        given = parsed(await body_of(request), FolderRequest).path
        found = await run_sync(self._looked, given, limiter=self._few)
        return JSONResponse(found, headers=FRESH)

    def _looked(self, given: str) -> dict[str, Any]:
        folder = self._roots.folder(given)
        found = asdict(looking.look(folder, self._roots, self._folder))
        return found | {"name": projects.free_name(folder.name, self._places, self._folder)}

    async def _labels(self, request: Request, visitor: Visitor) -> Response:
        """POST {path}: the labels that lie in the folder, null without any."""
        given = parsed(await body_of(request), FolderRequest).path
        find = looking.find_labels
        labels = await run_sync(lambda: find(self._roots.folder(given), self._roots), limiter=self._few)
        return JSONResponse({"labels": asdict(labels) if labels else None}, headers=FRESH)

    async def _thumb(self, request: Request, visitor: Visitor) -> Response:
        """GET ?path=: a small picture of an image that is in no project yet."""
        given = request.query_params.get("path", "")
        content = await run_sync(lambda: looking.thumbnail(self._roots.path(given)), limiter=self._few)
        headers = HEADERS | {"cache-control": "private, max-age=600"}
        return Response(content, media_type="image/jpeg", headers=headers)

    async def _images_begin(self, request: Request, visitor: Visitor) -> Response:
        """POST: the name of a batch of images that follow, which become a folder together."""
        return JSONResponse({"batch": await run_sync(self.dropping.begin, visitor.key)}, headers=FRESH)

    async def _image(self, request: Request, visitor: Visitor) -> Response:
        """POST the bytes of an image to ?name=...&batch=...: it is one of those that become a folder."""
        asked = converted(dict(request.query_params), ImageQuery)
        size = request.headers.get("content-length", "")
        if not size.isdecimal():
            return error(411, "The size of the image has to be said first.")
        incoming = await run_sync(self.dropping.receive, visitor.key, asked.batch, asked.name, int(size))
        return JSONResponse({"name": await received(request, incoming)}, headers=FRESH)

    async def _images_end(self, request: Request, visitor: Visitor) -> Response:
        """POST {batch, keep}: the folder that the images have become; not kept, they are removed."""
        asked = parsed(await body_of(request), ImagesEndRequest)
        if asked.keep:
            folder = await run_sync(self.dropping.finish, visitor.key, asked.batch)
            return JSONResponse({"path": str(folder)}, headers=FRESH)
        await run_sync(self.dropping.cancel, visitor.key, asked.batch)
        return JSONResponse({}, headers=FRESH)

    async def _classes(self, request: Request, visitor: Visitor) -> Response:
        """POST {text, commas}: the names of the classes as they would be."""
        asked = parsed(await body_of(request), ClassesRequest)
        pairs = await run_sync(looking.chosen_classes, asked.text, asked.commas)
        kept = {name for name, _ in await run_sync(looking.chosen_classes, asked.text, KEEP)}
        names = [name for name, _ in pairs]
        return JSONResponse({"names": names, "has_commas": asked.commas == KEEP or set(names) != kept}, headers=FRESH)

    async def _make(self, request: Request, visitor: Visitor) -> Response:
        """POST a project: it begins to be made."""
        asked = parsed(await body_of(request), MakeRequest)
        await run_sync(self._start, asked, _name_of(visitor))
        return await self._state(request, visitor)

    def _start(self, asked: MakeRequest, by: str) -> None:
        name = asked.name.strip()
        projects.refuse_name(name, self._places)
        images = self._roots.folder(asked.path)
        labels = self._roots.path(asked.labels) if asked.labels else None
        looking.chosen_classes(asked.text, asked.commas)  # its errors are told at once
        wanted = Wanted(self._folder / name, images, asked.text, asked.commas, labels, asked.mode)
        self.making.start(wanted, by)

    async def _state(self, request: Request, visitor: Visitor) -> Response:
        """POST: how far the visitor's project is that is being made."""
        return JSONResponse(asdict(self.making.state_for(_name_of(visitor))), headers=FRESH)

    async def _cancel(self, request: Request, visitor: Visitor) -> Response:
        """POST: the visitor's project is not made."""
        if self.making.state_for(_name_of(visitor)).is_at_work:
            self.making.cancel()
        return await self._state(request, visitor)

    async def _remove_unfinished(self, request: Request, visitor: Visitor) -> Response:
        """POST {name}: what there is of a project that was begun and not finished is removed."""
        name = parsed(await body_of(request), UnfinishedRequest).name
        attempt = next((one for one in await run_sync(self.unfinished) if one.project.name == name), None)
        if attempt is None:
            raise AnnotatorError(f"There is no unfinished project called {name} any more. Reload the page.")
        await run_sync(unfinished_projects.remove, attempt.project)
        return JSONResponse({}, headers=FRESH)

    def _made(self, project: Path, by: str) -> str:
        """Serve a project that was just made, and return the address that opens it."""
        place = projects.opened(project)
        if place.db is None:
            raise AnnotatorError(place.trouble)
        link = f"{self._how.address}/open/{place.name}"
        if self._how.is_team:
            link = f"{self._how.address}/{place.name}/"
            members.add(place.db, by, Role.OWNER, by=f"the start page, by {by}", email=self._email_of(by))
            if self._how.auth == INVITATION:
                link += f"?invitation={members.new_link(place.db, by, by)}"
        self._places.append(place)
        projects.give_ports(self._places, self._port + 1, is_free)
        self._children.add(place)
        return link

    def _email_of(self, name: str) -> str:
        """Return the address by which the login provider knows an owner of another project."""
        databases = (place.db for place in self._places if place.db is not None)
        owners = (one for db in databases for one in members.members(db) if one.role == Role.OWNER)
        return next((one.email for one in owners if one.name == name), "")


def _name_of(visitor: Visitor) -> str:
    """Return by whom a project is made; "" on one's own computer."""
    return visitor.owner.name if visitor.owner else ""
