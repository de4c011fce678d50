"""The start page: the projects that its visitor may open, how far each is, and their role there.

The page names no project to a visitor who has no role in it; a project that cannot be opened is named only in the log
of the server. On one's own computer a one-time key lets the browser in, and all projects are listed (visitors.py).
new_project.py answers the page that makes a project.
"""

import html
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.shares import counted
from annotator.snapshot.progress import progress_of
from annotator.store.images import browser_copies as copies
from annotator.store.images import images
from annotator.store.labels import counts as overview
from annotator.store.pictures.files import unescaped
from annotator.ui.access.access_keys import Keys, fresh_link
from annotator.ui.access.error_pages import too_many
from annotator.ui.access.middleware import HEADERS, Door
from annotator.ui.access.rate_limit import Allowance, network_of
from annotator.ui.access.serving_modes import HOSTS, local
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import markup, projects
from annotator.ui.home.children import Children, How
from annotator.ui.home.keeping import Keeping, pass_of
from annotator.ui.home.markup import Card
from annotator.ui.home.new_project import SAMPLE_PAGE, NewProject
from annotator.ui.home.projects import Place
from annotator.ui.home.visitors import Listed, Visitor, Visitors

FILES = Path(__file__).parent.parent / "components"
SERVED = {
    "start/start.css": "text/css",
    "start/new_project.js": "text/javascript",
    "start/project_page.js": "text/javascript",
    "start/image_drop.js": "text/javascript",
    "start/archived_projects.js": "text/javascript",
    "shared/dom.js": "text/javascript",
}
KEPT = HEADERS | {"cache-control": "private, max-age=60"}

Handler = Callable[[Request], Awaitable[Response]]


