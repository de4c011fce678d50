"""Serving several projects until told to end, and the file that a reverse proxy needs for it."""

import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from annotator.errors import AnnotatorError, several
from annotator.shares import counted
from annotator.ui.access.access_keys import Keys, address_with
from annotator.ui.access.serving_modes import ADDRESS, Access
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import projects
from annotator.ui.home.children import Children, How
from annotator.ui.home.projects import Place
from annotator.ui.home.start_page import StartPage
from annotator.ui.server import is_free


def ready(paths: Sequence[Path], port: int) -> list[Place]:
    """Return the projects of these folders, each with a port of its own behind that of the start page.

    Raises AnnotatorError as projects.find does.
    """
    places = projects.find(paths).all
    projects.give_ports(places, port + 1, is_free)
    return places


def caddyfile(places: Sequence[Place], access: Access) -> str:
    """Return the configuration that Caddy needs to pass everything on.

    Caddy adds TLS where the address has it, and passes WebSockets on by itself.
    """
    lines = [f"{access.origin} {{"]
    for place in places:
        if place.db is not None:
            lines.append(f"\thandle {access.base}/{place.name}/* {{")
            lines += [f"\t\treverse_proxy {ADDRESS}:{place.port}", "\t}"]
            lines.append(f"\tredir {access.base}/{place.name} {access.base}/{place.name}/")
    lines += [f"\thandle {access.base}/ {{", f"\t\treverse_proxy {ADDRESS}:{access.port}", "\t}", "}"]
    return "\n".join(lines) + "\n"


def run(places: Sequence[Place], access: Access, oidc: Path | None, *, json_log: bool = False) -> None:
    """Serve the projects and the start page until told to end (Ctrl+C, SIGTERM).

    Raises:
        AnnotatorError: For a taken port, and where none of them can be served.
    """
    if not is_free(access.port, access.host):
        raise AnnotatorError(f"Port {access.port} on {access.host} is in use by another program. Try another --port.")
    behind = [ADDRESS, *access.behind] if access.is_team else []
    how = How(access.mode, access.address, ",".join(behind), str(oidc.resolve()) if oidc else "", json_log)
    good = [place for place in places if place.db is not None]
    if not good:
        raise several("No project can be served:", [f"{place.path}: {place.trouble}" for place in places])
    children = Children(good, how)
    page = StartPage(places, children, how, access.port)
    for place in places:
        if place.trouble:
            sys.stderr.write(f"{place.path} is not served: {place.trouble}\n")
    with tempfile.TemporaryDirectory() as folder:
        if access.is_team:
            app, link = page.app(), access.address + "/"
        else:
            tokens, name = Tokens(Path(folder) / "secret"), secrets.token_urlsafe(9)
            app, link = (
                page.app(tokens, Keys(tokens, name)),
                address_with(access.address, tokens.key(name, seconds=None)),
            )
        quiet = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(app, access.host, access.port, forwarded_allow_ips=behind, **quiet)
        server = uvicorn.Server(config)
        children.start()
        try:
            threading.Thread(target=_announce, args=[server, link, len(good), access], daemon=True).start()
            with _ended_by_signals(server):
                server.run()
        finally:
            children.stop()


def _announce(server: uvicorn.Server, link: str, many: int, access: Access) -> None:
    while not server.started and not server.should_exit:
        threading.Event().wait(0.05)
    once = "" if access.is_team else " (it works once)"
    sys.stdout.write(f"{counted(many, 'project')}. Open this address in a browser{once}:\n    {link}\n")
    sys.stdout.write("Ctrl+C ends all; nothing is lost.\n")
    sys.stdout.flush()


@contextmanager
def _ended_by_signals(server: uvicorn.Server):
    """Have signals end the start page's server only.

    uvicorn would end the process by the signal it was sent, before the projects' servers have ended.
    """

    def end(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    server.capture_signals = _nothing  # type: ignore[method-assign]
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _nothing():
    yield
