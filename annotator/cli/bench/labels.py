"""Benchmarks on own images: collections, labels per human effort, and backbone speed."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.bench import bench_inputs
from annotator.cli.bench.bench_outputs import check_output_files, output_result
from annotator.cli.options import AsJson, format_examples
from annotator.cli.printing import print_bench
from annotator.errors import AnnotatorError
from annotator.settings import DEFAULT_BACKBONE

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    "collections",
    epilog=format_examples(
        "annotator bench collections",
        "annotator bench collections --sets photos,scenes --plot leads.png --markdown leads.md",
        "annotator bench collections --settings 12 --seeds 1 --json",
    ),
)
def bench_collections(
    sets: Annotated[str, typer.Option(metavar="A,B,...", help="Folders that hold images and truth.csv.")] = "",
    made: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Which of those made by recipe [default: sample_data and all that constants were chosen on].",
        ),
    ] = "",
    images: Annotated[int, typer.Option(help="Images of each of these.", min=50)] = 400,
    most: Annotated[int, typer.Option(help="Images of a folder that take part.", min=50)] = 2000,
    methods: Annotated[str, typer.Option(metavar="A,B,...", help="The published methods [default: nine].")] = "",
    share: Annotated[
        str, typer.Option(metavar="S,S,...", help="Shares of the training images that have a label.")
    ] = "0.02,0.05,0.2,1.0",
    settings: Annotated[
        int, typer.Option(help="Settings of auto's constants that are tried; 1: the present ones.", min=1)
    ] = 1,
    seeds: Annotated[int, typer.Option(help="Repetitions with other random labels and weights.", min=1)] = 2,
    backbone: Annotated[str | None, typer.Option(help="Network [default: efficientnet_lite0_320].")] = None,
    work: Annotated[Path, typer.Option(help="Keeps images, features and finished results, and resumes from them.")] = (
        Path("bench-collections")
    ),
    plot: Annotated[Path | None, typer.Option(help="Draw the leads to this file (png, svg, pdf).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Test on many collections, some generated, whether the method auto is ahead of the best published method.

    With --settings N, constants of auto are drawn at random, and every collection is judged by those that were best on
    the others.
    """
    from annotator.benchmark.collections.collections_comparison import (
        RIVAL_METHODS,
        SAMPLE_DATA,
        build_collections_report,
        measure_collections,
    )
    from annotator.benchmark.collections.recipes import COLLECTION_NAMES
    from annotator.benchmark.methods.comparison_options import Options
    from annotator.benchmark.plots import draw_leads

    check_output_files(plot, markdown)
    result = bench_inputs.run_benchmark(
        measure_collections,
        [Path(name) for name in bench_inputs.split_names(sets)],
        made=bench_inputs.split_names(made) or (SAMPLE_DATA, *COLLECTION_NAMES),
        images=images,
        most=most,
        settings=settings,
        options=Options(
            bench_inputs.split_names(methods) or RIVAL_METHODS,
            shares=bench_inputs.parse_numbers(share),
            seeds=seeds,
            backbone=backbone,
            work=work,
        ),
        command=f"annotator {shlex.join(sys.argv[1:])}",
    )
    if plot:
        draw_leads(result, plot)
    output_result(result, build_collections_report, as_json, markdown)


@commands.command(
    "effort",
    epilog=format_examples(
        "annotator bench effort",
        "annotator bench effort --images photos --truth truth.csv --policies form,autopilot --json",
        "annotator bench effort --images photos --truth truth.csv --plot effort.png",
        "annotator bench effort --seeds 3 --jobs 2 --all-noisy --markdown effort.md",
        "annotator bench effort --images photos --truth truth.csv --backbone efficientnet_lite2_352",
        "annotator bench effort --times published --seeds 3 --markdown times.md",
    ),
)
def bench_effort(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    policies: Annotated[
        str,
        typer.Option(metavar="A,B,...", help="Ways to work [default: all but those that take long]."),
    ] = "",
    seed: Annotated[int, typer.Option(help="Random seed, the first of --seeds.", min=0)] = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds: means and ranges are reported.", min=1)] = 1,
    noisy: Annotated[bool, typer.Option(help="Also simulate a person who makes mistakes, with two policies.")] = True,
    all_noisy: Annotated[bool, typer.Option("--all-noisy", help="The same with every policy.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes at the same time; the result is the same.", min=1)] = 1,
    most: Annotated[float, typer.Option(help="Stop after this many times the actions of the form.")] = 1.0,
    times: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.csv",
            help="Play under each set of seconds of a CSV: published (with people), kinds (made up), or your own file.",
        ),
    ] = None,
    work: Annotated[Path | None, typer.Option(help="Keep the analyzed project here for the next time.")] = None,
    backbone: Annotated[
        str | None, typer.Option(metavar="NAME", help="Network that analyzes the images [default: the usual one].")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves to this file (png, svg, pdf).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure labels gained per human effort: simulated people follow different policies on the real code."""
    from annotator.benchmark.effort.by_times import build_times_report, measure_by_times
    from annotator.benchmark.effort.effort_measurement import EffortOptions, build_effort_report, measure_effort
    from annotator.benchmark.effort.time_sets import read_time_sets
    from annotator.benchmark.plots import draw_curves

    check_output_files(plot, markdown)
    if times and (plot or all_noisy):
        raise AnnotatorError("With --times one perfect person plays, under each set; leave out --plot and --all-noisy.")
    options = EffortOptions(bench_inputs.split_names(policies), seed, seeds, jobs, most, work, backbone)
    if times:
        result = bench_inputs.run_benchmark(measure_by_times, read_time_sets(times), images, truth, options)
    else:
        result = bench_inputs.run_benchmark(measure_effort, images, truth, options, noisy=noisy, all_noisy=all_noisy)
    if plot:
        draw_curves(result, plot)
    build = build_times_report if times else build_effort_report
    output_result(result, partial(build, command=f"annotator {shlex.join(sys.argv[1:])}"), as_json, markdown)


@commands.command(
    "embedding",
    epilog=format_examples(
        "annotator bench embedding", "annotator bench embedding --backbone efficientnet_lite0 --json"
    ),
)
def bench_embedding(
    images: Annotated[Path | None, typer.Option(help="Folder of photos [default: sample_data].")] = None,
    backbone: Annotated[str, typer.Option(help="The network; its weights have to be here.")] = DEFAULT_BACKBONE,
    as_json: AsJson = False,
) -> None:
    """Measure images analyzed per second, compared with the bare forward pass and with a simple loop."""
    from annotator.benchmark.embedding_speed import measure

    print_bench(bench_inputs.run_benchmark(measure, images, backbone=backbone), as_json)
