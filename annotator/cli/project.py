"""The commands that make a project and open it."""

from pathlib import Path
from typing import Annotated

import typer

from annotator import settings
from annotator.cli.options import MethodName, Project, examples
from annotator.cli.printing import print_by_reason, printable, progress
from annotator.errors import AnnotatorError

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=examples(
        "annotator init birds --images ~/photos/birds --classes classes.txt",
        "annotator init birds --images ~/photos/more   (adds to it; nothing is ever registered twice)",
    )
)
def init(
    project: Project,
    images: Annotated[Path | None, typer.Option(help="Folder with images, searched recursively.")] = None,
    classes: Annotated[Path | None, typer.Option(help="Text file, one class a line: name, or name<TAB>text.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="CSV of known labels: image,class,state or image,labels ('|' between).")
    ] = None,
    method: MethodName = None,
    backbone: Annotated[
        str | None, typer.Option(help="Any timm or torchvision network [new project: efficientnet_lite2].")
    ] = None,
) -> None:
    """Make a project from a folder of images, or add images, classes and labels to one."""
    from annotator.exchange.setup import registered_in_words, set_up
    from annotator.store.private import files_for_owner_only
    from annotator.worker.backbone import check_backbone

    files_for_owner_only()
    if backbone is not None:
        check_backbone(backbone)
    with progress("Looking at images") as show:
        done = set_up(
            project,
            images_folder=images,
            class_file=classes,
            label_file=labels,
            method=method,
            backbone=backbone,
            progress=show,
        )
    files = done.registered
    print(f"{project}: {registered_in_words(files)}.")
    print_by_reason(files.bad, "kept out")
    print_by_reason(files.missing, "missing")
    if done.classes_added:
        print(f"{len(done.classes_added):,} classes added.")
    for warning in done.class_warnings:
        print(f"  {warning}")
    if labels:
        print(f"{done.labels_added:,} labels read, {done.labels_known:,} were answered already and left as they are.")
    for name in done.labels_without_image[:20]:
        print(f"  no label kept for {printable(name)}: its file was kept out")
    print(f"Go on with: annotator serve {project}")


@commands.command(
    epilog=examples(
        "annotator serve birds",
        "annotator serve birds --port 8600 --no-browser",
        "annotator serve birds --new-secret   (lets every browser in anew)",
    )
)
def serve(
    project: Project,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = settings.DEFAULT_PORT,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
    new_secret: Annotated[bool, typer.Option("--new-secret", help="End the access of every browser so far.")] = False,
) -> None:
    """Open the app on this machine, with its worker. Ctrl+C ends both; nothing is lost."""
    from annotator.store.private import files_for_owner_only
    from annotator.ui.server import serve as run

    files_for_owner_only()
    run(project, port=port, browser=browser, new_secret=new_secret)


@commands.command(epilog=examples("annotator link birds"))
def link(project: Project) -> None:
    """Print an address that lets one more browser in: for a project that is being served, once, within ten minutes."""
    from annotator.ui.keys import fresh_link

    print(fresh_link(project))


@commands.command(epilog=examples("annotator demo", "annotator demo my-demo --no-browser"))
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to make the demo project.")] = Path("demo-project"),
    port: Annotated[int | None, typer.Option(help="Port on 127.0.0.1 [default: the first free one].")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
) -> None:
    """Try it on the drawn scenes of sample_data; run again, it goes on where it was."""
    from annotator.store.private import files_for_owner_only
    from annotator.ui.server import free_port
    from annotator.ui.server import serve as run

    files_for_owner_only()
    sample = Path(__file__).resolve().parents[2] / "sample_data"
    if not (folder / "project.db").exists():
        if not (sample / "images").is_dir():
            raise AnnotatorError(f"The sample images are not where they should be: {sample / 'images'}. Install again.")
        from annotator.exchange.setup import set_up

        with progress("Looking at images") as show:
            set_up(folder, images_folder=sample / "images", class_file=sample / "classes.txt", progress=show)
    run(folder, port=port or free_port(settings.DEFAULT_PORT), browser=browser)
