"""Serving several projects until told to end, and the file that a reverse proxy needs for it."""

import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from annotator.errors import AnnotatorError, several
from annotator.settings import SAMPLE
from annotator.shares import counted
from annotator.store.database.new_folders import sweep
from annotator.store.disk.processes import part_of
from annotator.ui.access.access_keys import Keys, address_with
from annotator.ui.access.serving_modes import ADDRESS, Access
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import projects
from annotator.ui.home.children import Children, How
from annotator.ui.home.new_project import SAMPLE_NAME, SAMPLE_PAGE, NewProject
from annotator.ui.home.projects import Place
from annotator.ui.home.roots import Roots
from annotator.ui.home.start_page import StartPage
from annotator.ui.server import has_desktop, is_free, open_browser


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
    start = f"{ADDRESS}:{access.port}"
    for place in places:
        if place.db is not None:
            lines.append(f"\thandle {access.base}/{place.name}/* {{")
            lines += [f"\t\treverse_proxy {ADDRESS}:{place.port}", "\t}"]
            lines.append(f"\tredir {access.base}/{place.name} {access.base}/{place.name}/")
    for path in (f"{access.base}/start/*", f"{access.base}/"):
        lines += [f"\thandle {path} {{", f"\t\treverse_proxy {start}", "\t}"]
    lines.append("}")
    return "\n".join(lines) + "\n"


def folder_of_new(paths: Sequence[Path]) -> Path:
    """Return the folder in which new projects are made: the first of these that is no project, else that around it."""
    plain = [path for path in paths if not (path / "project.db").is_file()]
    return (plain[0] if plain else paths[0].resolve().parent).resolve()


def run(
    places: list[Place],
    access: Access,
    oidc: Path | None,
    *,
    folder: Path,
    roots: Sequence[Path] | None = None,
    sample: bool = False,
    browser: bool = False,
    json_log: bool = False,
) -> None:
    """Serve the projects and the start page until told to end (Ctrl+C, SIGTERM).

    Args:
        places: The projects; those that are made on the page are added.
        access: The people they are served to, and the address.
        oidc: The file about the login provider.
        folder: Of new projects.
        roots: The folders in which pages may look for images; None: no project can be made on the page.
        sample: Begin with New project, filled in with the sample images, unless that project is there.
        browser: Open the page in a browser.
        json_log: Log JSON, one object a line.

    Raises:
        AnnotatorError: For a taken port, and where members are to be served and no project can be.
    """
    if not is_free(access.port, access.host):
        raise AnnotatorError(
            f"Port {access.port} on {access.host} is in use by another program. Is the start page open already, at "
            f"{access.address}/? Else try another port: annotator home --port {access.port + 100}"
        )
    behind = [ADDRESS, *access.behind] if access.is_team else []
    how = How(access.mode, access.address, ",".join(behind), str(oidc.resolve()) if oidc else "", json_log)
    good = [place for place in places if place.db is not None]
    if access.is_team and not places:  # nobody could sign in anywhere
        raise AnnotatorError(
            f"There is no project in {folder}.\n    Make one with: annotator init PROJECT --images ..."
        )
    if access.is_team and not good:
        raise several("No project can be served:", [f"{place.path}: {place.trouble}" for place in places])
    children = Children([place for place in good if how.serves(place)], how)
    drawn = (SAMPLE,) if not access.is_team and (SAMPLE / "images").is_dir() else ()
    allowed = None if roots is None else Roots(roots, drawn)
    new = NewProject(folder, allowed, places, children, how, access.port, *drawn) if allowed else None
    begin = SAMPLE_PAGE if sample and drawn and all(place.name != SAMPLE_NAME for place in places) else "/"
    page = StartPage(places, children, how, access.port, new)
    for place in places:
        if place.trouble:
            sys.stderr.write(f"{place.path} is not served: {place.trouble}\n")
    with _private_folder() as private:
        tokens, name = Tokens(private / "secret"), secrets.token_urlsafe(9)
        if access.is_team:
            app, link = page.app(tokens), access.address + "/"
        else:
            app, link = (
                page.app(tokens, Keys(tokens, name)),
                address_with(access.address, tokens.key(name, seconds=None), begin),
            )
        quiet = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(app, access.host, access.port, forwarded_allow_ips=behind, **quiet)
        server = uvicorn.Server(config)
        children.start()
        try:
            opener = private / "open.html" if browser and has_desktop() else None
            threading.Thread(target=_announce, args=[server, link, len(good), access, opener], daemon=True).start()
            with _ended_by_signals(server):
                server.run()
        finally:
            if new:
                new.making.stop()
                new.dropping.stop()
            children.stop()


def _announce(server: uvicorn.Server, link: str, many: int, access: Access, opener: Path | None) -> None:
    while not server.started and not server.should_exit:
        threading.Event().wait(0.05)
    once = "" if access.is_team else " (it works once)"
    sys.stdout.write(f"{counted(many, 'project')}. Open this address in a browser{once}:\n    {link}\n")
    sys.stdout.write("Ctrl+C ends all; nothing is lost.\n")
    sys.stdout.flush()
    if opener:
        open_browser(opener, link)


@contextmanager
def _private_folder() -> Generator[Path]:
    """Yield a folder that goes with this start page; those that killed ones have left go first."""
    target = Path(tempfile.gettempdir()) / "annotator-start"
    sweep(target.parent, target.name)
    folder = part_of(target)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
