"""The table of all routes that page_app.py serves."""

from collections.abc import Sequence
from functools import cache

from anyio.to_thread import run_sync
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send

from annotator.ui.pages.autopilot import autopilot_routes
from annotator.ui.routes import answering_routes, decide_routes, history_routes, pictures_routes, work_routes

# What pages with images ask for first. The modules of all others take as long to import as half of Streamlit.
FIRST_ROUTES = (
    *work_routes.ROUTES,
    *answering_routes.ROUTES,
    *autopilot_routes.ROUTES,
    *decide_routes.ROUTES,
    *history_routes.ROUTES,
    *pictures_routes.ROUTES,
)


@cache
def load_routes() -> tuple[Route, ...]:
    """Import the modules of all routes, and return them."""
    from annotator.ui.pages.classes import classes_routes
    from annotator.ui.pages.export import exports_routes
    from annotator.ui.pages.gallery import gallery_routes, like_routes
    from annotator.ui.pages.imports import uploads_routes
    from annotator.ui.pages.map import map_routes
    from annotator.ui.pages.speed_test import speed_test_routes
    from annotator.ui.routes import downloads_routes, metrics_routes, predictions_routes, related_routes

    return (
        *FIRST_ROUTES,
        *classes_routes.ROUTES,
        *downloads_routes.ROUTES,
        *exports_routes.ROUTES,
        *gallery_routes.ROUTES,
        *like_routes.ROUTES,
        *map_routes.ROUTES,
        *metrics_routes.ROUTES,
        *predictions_routes.ROUTES,
        *related_routes.ROUTES,
        *speed_test_routes.ROUTES,
        *uploads_routes.ROUTES,
    )


def place_routes(routes: Sequence[Route], base: str) -> list[BaseRoute]:
    """Return routes below a URL prefix, "" or like "/annotator"."""
    return [Route(base + route.path, route.endpoint, methods=route.methods) for route in routes]


class LaterRoutes(BaseRoute):
    """All routes of programs and pages: the first request for one that is not in FIRST_ROUTES imports the others.

    Args:
        base: URL prefix, "" or like "/annotator".
        paths: Paths below it. A path that ends with / stands for all that begin with it.
    """

    def __init__(self, base: str, paths: Sequence[str]):
        self._base = base
        self._paths = frozenset(base + path for path in paths if not path.endswith("/"))
        self._prefixes = tuple(base + path for path in paths if path.endswith("/"))
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by path alone: the router that handles the request knows the methods."""
        is_own = scope["type"] == "http" and (scope["path"] in self._paths or scope["path"].startswith(self._prefixes))
        return (Match.FULL if is_own else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to its route, after importing all of them."""
        if self._router is None:
            self._router = Router(place_routes(await run_sync(load_routes), self._base))
        await self._router(scope, receive, send)
