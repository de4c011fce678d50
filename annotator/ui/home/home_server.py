"""The server of several projects, and its proxy configuration."""

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

from annotator.errors import AnnotatorError, combine_problems
from annotator.humanize import format_count
from annotator.process_stop import STOP_SIGNALS
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.store.database.new_folders import remove_unfinished_folders
from annotator.store.disk.processes import build_temporary_path
from annotator.ui.access.access_keys import AccessKeys, build_key_url
from annotator.ui.access.serving_modes import LOOPBACK_ADDRESS, Access
from annotator.ui.access.tokens import Tokens
from annotator.ui.home import hosted_projects
from annotator.ui.home.allowed_roots import AllowedRoots
from annotator.ui.home.hosted_projects import HostedProject
from annotator.ui.home.new_project import SAMPLE_PAGE_PATH, SAMPLE_PROJECT_NAME, NewProjectPage
from annotator.ui.home.project_servers import ProjectServers, ServingOptions
from annotator.ui.home.start_page import StartPage
from annotator.ui.server import has_desktop, is_port_free, open_browser


def prepare_projects(paths: Sequence[Path], port: int) -> list[HostedProject]:
    """Return the projects of these folders, with ports after the start page's."""
    places = hosted_projects.find_projects(paths).all
    hosted_projects.assign_ports(places, port + 1, is_port_free)
    return places


def build_caddyfile(places: Sequence[HostedProject], access: Access) -> str:
    lines = [f"{access.origin} {{"]
    start = f"{LOOPBACK_ADDRESS}:{access.port}"
    for place in places:
        if place.db is not None:
            lines.append(f"\thandle {access.base_path}/{place.name}/* {{")
            lines += [f"\t\treverse_proxy {LOOPBACK_ADDRESS}:{place.port}", "\t}"]
            lines.append(f"\tredir {access.base_path}/{place.name} {access.base_path}/{place.name}/")
    for path in (f"{access.base_path}/start/*", f"{access.base_path}/"):
        lines += [f"\thandle {path} {{", f"\t\treverse_proxy {start}", "\t}"]
    lines.append("}")
    return "\n".join(lines) + "\n"


def choose_new_project_folder(paths: Sequence[Path]) -> Path:
    """Return the folder for new projects: the first path that is not a project, else the first path's parent."""
    plain = [path for path in paths if not (path / "project.db").is_file()]
    return (plain[0] if plain else paths[0].resolve().parent).resolve()


def run_home(
    places: list[HostedProject],
    access: Access,
    oidc: Path | None,
    *,
    folder: Path,
    roots: Sequence[Path] | None = None,
    sample: bool = False,
    browser: bool = False,
    json_log: bool = False,
) -> None:
    """Serve the projects and the start page until Ctrl+C or SIGTERM.

    Args:
        places: Extended by new projects.
        oidc: Login provider file.
        folder: Folder of new projects.
        roots: Folders with images. None disables new projects.

    Raises:
        AnnotatorError: The port is taken, or members have no project.
    """
    if not is_port_free(access.port, access.host):
        raise AnnotatorError(
            f"Port {access.port} on {access.host} is in use by another program. Is the start page open already, at "
            f"{access.address}/? Else try another port: annotator home --port {access.port + 100}"
        )
    behind = [LOOPBACK_ADDRESS, *access.trusted_proxies] if access.is_team else []
    how = ServingOptions(
        access.mode,
        access.address,
        ",".join(behind),
        str(oidc.resolve()) if oidc else "",
        json_log,
        access.taggers.options,
    )
    good = [place for place in places if place.db is not None]
    if access.is_team and not places:  # nobody could sign in anywhere
        raise AnnotatorError(
            f"There is no project in {folder}.\n    Make one with: annotator init PROJECT --images ..."
        )
    if access.is_team and not good:
        raise combine_problems("No project can be served:", [f"{place.path}: {place.trouble}" for place in places])
    children = ProjectServers([place for place in good if how.serves(place)], how)
    drawn = (SAMPLE_DATA_FOLDER,) if not access.is_team and (SAMPLE_DATA_FOLDER / "images").is_dir() else ()
    allowed = None if roots is None else AllowedRoots(roots, drawn)
    new = NewProjectPage(folder, allowed, places, children, how, access.port, *drawn) if allowed else None
    begin = SAMPLE_PAGE_PATH if sample and drawn and all(place.name != SAMPLE_PROJECT_NAME for place in places) else "/"
    page = StartPage(places, children, how, access.port, new)
    for place in places:
        if place.trouble:
            sys.stderr.write(f"{place.path} is not served: {place.trouble}\n")
    with _make_private_folder() as private:
        tokens, name = Tokens(private / "secret"), secrets.token_urlsafe(9)
        if access.is_team:
            app, link = page.build_app(tokens), access.address + "/"
        else:
            app, link = (
                page.build_app(tokens, AccessKeys(tokens, name)),
                build_key_url(access.address, tokens.create_key(name, seconds=None), begin),
            )
        quiet = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(app, access.host, access.port, forwarded_allow_ips=behind, **quiet)
        server = uvicorn.Server(config)
        children.start()
        try:
            opener = private / "open.html" if browser and has_desktop() else None
            threading.Thread(target=_announce_url, args=[server, link, len(good), access, opener], daemon=True).start()
            with _stop_on_signals(server):
                server.run()
        finally:
            if new:
                new.making.stop()
                new.dropping.remove_unfinished()
            children.stop()


def _announce_url(server: uvicorn.Server, link: str, project_count: int, access: Access, opener: Path | None) -> None:
    while not server.started and not server.should_exit:
        threading.Event().wait(0.05)
    once = "" if access.is_team else " (it works once)"
    sys.stdout.write(f"{format_count(project_count, 'project')}. Open this address in a browser{once}:\n    {link}\n")
    sys.stdout.write("Ctrl+C ends all; nothing is lost.\n")
    sys.stdout.flush()
    if opener:
        open_browser(opener, link)


@contextmanager
def _make_private_folder() -> Generator[Path]:
    target = Path(tempfile.gettempdir()) / "annotator-start"
    remove_unfinished_folders(target.parent, target.name)
    folder = build_temporary_path(target)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _stop_on_signals(server: uvicorn.Server):
    """Make signals stop only this server, because uvicorn would kill the process too early."""

    def end(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    server.capture_signals = _capture_no_signals  # type: ignore[method-assign]
    before = {number: signal.signal(number, end) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _capture_no_signals():
    yield
