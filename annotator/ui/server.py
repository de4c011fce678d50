"""The app's process: Streamlit pages, our routes beside them, and the watch over the worker. On 127.0.0.1 only."""

import os
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from filelock import FileLock, Timeout
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.ui import context
from annotator.ui.routes import ROUTES
from annotator.ui.sockets import send_at_once
from annotator.ui.watch import Watch

ADDRESS = "127.0.0.1"
# In a folder of its own: Streamlit takes a folder `pages` beside its script for pages of its own kind, and until
# somebody had opened the first page an address like /grid, also after a restart, led to an empty one.
SCRIPT = Path(__file__).parent / "entry" / "app.py"
CONFIG = {
    "server.address": ADDRESS,  # unset would mean every network this machine is in
    "server.allowedHosts": ["127.0.0.1", "localhost"],  # no page of another name may reach in (DNS rebinding)
    "server.headless": True,  # the browser is opened here, when the port answers
    "server.fileWatcherType": "none",
    "server.enableStaticServing": False,
    "browser.gatherUsageStats": False,
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "client.showSidebarNavigation": False,
    "logger.hideWelcomeMessage": True,
    # Grounds without a tint of their own, since colours of photos are judged on them.
    "theme.baseRadius": "9px",
    "theme.light.primaryColor": "#0b7265",
    "theme.light.backgroundColor": "#fcfcfb",
    "theme.light.secondaryBackgroundColor": "#efefed",
    "theme.light.textColor": "#1c2221",
    "theme.dark.primaryColor": "#4cc2ae",
    "theme.dark.backgroundColor": "#161817",
    "theme.dark.secondaryBackgroundColor": "#232625",
    "theme.dark.textColor": "#e9ecea",
}


def build_app(project: Path) -> st.App:
    """The ASGI application of one project. Raises AnnotatorError when there is no such project."""
    context.open_project(project)

    @asynccontextmanager
    async def lifespan(app: st.App) -> AsyncIterator[None]:
        watch = Watch(context.db())
        watch.start()
        try:
            yield
        finally:
            watch.stop()

    return page_app(lifespan=lifespan)


def page_app(**options) -> st.App:
    """The pages and routes of the project that is open, with further options of st.App."""
    send_at_once()
    return st.App(SCRIPT, routes=[*ROUTES, Route("/annotate", _to_first_page)], **options)


async def _to_first_page(request: Request) -> RedirectResponse:
    # Streamlit knows its first page as "/" only, and calls the address that stands in a bookmark a page not found.
    return RedirectResponse("/")


def serve(project: Path, *, port: int, browser: bool = True) -> None:
    """Serve a project until told to end (Ctrl+C, SIGTERM).

    Raises AnnotatorError when there is no such project or the port is in use, AlreadyRunning when the project is
    being served already.
    """
    app = build_app(project)
    paths = context.db().paths
    lock = FileLock(paths.server_lock)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        where = context.db().setting("served_at", "an address it printed when it started")
        raise AlreadyRunning(
            f"{paths.project} is being served already, at {where}.\n    Open that, or end it first (Ctrl+C there)."
        ) from error
    if not _is_free(port):
        raise AnnotatorError(
            f"Port {port} on {ADDRESS} is in use by another program (another annotator, perhaps).\n"
            f"    Try: annotator serve {project} --port {free_port(port + 1)}"
        )
    address = f"http://{ADDRESS}:{port}"
    context.db().set_setting("served_at", address)
    threading.Thread(target=_announce, args=[address, port, browser], daemon=True).start()
    app.run(config={**CONFIG, "server.port": port})


def free_port(first: int) -> int:
    """The first free port from here on. Raises AnnotatorError when a hundred are taken."""
    for port in range(first, min(first + 100, 65536)):
        if _is_free(port):
            return port
    raise AnnotatorError(f"No port from {first} to {first + 99} is free on {ADDRESS}.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _announce(address: str, port: int, browser: bool) -> None:
    """Say where the app is once it answers there, and open it where there is a desktop."""
    for _ in range(600):
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((ADDRESS, port)) == 0:
                break
        time.sleep(0.1)
    sys.stdout.write(f"Open {address} in a browser. Ctrl+C ends it; nothing is lost.\n")
    sys.stdout.flush()
    if browser and _has_desktop():
        webbrowser.open(address)


def _has_desktop() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
