"""The commands that export a classifier, and run it on a folder of images."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, show_progress
from annotator.humanize import format_count
from annotator.process_stop import send_stop_signal, watch_parent

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator classifier birds birds.onnx",
        "annotator classifier birds birds.onnx --expected-error 0.02 --overwrite",
        "annotator classifier birds birds.safetensors   (weights for torch, with birds.json beside them)",
    )
)
def classifier(
    project: ProjectArgument,
    file: Annotated[Path, typer.Argument(help="The file to write: .onnx or .safetensors.", show_default=False)],
    expected_error: Annotated[
        float, typer.Option(help="Share of wrong answers that the thresholds of a class allow.")
    ] = 0.01,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
) -> None:
    """Export the current model as a classifier that needs no project: backbone, head and thresholds in one file.

    A card (.md) next to it describes its training data, its quality by audits, and the license of the backbone.
    """
    if watched:  # before torch is loaded, which takes seconds
        watch_parent(send_stop_signal, 0)
    from annotator.exchange.exports.thresholds import Limits
    from annotator.worker.taking_home.classifier_writer import write_classifier

    with show_progress("Reading the project") as show:
        described, files = write_classifier(
            project, file, Limits(expected_error), overwrite=overwrite, on_step=make_step_callback(show)
        )

    def text() -> None:
        print(f"{format_count(len(described.classes), 'class', 'classes')}: {', '.join(str(path) for path in files)}")
        for sentence in (*described.facts["about"], *described.facts["quality"]):
            print(escape_unprintable(str(sentence)))

    print_result(
        {"files": [str(path) for path in files], "classes": len(described.classes), **described.facts}, as_json, text
    )


@commands.command(
    epilog=format_examples(
        "annotator classify birds.onnx photos --format csv",
        "annotator classify birds.onnx photos --format json --to birds.jsonl",
        "annotator classify birds.onnx photos/0118.jpg",
    )
)
def classify(
    file: Annotated[Path, typer.Argument(help="An .onnx file of annotator classifier.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="A folder of images, or one image.", show_default=False)],
    kind: Annotated[str, typer.Option("--format", metavar="NAME", help="csv, or json: an object a line.")] = "csv",
    to: Annotated[Path | None, typer.Option(help="The new file to write [default: the output].")] = None,
    threads: Annotated[int, typer.Option(help="Threads that compute [default: one a core].", min=0)] = 0,
) -> None:
    """Run an exported classifier on a folder of images, without a project and without torch.

    The output has the probability of every class per image, and the names of classes above their thresholds.
    """
    from annotator.exchange.classifier.folder_classification import (
        check_output_format,
        classify_files,
        list_image_files,
        write_classifications,
    )
    from annotator.exchange.classifier.onnx_classifier import load_classifier
    from annotator.exchange.files.text_output import open_text_output

    check_output_format(kind)
    loaded, files = load_classifier(file, threads=threads), list_image_files(folder)
    with show_progress("Classifying") as show:
        found = classify_files(loaded, files, folder, show)
        with nullcontext(sys.stdout) if to is None else open_text_output(to) as target:
            images, unread = write_classifications(loaded, found, target, kind)
    if unread:
        print(f"{unread:,} of {format_count(images, 'image')} could not be read: see `problem`.", file=sys.stderr)
    if images == unread:
        raise typer.Exit(1)
