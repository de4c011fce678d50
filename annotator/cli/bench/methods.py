"""`annotator bench methods` and `annotator bench papers`: comparisons of training methods."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.bench import bench_inputs
from annotator.cli.bench.bench_outputs import check_output_files, output_result
from annotator.cli.options import AsJson, format_examples
from annotator.errors import AnnotatorError

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    "methods",
    epilog=format_examples(
        "annotator bench methods",
        "annotator bench methods --images photos --truth truth.csv --share 0.05,0.2,1.0 --trials 20 --plot methods.png",
        "annotator bench methods --no-split --share 0.5 --methods an,em_apl,gr,auto",
        "annotator bench methods --clicks salient,biased --salience 1,2 --plot clicks.png",
        "annotator bench methods --dataset voc --root VOCdevkit --regime finetune --methods an,gr,role+linear_init",
        "annotator bench methods --dataset voc --root VOCdevkit --protocol cole --methods an,an_ls,role",
        "annotator bench methods --methods an_ls,gr --set an_ls.positive=0 --set gr.schedule=paper",
        "annotator bench methods --trials 20 --on ray://HEAD:10001",
    ),
)
def bench_methods(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(help="CSV image,class,left,top,right,bottom: how large things are, for salient clicks."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="voc|coco|nus|cub", help="A data set of the papers.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of that data set.")] = None,
    methods: Annotated[str, typer.Option(metavar="A,B,...", help="Methods to compare.")] = "all",
    changed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME.PARAMETER=VALUE", help="Change a constant of a method; may be repeated."),
    ] = None,
    regime: Annotated[
        str, typer.Option(metavar="linear|finetune", help="A linear head on frozen features, or the whole network.")
    ] = "linear",
    share: Annotated[
        str, typer.Option(metavar="S,S,...", help="Shares of the training images that have a label.")
    ] = "1.0",
    clicks: Annotated[
        str,
        typer.Option(
            metavar="random|salient|biased,...",
            help="Which true class of an image is named: any, rather the salient and large, or the frequent.",
        ),
    ] = "random",
    salience: Annotated[
        str, typer.Option(metavar="S,S,...", help="How strongly salient and biased clicks depend on it.")
    ] = "1",
    labels: Annotated[
        str, typer.Option(metavar="single|full", help="Known labels of such an image: some, or all of them.")
    ] = "single",
    positives: Annotated[
        str, typer.Option(metavar="N|all", help="Present labels of a training image that are known.")
    ] = "1",
    negatives: Annotated[
        str, typer.Option(metavar="N|all", help="Absent labels of a training image that are known.")
    ] = "0",
    validate: Annotated[
        str,
        typer.Option(
            metavar="full|observed|none",
            help="Labels of validation images that choose the epoch; none: the last epoch counts.",
        ),
    ] = "full",
    measures: Annotated[
        str,
        typer.Option(metavar="A,B,...", help="Also report train_map, wasserstein, precision@K, recall@K, K a number."),
    ] = "",
    seeds: Annotated[int, typer.Option(help="Repetitions with other random labels and weights.")] = 3,
    trials: Annotated[
        int, typer.Option(help="Settings tried per method, chosen by validation mAP; 1: the defaults.")
    ] = 1,
    backbone: Annotated[
        str | None, typer.Option(help="Network [linear: efficientnet_lite0_320, finetune: resnet50.tv_in1k].")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs [default: the method's own].")] = None,
    size: Annotated[int, typer.Option(help="finetune and --protocol cole: side of the images, in pixels.")] = 448,
    batch: Annotated[int | None, typer.Option(help="Images per step [default: the method's own].")] = None,
    no_split: Annotated[
        bool, typer.Option("--no-split", help="Train on all images to the last epoch, as in a project.")
    ] = False,
    linear_init: Annotated[
        bool, typer.Option("--linear-init", help="finetune: train the classifier alone first, on frozen features.")
    ] = False,
    precision: Annotated[
        str | None,
        typer.Option(metavar="fp32|bf16|fp16", help="finetune: numbers to compute with [default: those of the paper]."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="own|cole",
            help="linear: our recipe, or that of Cole et al.: 25 epochs, 448 pixels, the best of 8 settings.",
        ),
    ] = "own",
    device: Annotated[str, typer.Option(help="cpu, cuda, ... [auto: cuda where there is one].")] = "auto",
    work: Annotated[Path, typer.Option(help="Keeps features and finished results, and resumes from them.")] = Path(
        "bench-methods"
    ),
    plot: Annotated[Path | None, typer.Option(help="Draw the result to this file (png, svg, pdf).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file, as Markdown.")] = None,
    on: Annotated[
        str, typer.Option("--on", metavar="local|ray|ray://HOST:PORT", help="Where methods are trained.")
    ] = "local",
    as_json: AsJson = False,
) -> None:
    """Compare all methods on the same images and labels: test mAP, missing labels found, calibration, time.

    A share of the training images has one positive label each. Validation and test images are fully labeled. Clicks
    that are not random are compared with random ones in the same run.
    """
    from annotator.benchmark.methods.comparison_options import Options
    from annotator.benchmark.methods.methods_comparison import build_methods_report, measure_methods
    from annotator.benchmark.plots import draw_comparison
    from annotator.cluster.connection import check_cluster_option

    check_output_files(plot, markdown)
    options = Options(
        methods=bench_inputs.split_names(methods),
        regime=regime,
        shares=bench_inputs.parse_numbers(share),
        seeds=seeds,
        trials=trials,
        backbone=backbone,
        epochs=epochs,
        size=size,
        batch=batch,
        device=device,
        linear_init=linear_init,
        work=work,
        no_split=no_split,
        on=on,
        clicks=bench_inputs.split_names(clicks),
        strengths=bench_inputs.parse_numbers(salience, "--salience"),
        precision=precision,
        protocol=protocol,
        changed=tuple(changed or ()),
        labels=labels,
        positives=_parse_label_count(positives, "--positives"),
        negatives=_parse_label_count(negatives, "--negatives"),
        validate=validate,
        measures=bench_inputs.split_names(measures),
    )
    check_cluster_option(on)
    command = f"annotator {shlex.join(sys.argv[1:])}"
    result = bench_inputs.run_benchmark(
        measure_methods, images, truth, boxes=boxes, dataset=dataset, root=root, options=options, command=command
    )
    if plot:
        draw_comparison(result, plot)
    output_result(result, build_methods_report, as_json, markdown)


@commands.command(
    "papers",
    epilog=format_examples(
        "annotator bench papers",
        "annotator bench papers --table cole-2 --dataset voc --root VOCdevkit --plan",
        "annotator bench papers --table gr-3 --dataset voc --root VOCdevkit --markdown gr-3.md",
        'annotator bench papers --table gr-2 --dataset coco --root coco --row GR --row "EM + APL" --seeds 1',
    ),
)
def bench_papers(
    table: Annotated[str | None, typer.Option(help="The table [default: list them].")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="voc|coco|nus|cub", help="The data set.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of that data set.")] = None,
    regime: Annotated[
        str | None, typer.Option(metavar="linear|finetune|lem", help="Only this part of the table [default: all].")
    ] = None,
    row: Annotated[list[str] | None, typer.Option(help="Only this row; may be repeated.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done and how long it takes, no more.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Runs of each row [default: as in the paper].", min=1)] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs [default: as in the paper].", min=1)] = None,
    size: Annotated[int | None, typer.Option(help="Side of the images, in pixels [default: 448].")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Images per step of whole networks [default: as in the paper].")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Network [default: ResNet-50].")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, ... [auto: cuda where there is one].")] = "auto",
    work: Annotated[Path, typer.Option(help="Keeps features and finished results, and resumes from them.")] = Path(
        "bench-papers"
    ),
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat a table of a paper on single positive labels: printed figures, ours and the difference side by side.

    Each row is one comparison. The same command resumes after the last finished training. Rows that cannot be repeated
    yet are listed as open. docs/papers.md has the command of each row. Exit status 1 if a training fails.
    """
    from annotator.benchmark.papers.table_repetition import build_papers_report, repeat_table
    from annotator.benchmark.papers.tables import format_table_line, list_tables

    if table is None:
        print(json.dumps(list_tables()) if as_json else "\n".join(map(format_table_line, list_tables())))
        return
    if dataset is None or root is None:
        raise AnnotatorError(
            "A table is repeated on one data set: give --dataset and --root, the folder that holds it."
        )
    check_output_files(markdown=markdown)
    given = {"seeds": seeds, "epochs": epochs, "size": size, "batch": batch, "backbone": backbone}
    changes = {name: value for name, value in given.items() if value is not None} | {"device": device, "work": work}
    result = bench_inputs.run_benchmark(
        repeat_table,
        table,
        dataset,
        root,
        regime=regime,
        rows=row or (),
        changes=changes,
        plan=plan,
        command_line=f"annotator {shlex.join(sys.argv[1:])}",
    )
    output_result(result, build_papers_report, as_json, markdown)
    failed = [cells for cells in result["rows"] if cells.get("failed")]
    for cells in failed:
        print(f"FAILED {cells['row']} ({cells['regime']}): {cells['failed']}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _parse_label_count(text: str, option: str) -> int:
    if text == "all":
        return -1
    if not (text.isascii() and text.isdigit()):
        raise AnnotatorError(f"{option} takes a number of labels, or all, not {text!r}.")
    return int(text)
