"""The start page: the projects that its visitor may open, how far each is, and their role there.

Where projects are served to members, a project's server gives the browser of each member a cookie that this page can
read (ui/access/middleware.py); it proves who they are in that project, and nothing else. So the page names no project
to a visitor who has no role in it; a project that cannot be opened is named only in the log of the server. On one's
own computer a one-time key lets the browser in, and all projects are listed.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.shares import counted
from annotator.store.labels import counts as overview
from annotator.store.people import members
from annotator.ui.access.access_keys import Keys, fresh_link, listing_name
from annotator.ui.access.error_pages import too_many
from annotator.ui.access.middleware import HEADERS, Door
from annotator.ui.access.rate_limit import Allowance, network_of
from annotator.ui.access.serving_modes import HOSTS, local
from annotator.ui.access.tokens import Tokens
from annotator.ui.home.children import Children, How
from annotator.ui.home.projects import Place

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Annotator</title>
<style>
:root { color-scheme: light dark; --quiet: light-dark(#5c6361, #a5adaa); --line: light-dark(#d9dcda, #3a3f3d);
  --main: light-dark(#0b7265, #4cc2ae); }
body { font: 16px/1.5 sans-serif; max-width: 52em; margin: 3em auto; padding: 0 1em;
  background: light-dark(#fcfcfb, #161817); color: light-dark(#1c2221, #e9ecea); }
ul { list-style: none; padding: 0; }
li { border: 1px solid var(--line); border-radius: 9px; padding: 0.8em 1em; margin: 0.8em 0; }
a { color: var(--main); font-size: 1.15em; font-weight: 600; }
a:focus-visible { outline: 3px solid var(--main); outline-offset: 3px; border-radius: 3px; }
.about { color: var(--quiet); }
progress { width: 100%%; height: 0.5em; accent-color: var(--main); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.5em 0 0; color: var(--quiet); }
</style>
<h1>Projects</h1>
%s
</html>
"""
NOBODY = """<p>Open the address of your project, or your invitation link, once in this browser. Then the projects that
you may open are listed here.</p>"""


@dataclass(frozen=True)
class Listed:
    """A project as its visitor sees it; role: "" on one's own computer."""

    place: Place
    role: str


class StartPage:
    """The page, for visitors of a team or for the one person at this computer."""

    def __init__(self, places: Sequence[Place], children: Children, how: How, port: int):
        self._places, self._children, self._how, self._port = places, children, how, port
        self._allowance = Allowance()
        self._tokens = {place.name: Tokens(place.db.paths.secret) for place in places if place.db}

    def app(self, tokens: Tokens | None = None, keys: Keys | None = None) -> Starlette:
        """Return the ASGI application; tokens and keys are given where there are no members."""
        base = urlsplit(self._how.address).path.rstrip("/")
        routes = [Route(f"{base}/", self._page)]
        if tokens is None:
            return Starlette(routes=routes)
        door = Middleware(Door, tokens=lambda: tokens, keys=keys, access=local(self._port))
        return Starlette(routes=[*routes, Route("/open/{name}", self._open)], middleware=[door])

    async def _page(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        own, origin = urlsplit(self._how.address), request.headers.get("origin")
        if self._how.is_team and host != own.netloc and host.partition(":")[0] not in HOSTS:
            return PlainTextResponse("This server does not answer to that name.\n", 403)
        if origin not in (None, f"{own.scheme if host == own.netloc else 'http'}://{host}"):
            return PlainTextResponse("A page of another origin may not ask this server for anything.\n", 403)
        if self._how.is_team and not self._allowance.consume(network_of(request.client.host if request.client else "")):
            return too_many()
        text = await run_sync(self._text, dict(request.cookies))
        headers = HEADERS | {"cache-control": "no-store", "content-security-policy": POLICY}
        return HTMLResponse(PAGE % text, headers=headers)

    async def _open(self, request: Request) -> Response:
        """Redirect to a project on this computer, with a one-time key."""
        place = next((one for one in self._places if one.name == request.path_params["name"]), None)
        if place is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        try:
            link = await run_sync(fresh_link, place.path)
        except AnnotatorError:  # its server does not listen yet
            headers = HEADERS | {"cache-control": "no-store", "content-security-policy": POLICY, "refresh": "2"}
            text = f"<p>The server of {html.escape(place.name)} is starting. This page opens it when it is there.</p>"
            return HTMLResponse(PAGE % text, 503, headers)
        return RedirectResponse(link, status_code=303, headers={"cache-control": "no-store"})

    def _text(self, cookies: Mapping[str, str]) -> str:
        parts = [self._row(one) for one in self._listed(cookies)]
        text = f"<ul>{''.join(parts)}</ul>" if parts else NOBODY
        if not self._how.is_team:  # roles in a project that cannot be opened are unknown: only the log names it
            text += "".join(
                f"<h2>{html.escape(place.name)} cannot be served</h2><pre>{html.escape(place.trouble)}</pre>"
                for place in self._places
                if place.db is None
            )
        return text

    def _listed(self, cookies: Mapping[str, str]) -> list[Listed]:
        """Return the projects that this visitor may open."""
        good = [place for place in self._places if place.db is not None]
        if not self._how.is_team:
            return [Listed(place, "") for place in good]
        listed: list[Listed] = []
        for place in good:
            assert place.db is not None
            cookie = cookies.get(listing_name(place.port), "")
            said = self._tokens[place.name].listing(cookie, place.port)
            if said is None:
                continue
            member = next((one for one in members.members(place.db) if one.id == said[0]), None)
            if member is None or member.highest_right < Right.LOOK or said[1] <= member.sessions_since:
                continue
            if not members.has_ended(place.db, said[2]):
                listed.append(Listed(place, member.role.value))
        return listed

    def _row(self, listed: Listed) -> str:
        place = listed.place
        assert place.db is not None
        name = html.escape(place.name)
        child = self._children.by_name[place.name]
        if not child.is_running:
            why = f"<pre>{html.escape(child.trouble)}</pre>" if listed.role in ("", "owner") else ""
            return f'<li><b>{name}</b><p class="about">Not running just now; it is being started again.</p>{why}</li>'
        address = f"{self._how.address}/{name}/" if self._how.is_team else f"open/{name}"
        try:
            counts = overview.image_counts(place.db, everything=False)
        except AnnotatorError as error:
            return f'<li><b>{name}</b><p class="about">{html.escape(str(error))}</p></li>'
        done, of = counts["complete"], counts["all"]
        about = f"{done:,} of {counted(of, 'image')} complete"
        role = f" · {html.escape(listed.role)}" if listed.role else ""
        return (
            f'<li><a href="{html.escape(address)}">{name}</a><div class="about">{about}{role}</div>'
            f'<progress max="{max(of, 1)}" value="{done}" aria-label="{name}: {about}"></progress></li>'
        )
