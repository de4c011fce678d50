"""The start page: the visitor's projects, their progress and roles.

It reveals no project to visitors without a role in it.
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
from annotator.humanize import format_count
from annotator.snapshot.project_progress import load_progress
from annotator.store.images import browser_copies, images
from annotator.store.labels import project_counts
from annotator.store.pictures.files import unescape_path
from annotator.ui.access.access_keys import AccessKeys, create_access_link
from annotator.ui.access.error_pages import build_rate_limit_response
from annotator.ui.access.middleware import AccessMiddleware
from annotator.ui.access.rate_limit import RateLimiter, get_network
from annotator.ui.access.security_headers import SECURITY_HEADERS
from annotator.ui.access.serving_modes import LOOPBACK_HOSTS, build_local_access
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import hosted_projects, markup
from annotator.ui.home.hosted_projects import HostedProject
from annotator.ui.home.markup import ProjectCard
from annotator.ui.home.new_project import SAMPLE_PAGE_PATH, NewProjectPage
from annotator.ui.home.project_page import ProjectPage, get_token_name
from annotator.ui.home.project_servers import ProjectServers, ServingOptions
from annotator.ui.home.visitors import VisibleProject, Visitor, Visitors

COMPONENTS_FOLDER = Path(__file__).parent.parent / "pages"
SERVED_FILES = {
    "start/start.css": "text/css",
    "start/new_project.js": "text/javascript",
    "start/project_page.js": "text/javascript",
    "start/image_drop.js": "text/javascript",
    "start/archived_projects.js": "text/javascript",
    "shared/annotator_name.js": "text/javascript",
    "shared/dom.js": "text/javascript",
}
ONE_MINUTE_HEADERS = SECURITY_HEADERS | {"cache-control": "private, max-age=60"}

Handler = Callable[[Request], Awaitable[Response]]


class StartPage:
    """The start page and its routes, for members or the local user."""

    def __init__(
        self,
        places: list[HostedProject],
        children: ProjectServers,
        how: ServingOptions,
        port: int,
        new: NewProjectPage | None,
    ):
        self._places, self._children, self._how, self._port = places, children, how, port
        self._base = urlsplit(how.address).path.rstrip("/")
        self._allowance = RateLimiter()
        self._visitors = Visitors(places, how.is_team)
        self._new = new
        self._pictures = CapacityLimiter(2)

    def build_app(self, tokens: Tokens, keys: AccessKeys | None = None) -> Starlette:
        """Return the ASGI application (`keys` only without members)."""
        below = self._new.build_routes(self._visitors, tokens) if self._new else []
        keeping = ProjectPage(self._places, self._children, self._how, self._port, self._visitors)
        below += keeping.build_routes(self._base, tokens)

        async def page(request: Request) -> Response:
            text = await run_sync(self._render_page, dict(request.cookies), tokens)
            return HTMLResponse(text, headers=markup.NO_STORE_HEADERS)

        routes = [
            Route(f"{self._base}/", self._guard_route(page)),
            Route(f"{self._base}/start/file/{{name:path}}", self._guard_route(self._send_file)),
            Route(f"{self._base}/start/picture/{{name}}", self._guard_route(self._send_picture)),
            *(Route(self._base + one.path, self._guard_route(one.endpoint), methods=one.methods) for one in below),
        ]
        if keys is None:
            return Starlette(routes=routes)
        door = Middleware(AccessMiddleware, tokens=lambda: tokens, keys=keys, access=build_local_access(self._port))
        return Starlette(routes=[*routes, Route("/open/{name}", self._open_project)], middleware=[door])

    def _guard_route(self, handler: Handler) -> Handler:
        async def route(request: Request) -> Response:
            host = request.headers.get("host", "")
            own, origin = urlsplit(self._how.address), request.headers.get("origin")
            if self._how.is_team and host != own.netloc and host.partition(":")[0] not in LOOPBACK_HOSTS:
                return PlainTextResponse("This server does not answer to that name.\n", 403)
            if origin not in (None, f"{own.scheme if host == own.netloc else 'http'}://{host}"):
                return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
            who = get_network(request.client.host if request.client else "")
            if self._how.is_team and not self._allowance.consume(who):
                return build_rate_limit_response()
            return await handler(request)

        return route

    async def _send_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SERVED_FILES:
            return PlainTextResponse("There is nothing here.\n", 404)
        return FileResponse(
            COMPONENTS_FOLDER / name,
            media_type=SERVED_FILES[name],
            headers=SECURITY_HEADERS | {"cache-control": "no-cache"},
        )

    async def _send_picture(self, request: Request) -> Response:
        """Handle GET: return a visible project's image."""
        visitor = await run_sync(self._visitors.identify, dict(request.cookies))
        place = next(
            (one.place for one in visitor.visible_projects if one.place.name == request.path_params["name"]), None
        )
        found = await run_sync(_find_picture, place, limiter=self._pictures) if place else None
        if found is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        return FileResponse(found[0], media_type=found[1], headers=ONE_MINUTE_HEADERS)

    async def _open_project(self, request: Request) -> Response:
        place = next((one for one in self._places if one.name == request.path_params["name"]), None)
        if place is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        try:
            link = await run_sync(create_access_link, place.path)
        except AnnotatorError:  # its server does not listen yet
            name = html.escape(place.name)
            body = (
                f'<main><h1>{name}</h1><p role="status">The project is starting, and opens in a few seconds.</p></main>'
            )
            return HTMLResponse(
                markup.render_page("", f"{place.name} · Annotator", body),
                503,
                markup.NO_STORE_HEADERS | {"refresh": "1"},
            )
        return RedirectResponse(link, status_code=303, headers={"cache-control": "no-store"})

    def _render_page(self, cookies: dict[str, str], tokens: Tokens) -> str:
        visitor = self._visitors.identify(cookies)
        troubles = ""
        if not self._how.is_team:  # roles in a project that cannot be opened are unknown: only the log names it
            broken = (place for place in self._places if place.db is None)
            troubles = "".join(markup.render_trouble(place.name, place.trouble) for place in broken)
        cards = [self._build_card(one, visitor) for one in visitor.visible_projects]
        may_make = self._new is not None and visitor.may_create_projects
        if self._new and may_make:
            attempts = ((one.project.name, unescape_path(one.images)) for one in self._new.find_unfinished())
            troubles += "".join(markup.render_unfinished(self._base, name, images) for name, images in attempts)
        token = tokens.mint(get_token_name(visitor))
        sample = SAMPLE_PAGE_PATH if self._new and self._new.sample else ""
        return markup.render_projects_page(self._base, cards, may_make, troubles, token, sample)

    def _build_card(self, listed: VisibleProject, visitor: Visitor) -> ProjectCard:
        place = listed.place
        manage = f"{self._base}/start/project/{place.name}" if visitor.may_manage(place) else ""
        card = ProjectCard(place.name, manage=manage, is_archived=hosted_projects.is_archived(place))
        child = self._children.by_name.get(place.name)
        address = f"{self._how.address}/{place.name}/" if self._how.is_team else f"open/{place.name}"
        if not self._how.serves(place):
            address = ""
        elif child is None:
            return replace(card, about=("Not running just now.",))
        elif not child.is_running and (child.has_run or self._how.is_team):
            why = child.last_output if listed.role in ("", "owner") else ""
            return replace(card, about=("Not running just now; it is being started again.",), trouble=why)
        try:
            about, done, of = _describe_progress(listed)
        except AnnotatorError as error:
            return replace(card, about=(str(error),))
        picture = f"{self._base}/start/picture/{place.name}"
        return replace(card, about=about, address=address, picture=picture, done=done, of=of)