class StartPage:
    """The page, for visitors of a team or for the one person at this computer."""

    def __init__(self, places: list[Place], children: Children, how: How, port: int, new: NewProject | None):
        self._places, self._children, self._how, self._port = places, children, how, port
        self._base = urlsplit(how.address).path.rstrip("/")
        self._allowance = Allowance()
        self._visitors = Visitors(places, how.is_team)
        self._new = new
        self._pictures = CapacityLimiter(2)

    def app(self, tokens: Tokens, keys: Keys | None = None) -> Starlette:
        """Return the ASGI application; keys are given where there are no members."""
        below = self._new.routes(self._visitors, tokens) if self._new else []
        keeping = Keeping(self._places, self._children, self._how, self._port, self._visitors)
        below += keeping.routes(self._base, tokens)

        async def page(request: Request) -> Response:
            text = await run_sync(self._text, dict(request.cookies), tokens)
            return HTMLResponse(text, headers=markup.NO_STORE)

        routes = [
            Route(f"{self._base}/", self._checked(page)),
            Route(f"{self._base}/start/file/{{name:path}}", self._checked(self._file)),
            Route(f"{self._base}/start/picture/{{name}}", self._checked(self._picture)),
            *(Route(self._base + one.path, self._checked(one.endpoint), methods=one.methods) for one in below),
        ]
        if keys is None:
            return Starlette(routes=routes)
        door = Middleware(Door, tokens=lambda: tokens, keys=keys, access=local(self._port))
        return Starlette(routes=[*routes, Route("/open/{name}", self._open)], middleware=[door])

    def _checked(self, handler: Handler) -> Handler:
        """Return the route with what every request has to pass: the host, the origin, and how much somebody asks."""

        async def route(request: Request) -> Response:
            host = request.headers.get("host", "")
            own, origin = urlsplit(self._how.address), request.headers.get("origin")
            if self._how.is_team and host != own.netloc and host.partition(":")[0] not in HOSTS:
                return PlainTextResponse("This server does not answer to that name.\n", 403)
            if origin not in (None, f"{own.scheme if host == own.netloc else 'http'}://{host}"):
                return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
            who = network_of(request.client.host if request.client else "")
            if self._how.is_team and not self._allowance.consume(who):
                return too_many()
            return await handler(request)

        return route

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SERVED:
            return PlainTextResponse("There is nothing here.\n", 404)
        return FileResponse(FILES / name, media_type=SERVED[name], headers=HEADERS | {"cache-control": "no-cache"})

    async def _picture(self, request: Request) -> Response:
        """GET the picture of a project, for a visitor who may open it."""
        visitor = await run_sync(self._visitors.of, dict(request.cookies))
        place = next((one.place for one in visitor.listed if one.place.name == request.path_params["name"]), None)
        found = await run_sync(_picture_of, place, limiter=self._pictures) if place else None
        if found is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        return FileResponse(found[0], media_type=found[1], headers=KEPT)

    async def _open(self, request: Request) -> Response:
        """Redirect to a project on this computer, with a one-time key."""
        place = next((one for one in self._places if one.name == request.path_params["name"]), None)
        if place is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        try:
            link = await run_sync(fresh_link, place.path)
        except AnnotatorError:  # its server does not listen yet
            name = html.escape(place.name)
            body = (
                f'<main><h1>{name}</h1><p role="status">The project is starting, and opens in a few seconds.</p></main>'
            )
            return HTMLResponse(
                markup.page("", f"{place.name} · Annotator", body), 503, markup.NO_STORE | {"refresh": "1"}
            )
        return RedirectResponse(link, status_code=303, headers={"cache-control": "no-store"})

    def _text(self, cookies: dict[str, str], tokens: Tokens) -> str:
        visitor = self._visitors.of(cookies)
        troubles = ""
        if not self._how.is_team:  # roles in a project that cannot be opened are unknown: only the log names it
            broken = (place for place in self._places if place.db is None)
            troubles = "".join(markup.trouble(place.name, place.trouble) for place in broken)
        cards = [self._card(one, visitor) for one in visitor.listed]
        may_make = self._new is not None and visitor.may_make
        if self._new and may_make:
            attempts = ((one.project.name, unescaped(one.images)) for one in self._new.unfinished())
            troubles += "".join(markup.unfinished(self._base, name, images) for name, images in attempts)
        token = tokens.mint(pass_of(visitor))
        sample = SAMPLE_PAGE if self._new and self._new.sample else ""
        return markup.projects_page(self._base, cards, may_make, troubles, token, sample)

    def _card(self, listed: Listed, visitor: Visitor) -> Card:
        place = listed.place
        manage = f"{self._base}/start/project/{place.name}" if visitor.may_keep(place) else ""
        card = Card(place.name, manage=manage, is_archived=projects.is_archived(place))
        child = self._children.by_name.get(place.name)
        address = f"{self._how.address}/{place.name}/" if self._how.is_team else f"open/{place.name}"
        if not self._how.serves(place):
            address = ""
        elif child is None:
            return replace(card, about=("Not running just now.",))
        elif not child.is_running and (child.has_run or self._how.is_team):
            why = child.trouble if listed.role in ("", "owner") else ""
            return replace(card, about=("Not running just now; it is being started again.",), trouble=why)
        try:
            about, done, of = _progress(listed)
        except AnnotatorError as error:
            return replace(card, about=(str(error),))
        picture = f"{self._base}/start/picture/{place.name}"
        return replace(card, about=about, address=address, picture=picture, done=done, of=of)


def _progress(listed: Listed) -> tuple[tuple[str, ...], int, int]:
    """Return the progress of a project in sentences, and how many of how many pairs or images are done."""
    db = listed.place.db
    assert db is not None
    counts = overview.image_counts(db, everything=False)
    done, of = counts["complete"], counts["all"]
    about = f"{done:,} of {counted(of, 'image')} complete"
    if listed.role:
        about += f" · {listed.role}"
    if not listed.sees_all:  # counts of answers would tell what is hidden from them
        return (about,), done, of
    progress = progress_of(db, counts=counts)
    pairs = f"{progress.pairs_answered:,} of {counted(progress.pairs, 'pair')} answered"
    worked = markup.last_worked_on(overview.last_answered(db))
    return tuple(filter(None, (about, pairs, worked))), progress.pairs_answered, progress.pairs


def _picture_of(place: Place) -> tuple[Path, str] | None:
    """Return a small picture of a project and its media type; None without an image that can be shown at once."""
    assert place.db is not None
    try:
        image_id = copies.cover(place.db)
        if image_id is None:
            return None
        ready = copies.ready(place.db, image_id, copies.THUMB)
        if ready or images.remote_location(place.db, image_id):  # nobody waits for an address here
            return ready
        return copies.make(place.db, image_id, copies.THUMB)
    except AnnotatorError:
        return None
