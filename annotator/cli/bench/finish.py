"""`annotator bench finish` and `certificate`: until a data set is finished, and whether it then is."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.bench import bench_inputs
from annotator.cli.bench.bench_outputs import check_output_files, output_result
from annotator.cli.options import AsJson, format_examples

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    "finish",
    epilog=format_examples(
        "annotator bench finish --work finish --markdown finish.md --plot finish.png",
        "annotator bench finish --sets few,rare --persons perfect --tools autopilot,form",
        "annotator bench finish --images photos --truth truth.csv --seeds 3 --json",
        "annotator bench finish --sets few --tools form --tool my_tool.py:MyTool",
        "annotator bench finish --sets few --tools form --tool-command 'node tool.js'",
    ),
)
def bench_finish(
    sets: Annotated[str, typer.Option(metavar="A,B,...", help="Sets of the protocol [default: all].")] = "",
    images: Annotated[Path | None, typer.Option(help="Folder of images, in the place of --sets.")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth of --images.")] = None,
    tools: Annotated[
        str, typer.Option(metavar="A,B,...", help="Tools that are installed, or none [default: all].")
    ] = "",
    tool: Annotated[
        list[str] | None, typer.Option(metavar="FILE.py:CLASS", help="Your tool, or MODULE:CLASS; can be repeated.")
    ] = None,
    tool_command: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Your tool in any language, by JSON lines; can be repeated."),
    ] = None,
    persons: Annotated[
        str, typer.Option(metavar="perfect,noisy", help="Simulated people who answer [default: both].")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Repetitions with other draws.", min=1)] = 1,
    count: Annotated[int, typer.Option(help="Images of a made-up set; the protocol says 160.", min=20)] = 160,
    times: Annotated[Path | None, typer.Option(help="CSV of measured times, in the place of assumed ones.")] = None,
    recall: Annotated[float, typer.Option(help="What counts as finished; the protocol says 0.95.")] = 0.95,
    precision: Annotated[float, typer.Option(help="And at which precision; the protocol says 0.99.")] = 0.99,
    within: Annotated[
        float, typer.Option(help="Seconds in which your tool must answer each request.", min=0.1)
    ] = 900.0,
    work: Annotated[Path | None, typer.Option(help="Keep sets and analyzed images here for the next time.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw recall against minutes to this file (png, svg, pdf).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a person's minutes until a tool rightly reports a data set as finished: an open protocol for any tool.

    A tool asks questions, a simulated person answers, a clock runs, and the tool's final labels are compared with the
    truth. docs/finish-benchmark.md describes the protocol and how to add your tool. Exit status 1 if a tool breaks the
    protocol.
    """
    from annotator.benchmark.finish.finish_measurement import (
        Options,
        build_finish_report,
        format_row_title,
        measure_tools,
    )
    from annotator.benchmark.plots import draw_recall_curves

    check_output_files(plot, markdown)
    options = Options(
        sets=bench_inputs.split_names(sets),
        tools=bench_inputs.split_names(tools),
        persons=bench_inputs.split_names(persons),
        images=images,
        truth=truth,
        classes=tool or (),
        commands=tool_command or (),
        seeds=seeds,
        count=count,
        times=times,
        recall=recall,
        precision=precision,
        timeout_seconds=within,
        work=work,
    )
    result = bench_inputs.run_benchmark(measure_tools, options, f"annotator {shlex.join(sys.argv[1:])}")
    if plot:
        draw_recall_curves(result, plot)
    output_result(result, build_finish_report, as_json, markdown)
    failed = [row for row in result["rows"] if row["why"]]
    for row in failed:
        print(f"FAILED {format_row_title(row)}: {row['why']}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


@commands.command(
    "certificate",
    epilog=format_examples(
        "annotator bench certificate --projects 40",
        "annotator bench certificate --kind 'three audits' --kind 'few images' --projects 400 --json",
        "annotator bench certificate --markdown coverage.md",
    ),
)
def bench_certificate(
    kind: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Kind of project [default: all]; can be repeated.")
    ] = None,
    projects: Annotated[int, typer.Option(help="Simulated projects of each kind and share of errors.", min=1)] = 100,
    target: Annotated[float, typer.Option(help="Target recall at which work stops.", min=0.5, max=1.0)] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.", min=0)] = 0,
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how often intervals of recall contain the truth when answers are wrong and looks are repeated.

    0, 1, 2 and 5% of the answers are wrong. A look follows every ten audit answers. Exit status 1 if fewer than 95% of
    the projects of a kind hold, beyond chance.
    """
    from annotator.benchmark.certificate.coverage_measurement import (
        build_coverage_report,
        list_failures,
        measure_certificates,
    )

    check_output_files(markdown=markdown)
    command_line = f"annotator {shlex.join(sys.argv[1:])}"
    result = bench_inputs.run_benchmark(measure_certificates, tuple(kind or ()), projects, target, seed)
    output_result(result | {"command": command_line}, build_coverage_report, as_json, markdown)
    if list_failures(result):
        raise typer.Exit(1)
