"""The web server of one project, supervising its worker."""

import gc
import html
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.memory_allocator import limit_memory_arenas
from annotator.settings import DEFAULT_PORT, get_login_name
from annotator.store.database.database import checkpoint_wal
from annotator.store.disk.file_permissions import write_private
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import SERVED_TO_TEAM_SETTING, AccessKeys, build_key_url, ensure_own_secret
from annotator.ui.access.error_pages import PAGE_TEMPLATE
from annotator.ui.access.middleware import AccessMiddleware
from annotator.ui.access.serving_modes import LOOPBACK_ADDRESS, Access, build_local_access
from annotator.ui.pages.imports.import_runner import get_import_runner
from annotator.ui.pages.imports.uploaded_files import remove_leftover_uploads
from annotator.ui.route_table import ROUTES
from annotator.ui.serving.index_page import send_index_page
from annotator.ui.serving.logs import log_as_json
from annotator.ui.serving.read_ahead import ReadAhead
from annotator.ui.serving.shutdown import Shutdown
from annotator.ui.serving.sockets import set_up_connections
from annotator.ui.serving.streamlit_files import StaticFilesMiddleware
from annotator.ui.serving.streamlit_options import build_options
from annotator.ui.serving.worker_watch import WorkerWatch
from annotator.ui.shared.navigation import PAGES
from annotator.ui.shared.work.export_runner import get_export_runner
from annotator.ui.streamlit_features import PageApp, create_page_app

# In a folder of its own: Streamlit takes a folder `pages` beside its script for pages of its own kind, and would show
# an empty page for an address like /grid until somebody has opened the first page.
ENTRY_SCRIPT = Path(__file__).parent / "entry" / "app.py"
SECRET_RENEWED_MESSAGE = "The project has a new secret: every browser needs a new address (annotator link).\n"
PROJECT_COPIED_MESSAGE = (
    "This project is a copy of another one, or was moved to another disk. It has a secret of its own now: browsers\n"
    "that had the original open have no access here, and answers that they have not sent stay with the original.\n"
)


def build_app(run: str, access: Access, json_log: bool = False) -> PageApp:
    """Return the open project's ASGI application, which also runs the worker and ReadAhead."""

    @asynccontextmanager
    async def lifespan(app: PageApp) -> AsyncIterator[None]:
        remove_leftover_uploads(served_project.db())
        watch, ahead = WorkerWatch(served_project.db(), access.taggers), ReadAhead(served_project.db())
        ending = Shutdown()
        ending.add_step(watch.stop)
        ending.add_step(get_import_runner(served_project.db()).stop)
        ending.add_step(ahead.stop)
        ending.add_step(get_export_runner(served_project.db()).stop)  # also removes now what a killed process has left
        ending.add_step(checkpoint_wal)  # not at the exit of the process: uvicorn ends it by the signal
        with ending.handle_signals():
            watch.start()
            ahead.start()
            try:
                yield
            finally:
                ending.run_steps()

    return build_page_app(AccessKeys(served_project.tokens(), run), access, json_log, lifespan=lifespan)


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
        Route(access.base_path + route.path, route.endpoint, methods=route.methods) for route in [*ROUTES, *pages]
    ]
    shipped = Middleware(StaticFilesMiddleware, base=access.base_path)
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


def serve(
    project: Path, access: Access, *, browser: bool = True, new_secret: bool = False, json_log: bool = False
) -> None:
    """Serve a project until Ctrl+C or SIGTERM.

    Args:
        new_secret: Invalidate all cookies and tokens.
        json_log: Log one JSON object per line.

    Raises:
        AnnotatorError: The project is missing or the port is taken.
        AlreadyRunning: The project is being served.
    """
    served_project.open_project(project)
    paths = served_project.db().paths
    lock = FileLock(paths.server_lock)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        where = served_project.db().get_setting("served_at", "an address it printed when it started")
        raise AlreadyRunning(
            f"{paths.project} is being served already, at {where}.\n    Open that, or end it first (Ctrl+C there)."
        ) from error
    if not is_port_free(access.port, access.host):
        raise AnnotatorError(
            f"Port {access.port} on {access.host} is in use by another program (another annotator, perhaps).\n"
            f"    Try: annotator serve {project} --port {find_free_port(access.port + 1)}"
        )
    if ensure_own_secret(served_project.db(), renew=new_secret):
        served_project.open_project(project)
        sys.stdout.write(SECRET_RENEWED_MESSAGE if new_secret else PROJECT_COPIED_MESSAGE)
    run = secrets.token_urlsafe(9)
    served_project.db().set_setting("served_at", access.address)
    served_project.db().set_setting("served_run", run)
    served_project.db().set_setting(SERVED_TO_TEAM_SETTING, access.is_team)
    owner = members.ensure_owner(served_project.db(), get_login_name()) if access.is_team else None
    key = served_project.tokens().create_key(run, seconds=None, member_id=owner.id if owner else None)
    link = build_key_url(access.address, key)
    opener = paths.opener_page if browser and has_desktop() else None
    threading.Thread(target=_announce_url, args=[link, access, owner, opener], daemon=True).start()
    run_app(build_app(run, access, json_log), access, json_log)


def run_app(app: PageApp, access: Access, json_log: bool = False) -> None:
    """Run an application until the process stops."""
    if json_log:
        log_as_json()
    limit_memory_arenas()
    # What is loaded by now stays. A garbage collection that looks through it stops every answer for 75 ms.
    gc.freeze()
    app.run(config=build_options(access))


def find_free_port(first: int) -> int:
    """Return the first free port, or raise AnnotatorError."""
    for port in range(first, min(first + 100, 65536)):
        if is_port_free(port):
            return port
    raise AnnotatorError(f"No port from {first} to {first + 99} is free on {LOOPBACK_ADDRESS}.")


def is_port_free(port: int, host: str = LOOPBACK_ADDRESS) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        if os.name != "nt":  # there the option lets two programs have one port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _announce_url(link: str, access: Access, owner: Member | None, opener: Path | None) -> None:
    """Print the URL once the app responds, and open a browser."""
    listening = {"0.0.0.0": LOOPBACK_ADDRESS, "::": "::1"}.get(access.host, access.host)
    for _ in range(600):
        with socket.socket(socket.AF_INET6 if ":" in listening else socket.AF_INET) as probe:
            probe.settimeout(1)
            if probe.connect_ex((listening, access.port)) == 0:
                break
        time.sleep(0.1)
    if owner is not None:
        others = "sign in" if access.provider else "have an invitation link each (annotator members PROJECT link NAME)"
        sys.stdout.write(f"Served to its members at {access.address}, where they {others}.\n")
    if access.is_unencrypted:
        sys.stdout.write("Not encrypted: whoever listens in this network can read labels and take over sessions.\n")
    whose = f", and signs in {owner.name}, an owner" if owner else ""
    sys.stdout.write(
        f"Open this address in a browser (it works once{whose}; for another browser: annotator link):\n    {link}\n"
        "Ctrl+C ends the app; nothing is lost.\n"
    )
    sys.stdout.flush()
    if opener:
        open_browser(opener, link)


def open_browser(opener: Path, link: str) -> None:
    """Open a link via a file, because program arguments are public."""
    write_private(opener, PAGE_TEMPLATE % (f'<meta http-equiv="refresh" content="0; url={html.escape(link)}">', ""))
    webbrowser.open(opener.as_uri())


def has_desktop() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
