"""The web server of one project: the browser is answered before the app and Streamlit are imported."""

import html
import os
import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.settings import get_login_name
from annotator.store.disk.file_permissions import write_private
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.access_keys import (
    SERVED_TO_TEAM_SETTING,
    build_key_url,
    cookie_name,
    ensure_own_secret,
)
from annotator.ui.access.serving_modes import LOOPBACK_ADDRESS, Access
from annotator.ui.serving.early_server import EarlyServer
from annotator.ui.shared.navigation import FIRST_PAGE, PAGES

LISTEN_BACKLOG = 100  # connections that wait to be accepted
SECRET_RENEWED_MESSAGE = "The project has a new secret: every browser needs a new address (annotator link).\n"
PROJECT_COPIED_MESSAGE = (
    "This project is a copy of another one, or was moved to another disk. It has a secret of its own now: browsers\n"
    "that had the original open have no access here, and answers that they have not sent stay with the original.\n"
)


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
    listening = _listen(access.port, access.host, project)
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
    early = None if access.is_team else _start_early_server(listening)

    def announce() -> None:
        _announce_url(link, access, owner)
        if browser and has_desktop():  # a browser in text mode would end only when it is closed
            threading.Thread(target=open_browser, args=[paths.opener_page, link], daemon=True).start()

    if early:
        announce()
    from annotator.ui.page_app import build_app, run_app  # Streamlit: half of the time to the first page

    app = build_app(run, access, json_log, on_start=None if early else announce)
    run_app(app, access, json_log, take_socket=early.hand_over if early else lambda: listening)


def _start_early_server(listening: socket.socket) -> EarlyServer:
    port, tokens = listening.getsockname()[1], served_project.tokens()
    pages = frozenset({"/", *(f"/{page.name}" for page in PAGES if page is not FIRST_PAGE)})
    return EarlyServer(listening, pages, lambda cookie: tokens.is_valid_cookie(cookie, port), cookie_name(port))


def _listen(port: int, host: str, project: Path) -> socket.socket:
    """Return a listening socket, on which browsers wait for the app, or raise AnnotatorError if the port is taken."""
    listening = _make_socket(host)
    try:
        listening.bind((host, port))
        listening.listen(LISTEN_BACKLOG)
    except OSError as error:
        listening.close()
        raise AnnotatorError(
            f"Port {port} on {host} is in use by another program (another annotator, perhaps).\n"
            f"    Try: annotator serve {project} --port {find_free_port(port + 1)}"
        ) from error
    listening.setblocking(False)
    return listening


def find_free_port(first: int) -> int:
    """Return the first free port, or raise AnnotatorError."""
    for port in range(first, min(first + 100, 65536)):
        if is_port_free(port):
            return port
    raise AnnotatorError(f"No port from {first} to {first + 99} is free on {LOOPBACK_ADDRESS}.")


def is_port_free(port: int, host: str = LOOPBACK_ADDRESS) -> bool:
    with _make_socket(host) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _make_socket(host: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if os.name != "nt":  # where it would share a port with the program that listens there
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # :: means IPv4, too
    return made


def _announce_url(link: str, access: Access, owner: Member | None) -> None:
    """Print the URL."""
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


def open_browser(opener: Path, link: str) -> None:
    """Open a link via a file, because program arguments are public."""
    from annotator.ui.access.error_pages import PAGE_TEMPLATE

    write_private(opener, PAGE_TEMPLATE % (f'<meta http-equiv="refresh" content="0; url={html.escape(link)}">', ""))
    webbrowser.open(opener.as_uri())


def has_desktop() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
