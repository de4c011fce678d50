"""The commands that list, download and measure backbones, and compare them on a project's labels."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, print_table, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_duration

if TYPE_CHECKING:
    from annotator.store.networks.network_comparisons import NetworkComparison
    from spmll.backbones.licenses import License

commands = typer.Typer(rich_markup_mode=None)

AcceptLicense = Annotated[
    bool, typer.Option("--accept-licence", help="Accept the licence of the network's weights; kept on this machine.")
]


def make_license_prompt(accept: bool) -> "Callable[[License], bool]":
    """Return a function that shows a license and returns whether `accept` or the terminal user accepts it."""

    def accepts(licence: "License") -> bool:
        print(escape_unprintable(f"{licence.title}: {licence.sentence} {licence.url}"), file=sys.stderr)
        return accept or (sys.stdin.isatty() and typer.confirm("Do you accept it?", err=True))

    return accepts


@commands.command(
    epilog=format_examples(
        "annotator backbones",
        "annotator backbones birds   (with the hours for its images)",
        "annotator backbones birds --measure vit_small_patch14_reg4_dinov2.lvd142m",
        "annotator backbones --fetch vit_small_patch16_dinov3.lvd1689m --accept-licence",
        "annotator backbones --json",
    )
)
def backbones(
    project: Annotated[Path | None, typer.Argument(help="Folder of a project: its own networks, hours.")] = None,
    fetch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Download the weights of this network, or go on with it.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(metavar="NAME", help="Measure how fast this network is here; kept on this machine.")
    ] = None,
    accept_licence: AcceptLicense = False,
    as_json: AsJson = False,
) -> None:
    """List backbones: purpose, license, size, speed on this machine, and whether they need a download.

    You can also name any other network of timm, torchvision or open_clip, hf-hub:REPOSITORY, local-dir:FOLDER, or
    several joined by +. docs/backbones.md helps to choose.
    """
    from annotator.snapshot.network_table import load_network_table
    from annotator.store.database.database import Database
    from annotator.worker.features.backbone import measure_speed, prepare_backbone

    db = Database(project) if project else None
    if fetch:
        with show_progress(f"Loading {fetch}") as show:
            prepare_backbone(fetch, make_license_prompt(accept_licence), make_step_callback(show))
    if measure:
        with show_progress(f"Measuring {measure}"):
            measure_speed(measure, db)
    rows = load_network_table(db)

    def text() -> None:
        titles = ["Network", "Licence", "Parameters", "Pixels", "Texts", "Here", "Images/s"]
        print_table(
            titles + (["This project"] if db else []),
            [
                [
                    row.name + (" (in use)" if row.is_used else " (next)" if row.is_next else ""),
                    row.licence + ("" if not row.binds else ", accepted" if row.is_accepted else ", to accept"),
                    f"{row.parameters / 1e6:.1f} M" if row.parameters else "",
                    str(row.input_size or ""),
                    "yes" if row.reads_text else "",
                    {True: "yes", False: "no", None: ""}[row.is_here],
                    "" if row.images_a_second is None else f"{row.images_a_second:,.1f}",
                    *([] if not db else ["" if row.hours is None else format_duration(row.hours * 3600)]),
                ]
                for row in rows
            ],
        )
        for row in rows:
            facts = [row.about, f"Features: {row.pooling}." if row.pooling else "", f"From: {row.source}."]
            facts += [f"First: {row.lacking}"] if row.lacking else []
            print(escape_unprintable(f"  {row.name}: {' '.join(filter(None, facts))}"))

    print_result([asdict(row) for row in rows], as_json, text)


@commands.command(
    epilog=format_examples(
        "annotator backbone birds",
        "annotator backbone birds vit_small_patch14_reg4_dinov2.lvd142m",
        "annotator backbone birds --compare efficientnet_lite0,vit_pe_core_tiny_patch16_384.fb --json",
        "annotator backbone birds --use vit_small_patch14_reg4_dinov2.lvd142m",
        "annotator backbone birds --remove efficientnet_lite0",
    )
)
def backbone(
    project: ProjectArgument,
    name: Annotated[str | None, typer.Argument(help="Compare this network.", show_default=False)] = None,
    compare: Annotated[str, typer.Option(metavar="A,B,...", help="Compare these networks with the one in use.")] = "",
    use: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use this network, once all images are analyzed with it.")
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete the features of a network that is not in use.")
    ] = None,
    accept_licence: AcceptLicense = False,
    as_json: AsJson = False,
) -> None:
    """Compare backbones on the answers of a project, and change to a better one without interrupting work.

    New features are computed next to those in use. Then linear heads on either are cross-validated on unbiased answers.
    Features of the old network are only deleted by --remove.
    """
    from annotator.store.database.database import Database
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.networks import adapted_networks, configuration, network_comparisons
    from annotator.worker.features.backbone import prepare_backbone
    from annotator.worker.process import compare_pending_networks, prepare_next_backbone

    set_private_umask()
    db = Database(project)
    names = [word.strip() for word in [name or "", *compare.split(",")] if word.strip()]
    if configuration.get_backbone(db) in names:
        raise AnnotatorError(f"{configuration.get_backbone(db)} is the network in use: name others to compare it with.")
    waits = False
    if names or use:
        db.check_writable()
        with show_progress("Loading the network") as show:
            for wanted in [*names, *([use] if use else [])]:
                if adapted_networks.find_folder(db, wanted) is None:
                    prepare_backbone(wanted, make_license_prompt(accept_licence), make_step_callback(show))
    if names:
        network_comparisons.request_comparison(db, names)
        with show_progress("Analyzing all images") as show:
            waits = not compare_pending_networks(project, show)
    if use and use != configuration.get_backbone(db):
        adapted_networks.set_next_backbone(db, use)
        with show_progress(f"Analyzing all images with {use}") as show:
            waits = not prepare_next_backbone(project, show) or waits
    if remove and not network_comparisons.delete_network(db, remove):
        raise AnnotatorError(f"There is nothing of {remove!r} in this project.")
    results = [one for one in network_comparisons.load_comparisons(db) if not names or one.name in names]
    state = {"in_use": configuration.get_backbone(db), "next": adapted_networks.get_next_backbone(db)}

    def text() -> None:
        print(escape_unprintable(f"In use: {configuration.get_backbone(db)}"))
        if following := adapted_networks.get_next_backbone(db):
            print(escape_unprintable(f"Next, once all images are analyzed with it: {following}"))
        for one in results:
            _print_comparison(one, project)
        if waits:
            print("The worker analyzes all images; the result will be on the Settings page, and here.")
        elif network_comparisons.load_requested(db):
            print(
                escape_unprintable(
                    f"Not compared yet: {', '.join(network_comparisons.load_requested(db))}. The same command goes on."
                )
            )

    print_result(
        state | {"wanted": network_comparisons.load_requested(db), "compared": [asdict(one) for one in results]},
        as_json,
        text,
    )


def _print_comparison(compared: "NetworkComparison", project: Path) -> None:
    if compared.error:
        print(escape_unprintable(f"{compared.name}: {compared.error}", keep="\n"))
        return
    print(escape_unprintable(f"{compared.name} {compared.verdict} {compared.against} on the answers of this project."))
    print(
        f"  mean AP {compared.ap_before:.3f} -> {compared.ap_after:.3f} (95 % interval of the difference "
        f"{compared.ap_low:+.3f} to {compared.ap_high:+.3f}), log loss {compared.log_loss_before:.3f} -> "
        f"{compared.log_loss_after:.3f} ({compared.log_loss_low:+.3f} to {compared.log_loss_high:+.3f}); "
        f"{format_count(compared.answers, 'unbiased answer')} about {format_count(compared.images, 'image')}, "
        f"{format_count(compared.classes, 'class', 'classes')}"
    )
    if compared.is_better:
        print(escape_unprintable(f"  To use it: annotator backbone {project} --use {compared.name}"))
