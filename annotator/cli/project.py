"""The commands that create and open a project."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from annotator import settings
from annotator.cli.backbones import AcceptLicense, make_license_prompt
from annotator.cli.options import CommasOption, MethodName, ProjectArgument, ReadingFile, TaggerUrls, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_by_reason, show_progress
from annotator.humanize import format_count

commands = typer.Typer(rich_markup_mode=None)


class LogFormat(StrEnum):
    """Values of --log-format: how servers log."""

    text = "text"
    json = "json"


class AuthMode(StrEnum):
    """Values of --auth: how users sign in."""

    local = "local"
    invitation = "invitation"
    oidc = "oidc"


@commands.command(
    epilog=format_examples(
        "annotator init birds --images ~/photos/birds --classes classes.txt",
        "annotator init birds --images ~/photos/more   (adds new images; none is added twice)",
        "annotator init birds --images photos.zip",
        "annotator init birds --images s3://bucket/birds --in-place   (nothing is downloaded)",
    )
)
def init(
    project: ProjectArgument,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Folder with images, searched recursively; or a .zip, a list of paths, an address, ...",
        ),
    ] = None,
    classes: Annotated[Path | None, typer.Option(help="Text file, one class per line: name or name<TAB>text.")] = None,
    commas: CommasOption = None,
    labels: Annotated[
        Path | None, typer.Option(help="CSV of known labels: image,class,state or image,labels (separated by '|').")
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Read the images of an address where they lie; download none.")
    ] = False,
    cache_gb: Annotated[
        float | None,
        typer.Option(help="Disk for images that were read at addresses [default: 10 GB].", show_default=False),
    ] = None,
    bands: Annotated[
        str | None, typer.Option(help="Which bands of images of many are shown, such as 4,3,2 (see annotator bands).")
    ] = None,
    method: MethodName = None,
    backbone: Annotated[
        str | None, typer.Option(help="A network; annotator backbones lists some [default: efficientnet_lite0_320].")
    ] = None,
    reading: ReadingFile = None,
    accept_licence: AcceptLicense = False,
) -> None:
    """Create a project from a folder of images, or add images, classes and labels to it."""
    from annotator.exchange.imports.import_messages import describe_registration
    from annotator.exchange.project_setup import SetupSettings, set_up_project
    from annotator.exchange.reading.reading_file import load_reading
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.images.address_cache import check_cache_gb
    from annotator.store.locations.addresses import parse_location
    from annotator.store.pictures.bands import parse_bands
    from annotator.worker.features.backbone import prepare_backbone

    set_private_umask()
    if backbone is not None:
        with show_progress(f"Loading {backbone}") as show:
            prepare_backbone(backbone, make_license_prompt(accept_licence), make_step_callback(show))
    if cache_gb is not None:
        check_cache_gb(cache_gb)
    with show_progress("Reading images") as show:
        done = set_up_project(
            project,
            images_folder=parse_location(images) if images else None,
            fetching=make_step_callback(show),
            class_file=classes,
            label_file=labels,
            settings=SetupSettings(method, backbone, parse_bands(bands) if bands else None, cache_gb, commas=commas),
            progress=show,
            in_place=in_place,
            reading=load_reading(reading) if reading else None,
        )
    files = done.registered
    for sentence in done.sentences:
        print(escape_unprintable(sentence))
    print(f"{project}: {describe_registration(files)}.")
    for sentence in files.format_sentences():
        print(escape_unprintable(sentence))
    print_by_reason(files.bad, "skipped")
    print_by_reason(files.missing, "missing")
    if done.classes_added:
        print(f"{format_count(len(done.classes_added), 'class', 'classes')} added.")
    for warning in done.class_warnings:
        print(f"  {warning}")
    if labels:
        known = f", {done.labels_known:,} already answered and unchanged" if done.labels_known else ""
        print(f"{format_count(done.labels_added, 'label')} added{known}.")
    for example in done.labels_skipped.examples:
        print(f"  no label added, {escape_unprintable(example)}")
    if (more := done.labels_skipped.count - len(done.labels_skipped.examples)) > 0:
        print(f"  and none for {format_count(more, 'more skipped image', 'more skipped images')}")
    print(f"Next: annotator serve {project}")


@commands.command(
    epilog=format_examples(
        "annotator bands birds",
        "annotator bands birds 4,3,2",
        "annotator bands birds 8,4,3 --of 13",
    )
)
def bands(
    project: ProjectArgument,
    shown: Annotated[
        str | None, typer.Argument(help="Three numbers of bands, from 1, for red, green, blue; or one, as grey.")
    ] = None,
    of: Annotated[
        int | None, typer.Option("--of", help="Only for images of exactly so many bands, whatever they say themselves.")
    ] = None,
) -> None:
    """Show or choose the bands of multi-band images that people and the backbone see.

    Images that declare red, green and blue themselves need no choice. Images that waited for a choice are added, and
    images shown by other bands before are analyzed again. Labels stay.
    """
    from annotator.exchange.band_selection import choose_bands, describe_band_choice
    from annotator.store.database.database import Database
    from annotator.store.images.band_setting import describe_bands, get_shown_bands
    from annotator.store.pictures.bands import parse_bands

    db = Database(project)
    if shown is None:
        for sentence in describe_bands(get_shown_bands(db)):
            print(sentence)
        return
    three = parse_bands(shown)
    with show_progress("Reading images") as show:
        chosen = choose_bands(db, three, of, show)
    for sentence in describe_band_choice(chosen, three, of):
        print(escape_unprintable(sentence))
    print_by_reason(chosen.bad, "skipped")


@commands.command(
    epilog=format_examples(
        "annotator serve birds",
        "annotator serve birds --port 8600 --no-browser",
        "annotator serve birds --new-secret   (every browser has to sign in again)",
        "annotator serve birds --auth invitation --host 0.0.0.0 --url http://192.168.1.5:8501",
    )
)
def serve(
    project: ProjectArgument,
    port: Annotated[int, typer.Option(help="Port to listen at.", min=1, max=65535)] = settings.DEFAULT_PORT,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
    new_secret: Annotated[bool, typer.Option("--new-secret", help="Sign out every browser.")] = False,
    auth: Annotated[
        AuthMode, typer.Option(help="local: you, on this computer; invitation: members by links; oidc: by login.")
    ] = AuthMode.local,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: all of this machine.")] = "127.0.0.1",
    url: Annotated[str, typer.Option(help="What people type, such as https://example.org/annotator/.")] = "",
    behind: Annotated[
        str, typer.Option(metavar="ADDRESS,...", help="Reverse proxies whose X-Forwarded headers are believed.")
    ] = "",
    oidc: Annotated[
        Path | None, typer.Option(help="TOML file: client_id, client_secret, server_metadata_url of the provider.")
    ] = None,
    tagger_url: TaggerUrls = None,
    log: Annotated[LogFormat, typer.Option(help="How the server logs; json: one object a line.")] = LogFormat.text,
) -> None:
    """Start the app and its worker on this machine. Ctrl+C stops both, and nothing is lost.

    With --auth invitation or oidc the members of the project label together, each with a role (annotator members).
    """
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.ui.access.serving_modes import parse_access
    from annotator.ui.server import serve as run

    set_private_umask()
    reached = parse_access(auth.value, port, host, url, behind, oidc, tagger_url or ())
    run(project, reached, browser=browser, new_secret=new_secret, json_log=log == LogFormat.json)


@commands.command(epilog=format_examples("annotator link birds", "annotator link birds --member Ann"))
def link(
    project: ProjectArgument,
    member: Annotated[
        str | None, typer.Option(help="Whom it signs in, where there are members [default: the first owner].")
    ] = None,
) -> None:
    """Print a one-time link, valid for ten minutes, that signs in another browser while the project is being served."""
    from annotator.ui.access.access_keys import create_access_link

    print(create_access_link(project, member))
