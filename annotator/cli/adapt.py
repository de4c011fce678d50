"""The commands that adapt a backbone to a project's labels, and list, copy and measure the results."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples, refuse_combined_options
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.process_stop import send_stop_signal, watch_parent

if TYPE_CHECKING:
    from annotator.store.networks.adapted_networks import AdaptedNetwork

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator adapt birds --estimate",
        "annotator adapt birds",
        "annotator adapt birds --on ray://10.0.0.5:10001 --storage s3://bucket/adapting --json",
    )
)
def adapt(
    context: typer.Context,
    project: ProjectArgument,
    on: Annotated[
        str,
        typer.Option(metavar="PLACE", help="local, ray (RAY_ADDRESS, else a cluster started here), ray://HOST:10001."),
    ] = "local",
    epochs: Annotated[int | None, typer.Option(help="Passes over the answered images [default: 4].", min=1)] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say how long it would take.")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Forget an adapting that was begun and stopped.")] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="For a cluster of several machines: a folder or s3:// address that all of them reach."),
    ] = None,
    as_json: AsJson = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
) -> None:
    """Train the last stages of the backbone on the project's labels, and use the result if it is better.

    It must be better on unbiased answers of images withheld from training, by more than chance. Then all images are
    analyzed with it in the background, and it is used once that is done. Ctrl+C stops, and the same command resumes
    after the last epoch.
    """
    refuse_combined_options(context, "estimate", "anew")
    if watched:  # before torch is loaded, which takes seconds
        watch_parent(send_stop_signal)  # exits as by a kill, after which the same command goes on
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.worker.adapting.adapt_now import adapt_now
    from annotator.worker.embedding.embed_now import embed_now
    from annotator.worker.process import prepare_next_backbone

    set_private_umask()
    with show_progress("Reading the project") as show:
        done = adapt_now(
            project,
            on,
            epochs,
            estimate_only=estimate,
            anew=anew,
            storage=storage,
            on_step=make_step_callback(show),
            notify=lambda sentence: print(escape_unprintable(sentence), file=sys.stderr),
        )
    waits = False
    if done.in_use and not watched:
        with show_progress("Analyzing all images with it") as show:
            if on != "local":
                embed_now(project, on, make_step_callback(show), done.network.name if done.network else None)
            waits = not prepare_next_backbone(project, show)

    def text() -> None:
        if done.network is not None:
            _print_network(done.network)
            if done.in_use:
                print(
                    "The worker analyzes all images with it, and then it is used."
                    if waits
                    else "It is used from now on."
                )
        elif not estimate:
            print(f"Stopped after {format_count(done.epochs_done, 'epoch')}. The same command goes on from there.")

    print_result(
        {
            "network": None if done.network is None else asdict(done.network),
            "in_use": done.in_use,
            "seconds": round(done.seconds, 3),
            "estimate_seconds": round(done.estimate.total_seconds, 3),
            "epochs": done.epochs_done,
        },
        as_json,
        text,
    )
    if done.network is None and not estimate:
        raise typer.Exit(130)


@commands.command(
    epilog=format_examples(
        "annotator adapted birds",
        "annotator adapted birds efficientnet_lite0_320.adapted1 --export birds-network",
        "annotator adapted birds efficientnet_lite0_320.adapted1 --use",
        "annotator adapted birds --again   (the worker adapts again whenever answers have doubled)",
    )
)
def adapted(
    project: ProjectArgument,
    name: Annotated[str | None, typer.Argument(help="One of the adapted networks.", show_default=False)] = None,
    export: Annotated[
        Path | None, typer.Option(help="Copy it with its model card to this new folder, for timm to load.")
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Analyze all images with it, and then use it.")] = False,
    again: Annotated[
        bool | None,
        typer.Option("--again/--not-again", help="Whether the worker adapts again whenever answers have doubled."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the adapted backbones of a project, copy one to a folder, or use one that was not found better."""
    from annotator.store.database.database import Database
    from annotator.store.networks import adaptation, adapted_networks, configuration

    db = Database(project)
    if again is not None:
        db.check_writable()
        adaptation.set_automatic(db, again)
    networks = adapted_networks.load_networks(db)
    if (export or use) and name is None:
        raise AnnotatorError("Name the network: annotator adapted PROJECT NAME --export FOLDER")
    if name is not None:
        networks = [network for network in networks if network.name == name]
        if not networks or export:
            adapted_networks.export(db, name, export or Path())
        if export:
            print(
                f"{escape_unprintable(str(export))}: "
                f'timm.create_model("local-dir:{escape_unprintable(str(export))}", pretrained=True)'
            )
        if use:
            adapted_networks.set_next_backbone(db, name)
            print("The worker analyzes all images with it, and then it is used.")
        if export or use:
            return
    current = configuration.get_backbone(db)

    def text() -> None:
        for network in networks:
            _print_network(network)
            if network.name == current:
                print("  in use")
        due = adaptation.find_reason_to_readapt(db)
        if due is not None:
            print(escape_unprintable(f"{due.sentence} annotator adapt PROJECT"))
        if not networks:
            print("No network was adapted in this project yet: annotator adapt PROJECT")

    print_result([asdict(network) | {"in_use": network.name == current} for network in networks], as_json, text)


def _print_network(network: "AdaptedNetwork") -> None:
    verdict = "better" if network.is_better else "not better beyond chance, so it is kept but not used"
    print(escape_unprintable(f"{network.name}: {verdict} than {network.parent} on held-out answers."))
    print(
        f"  mean AP {network.ap_before:.3f} -> {network.ap_after:.3f} (95 % interval of the difference "
        f"{network.ap_low:+.3f} to {network.ap_high:+.3f}), log loss {network.log_loss_before:.3f} -> "
        f"{network.log_loss_after:.3f}; {format_count(network.held_out_answers, 'answer')} about "
        f"{format_count(network.held_out_images, 'image')}, {network.judged_classes} of {network.classes} classes"
    )
    print(
        escape_unprintable(
            f"  fitted to {format_count(network.answers, 'answer')} about {format_count(network.images, 'image')}"
        )
    )
