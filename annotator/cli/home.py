"""The command that serves several projects behind one address."""

from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import examples
from annotator.cli.project import AuthMode, LogFormat

DEFAULT_PORT = 8500

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=examples(
        "annotator home projects",
        "annotator home birds mammals --port 8600",
        "annotator home projects --auth invitation --url https://labels.example.org/",
        "annotator home projects --auth invitation --url https://labels.example.org/ --caddyfile > Caddyfile",
    )
)
def home(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Projects, or folders that hold some.", show_default=False)
    ],
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
) -> None:
    """Serve several projects: a start page, and each project below it, /birds/, in a process of its own.

    With --auth invitation or oidc a reverse proxy stands in front (--caddyfile); a visitor sees the projects in which
    they have a role. Projects are looked for when it starts.
    """
    from annotator.errors import AnnotatorError
    from annotator.store.disk.private import files_for_owner_only
    from annotator.ui.access.serving_modes import access
    from annotator.ui.home.running import caddyfile as for_caddy
    from annotator.ui.home.running import ready, run

    files_for_owner_only()
    if auth != AuthMode.local and not url:
        raise AnnotatorError(f"--auth {auth.value} needs --url, the address that people type for the start page.")
    reached = access(auth.value, port, url=url, behind=behind, provider=oidc)
    places = ready(paths, port)
    if caddyfile:
        if not reached.is_team:
            raise AnnotatorError(
                "--caddyfile needs --auth invitation or oidc: on your own computer nothing is in front."
            )
        print(for_caddy(places, reached), end="")
        return
    run(places, reached, oidc, json_log=log == LogFormat.json)
