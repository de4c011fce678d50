"""The commands that open the start page of several projects, or a demo with the sample images."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from annotator import settings
from annotator.cli.options import TaggerUrls, format_examples
from annotator.cli.printing import show_progress
from annotator.cli.project import AuthMode, LogFormat
from annotator.errors import AnnotatorError

DEFAULT_PORT = 8500
DEFAULT_FOLDER_NAME = "annotator-projects"  # in the person's home folder, until another was opened

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator home   (the folder that was opened last; so does annotator alone)",
        "annotator home projects --roots ~/photos,/data/photos",
        "annotator home birds mammals --port 8600",
        "annotator home projects --auth invitation --url https://labels.example.org/",
        "annotator home projects --auth invitation --url https://labels.example.org/ --caddyfile > Caddyfile",
    )
)
def home(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER...]",
            help="Projects, or folders that hold some [default: those opened last, else ~/annotator-projects].",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port of the start page; the projects have those after it.", min=1, max=65000)
    ] = DEFAULT_PORT,
    auth: Annotated[
        AuthMode, typer.Option(help="local: you, on this computer; invitation: members by links; oidc: by login.")
    ] = AuthMode.local,
    url: Annotated[str, typer.Option(help="What people type for the start page, such as https://example.org/.")] = "",
    behind: Annotated[
        str, typer.Option(metavar="ADDRESS,...", help="Reverse proxies on other machines whose headers are believed.")
    ] = "",
    oidc: Annotated[
        Path | None, typer.Option(help="TOML file: client_id, client_secret, server_metadata_url of the provider.")
    ] = None,
    caddyfile: Annotated[
        bool, typer.Option("--caddyfile", help="Print the configuration for Caddy in front, and end.")
    ] = False,
    log: Annotated[LogFormat, typer.Option(help="How the servers log; json: one object a line.")] = LogFormat.text,
    roots: Annotated[
        str,
        typer.Option(
            metavar="FOLDER,...",
            help="Where New project may look for images [default: your home folder; none where people sign in].",
            show_default=False,
        ),
    ] = "",
    tagger_url: TaggerUrls = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
) -> None:
    """Serve several projects: a start page, and each project in its own process under a path such as /birds/.

    New projects are created on the start page, in the first FOLDER. --auth invitation or oidc needs a reverse proxy
    (--caddyfile), and a visitor sees only projects in which they have a role. Projects are searched for once, at the
    start.
    """
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.ui.access.serving_modes import parse_access
    from annotator.ui.home.home_server import build_caddyfile, choose_new_project_folder, prepare_projects, run_home

    set_private_umask()
    if auth != AuthMode.local and not url:
        raise AnnotatorError(f"--auth {auth.value} needs --url, the address that people type for the start page.")
    reached = parse_access(
        auth.value, port, url=url, trusted_proxies=behind, provider=oidc, tagger_urls=tagger_url or ()
    )
    paths = _choose_folders(paths)
    places = prepare_projects(paths, port)
    if caddyfile:
        if not reached.is_team:
            raise AnnotatorError(
                "--caddyfile needs --auth invitation or oidc: on your own computer nothing is in front."
            )
        print(build_caddyfile(places, reached), end="")
        return
    allowed = _parse_roots(roots) if roots or not reached.is_team else None
    run_home(
        places,
        reached,
        oidc,
        folder=choose_new_project_folder(paths),
        roots=allowed,
        browser=browser and not reached.is_team,
        json_log=log == LogFormat.json,
    )


@commands.command(epilog=format_examples("annotator demo", "annotator demo my-demo --no-browser"))
def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of the demo project, made and opened at once [default: on the start page].", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1 [default: the first free one; of the start page 8500].")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
) -> None:
    """Try the app with the sample images. Run it again to continue.

    Without FOLDER, the start page opens with New project filled in for the sample images. Look at it, then click
    Create.
    """
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.ui.access.serving_modes import build_local_access
    from annotator.ui.home.home_server import choose_new_project_folder, prepare_projects
    from annotator.ui.home.home_server import run_home as run_start_page
    from annotator.ui.server import find_free_port, serve

    set_private_umask()
    images = settings.SAMPLE_DATA_FOLDER / "images"
    if not images.is_dir() and not (folder and (folder / "project.db").exists()):
        raise AnnotatorError(f"The sample images are missing: {images}. Install again.")
    if folder is None:
        paths, reached = _choose_folders(None), build_local_access(port or DEFAULT_PORT)
        places = prepare_projects(paths, reached.port)
        run_start_page(
            places,
            reached,
            None,
            folder=choose_new_project_folder(paths),
            roots=[Path.home()],
            sample=True,
            browser=browser,
        )
        return
    if not (folder / "project.db").exists():
        from annotator.exchange.project_setup import set_up_project

        with show_progress("Reading images") as show:
            set_up_project(
                folder, images_folder=images, class_file=settings.SAMPLE_DATA_FOLDER / "classes.txt", progress=show
            )
    serve(folder, build_local_access(port or find_free_port(settings.DEFAULT_PORT)), browser=browser)


def _choose_folders(paths: list[Path] | None) -> list[Path]:
    """Return the given folders and store them as the last opened ones, or else return those opened last."""
    from annotator.store.networks import machine_settings

    if paths:
        with contextlib.suppress(AnnotatorError):  # remembering is a convenience
            machine_settings.save_home_folders([path.resolve() for path in paths])
        return paths
    if kept := [path for path in machine_settings.load_home_folders() if path.is_dir()]:
        return kept
    usual = Path.home() / DEFAULT_FOLDER_NAME
    usual.mkdir(mode=0o700, exist_ok=True)
    return [usual]


def _parse_roots(text: str) -> list[Path]:
    """Return the folders in which users may browse for images, from comma-separated text. Raises AnnotatorError."""
    roots = [Path(part.strip()).expanduser() for part in text.split(",") if part.strip()]
    if missing := [str(root) for root in roots if not root.is_dir()]:
        raise AnnotatorError(f"--roots: {', '.join(missing)} is no folder. Is the path spelled right?")
    return roots or [Path.home()]