def _describe_progress(listed: VisibleProject) -> tuple[tuple[str, ...], int, int]:
    """Return (sentences, done, total) of a project."""
    db = listed.place.db
    assert db is not None
    counts = project_counts.count_images_by_stage(db, include_blind=False)
    done, of = counts["complete"], counts["all"]
    about = f"{done:,} of {format_count(of, 'image')} complete"
    if listed.role:
        about += f" · {listed.role}"
    if not listed.sees_all:  # counts of answers would tell what is hidden from them
        return (about,), done, of
    progress = load_progress(db, counts=counts)
    pairs = f"{progress.pairs_answered:,} of {format_count(progress.pairs, 'pair')} answered"
    worked = markup.format_last_worked_on(project_counts.get_last_answer_time(db))
    return tuple(filter(None, (about, pairs, worked))), progress.pairs_answered, progress.pairs


def _find_picture(place: HostedProject) -> tuple[Path, str] | None:
    assert place.db is not None
    try:
        image_id = browser_copies.find_cover_image(place.db)
        if image_id is None:
            return None
        ready = browser_copies.find_ready_file(place.db, image_id, browser_copies.THUMB)
        if ready or images.find_remote_location(place.db, image_id):  # nobody waits for an address here
            return ready
        return browser_copies.make(place.db, image_id, browser_copies.THUMB)
    except AnnotatorError:
        return None
