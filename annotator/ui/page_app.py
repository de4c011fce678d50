"""The ASGI application of one project's pages and routes, with its worker."""

import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from annotator.memory_allocator import limit_memory_arenas
from annotator.settings import DEFAULT_PORT
from annotator.store.database.database import checkpoint_wal
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import AccessKeys
from annotator.ui.access.middleware import METRICS_PATH, READY_PATH, AccessMiddleware
from annotator.ui.access.serving_modes import Access, build_local_access
from annotator.ui.pages.imports.uploaded_files import remove_leftover_uploads
from annotator.ui.route_table import FIRST_ROUTES, LaterRoutes, load_routes, place_routes
from annotator.ui.serving.index_page import send_index_page
from annotator.ui.serving.logs import log_as_json
from annotator.ui.serving.read_ahead import ReadAhead
from annotator.ui.serving.shutdown import EXPORT_RUNNER_CACHE, IMPORT_RUNNER_CACHE, Shutdown
from annotator.ui.serving.sockets import set_up_connections, use_socket
from annotator.ui.serving.streamlit_files import StaticFilesMiddleware
from annotator.ui.serving.streamlit_options import build_options
from annotator.ui.serving.worker_watch import WorkerWatch
from annotator.ui.shared.navigation import PAGES
from annotator.ui.shared.work.downloads import get_downloads
from annotator.ui.streamlit_features import PageApp, create_page_app

# In a folder of its own: Streamlit takes a folder `pages` beside its script for pages of its own kind, and would show
# an empty page for an address like /grid until somebody has opened the first page.
ENTRY_SCRIPT = Path(__file__).parent / "entry" / "app.py"


def build_app(run: str, access: Access, json_log: bool = False, on_start: Callable[[], None] | None = None) -> PageApp:
    """Return the open project's ASGI application, which also runs the worker and ReadAhead.

    Args:
        on_start: Called once it can answer.
    """

    @asynccontextmanager
    async def lifespan(app: PageApp) -> AsyncIterator[None]:
        remove_leftover_uploads(served_project.db())
        watch, ahead = WorkerWatch(served_project.db(), access.taggers), ReadAhead(served_project.db(), load_routes)
        ending = Shutdown()
        ending.add_step(watch.stop)
        ending.add_step(lambda: _stop_runner(IMPORT_RUNNER_CACHE))
        ending.add_step(ahead.stop)
        ending.add_step(lambda: _stop_runner(EXPORT_RUNNER_CACHE))
        ending.add_step(get_downloads(served_project.db()).stop)  # also removes now what a killed process has left
        ending.add_step(checkpoint_wal)  # not at the exit of the process: uvicorn ends it by the signal
        with ending.handle_signals():
            watch.start()
            ahead.start()
            if on_start is not None:
                on_start()
            try:
                yield
            finally:
                ending.run_steps()

    return build_page_app(AccessKeys(served_project.tokens(), run), access, json_log, lifespan=lifespan)


def _stop_runner(cache: str) -> None:
    """Stop a runner of imports or exports, whose modules are imported only when somebody needs one."""
    runner = served_project.db().caches.find(cache, "")
    if runner is not None:
        runner.stop()


def build_page_app(
    keys: AccessKeys | None = None, access: Access | None = None, json_log: bool = False, **options
) -> PageApp:
    """Return the application of pages and routes, behind access control. `options` are those of Streamlit's app."""
    access = access or build_local_access(DEFAULT_PORT)
    set_up_connections(access.trusted_proxies, own_log=json_log)
    sessions = served_project.configure_access(access)
    door = Middleware(AccessMiddleware, tokens=served_project.tokens, keys=keys, access=access, sessions=sessions)
    first, *others = (f"/{page.name}" for page in PAGES)
    pages = [
        Route("/", _show_first_page),
        Route(first, _redirect_to_first_page),
        *(Route(address, send_index_page) for address in others),
    ]
    routes = [
        *place_routes([*FIRST_ROUTES, *pages], access.base_path),
        LaterRoutes(access.base_path, ("/api/", METRICS_PATH, READY_PATH)),
    ]
    shipped = Middleware(StaticFilesMiddleware, base=access.base_path, compress=access.is_team)
    return create_page_app(ENTRY_SCRIPT, routes, [door, shipped], secrets=_build_login_secrets(access), **options)


def _build_login_secrets(access: Access) -> dict[str, Any] | None:
    if access.provider is None:
        return None
    secret = served_project.tokens().provider_secret
    return {"auth": {**access.provider, "redirect_uri": f"{access.address}/oauth2callback", "cookie_secret": secret}}


async def _show_first_page(request: Request) -> Response:
    # Annotate was the first page once: bookmarks of its images lead to them.
    return _redirect_to_page(request, "annotate") if "image" in request.query_params else await send_index_page(request)


async def _redirect_to_first_page(request: Request) -> Response:
    # Streamlit knows its first page as "/" only and answers "page not found" for the address in a bookmark.
    return _redirect_to_page(request, "")


def _redirect_to_page(request: Request, page: str) -> RedirectResponse:
    query = request.url.query
    return RedirectResponse(f"{served_project.base_path()}/{page}{'?' if query else ''}{query}")


def run_app(
    app: PageApp, access: Access, json_log: bool = False, take_socket: Callable[[], socket.socket] | None = None
) -> None:
    """Run an application until the process stops.

    Args:
        take_socket: Returns the listening socket, once the app can accept connections. None: the app makes its own.
    """
    if json_log:
        log_as_json()
    limit_memory_arenas()
    if take_socket is not None:
        use_socket(take_socket)
    # What is loaded by now stays. A garbage collection that looks through it stops every answer for 75 ms.
    gc.freeze()
    app.run(config=build_options(access))
