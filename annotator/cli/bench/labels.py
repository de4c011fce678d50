"""The benchmarks of what people get: labels for their effort, heat maps, and what is promised of labels."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.bench import speed
from annotator.cli.options import AsJson, format_examples
from annotator.cli.printing import print_bench, print_table
from annotator.errors import AnnotatorError

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    "acceptance",
    epilog=format_examples("annotator bench acceptance", "annotator bench acceptance --projects 100 --json"),
)
def bench_acceptance(
    projects: Annotated[int, typer.Option(help="Synthetic projects of each kind.", min=10)] = 1000,
    as_json: AsJson = False,
) -> None:
    """Measure how often auto-accept at 0.99 breaks its precision guarantee, in synthetic projects of every kind."""
    from annotator.benchmark.acceptance import measure

    print_bench(measure(projects), as_json)


@commands.command(
    "certificate",
    epilog=format_examples(
        "annotator bench certificate",
        "annotator bench certificate --projects 100 --json",
        "annotator bench certificate --groups --projects 200",
    ),
)
def bench_certificate(
    projects: Annotated[int, typer.Option(help="Synthetic projects of each kind.", min=10)] = 1000,
    groups: Annotated[bool, typer.Option("--groups", help="Of single groups of images, as --by shows them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how often the certificate's 95 % intervals contain the truth, in synthetic projects of every kind."""
    from annotator.benchmark import certificate_coverage, certified_groups

    print_bench((certified_groups if groups else certificate_coverage).measure(projects), as_json)


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
    """Is auto ahead of the best published method everywhere? On many collections, some of them made by recipe.

    With --settings N, constants of auto are drawn at random, and every collection is judged by those that were best on
    the others.
    """
    from annotator.benchmark.collections import collections_report
    from annotator.benchmark.collections.collections_comparison import RIVAL_METHODS, SAMPLE_DATA, measure_collections
    from annotator.benchmark.collections.leads_plot import draw_leads
    from annotator.benchmark.collections.recipes import COLLECTION_NAMES
    from annotator.benchmark.methods.comparison_options import Options
    from annotator.benchmark.methods.comparison_plot import check_ending

    if plot:
        check_ending(plot)
    result = speed.run_benchmark(
        measure_collections,
        [Path(name) for name in speed.split_names(sets)],
        made=speed.split_names(made) or (SAMPLE_DATA, *COLLECTION_NAMES),
        images=images,
        most=most,
        settings=settings,
        options=Options(
            speed.split_names(methods) or RIVAL_METHODS,
            shares=speed.parse_numbers(share),
            seeds=seeds,
            backbone=backbone,
            work=work,
        ),
        command=f"annotator {shlex.join(sys.argv[1:])}",
    )
    if plot:
        draw_leads(result, plot)
    if markdown:
        markdown.write_text(collections_report.format_markdown(result), encoding="utf-8")
    if as_json:
        print(json.dumps(result))
        return
    print("\n".join(collections_report.describe_collections(result)))
    print_table(collections_report.list_headings(result), collections_report.format_rows(result))
    print_table(*collections_report.format_methods(result))
    if settings > 1:
        print_table(*collections_report.format_settings(result))
    print("\n".join([*collections_report.describe_outcome(result), collections_report.COLLECTIONS_NOTE]))


@commands.command(
    "differing",
    epilog=format_examples(
        "annotator bench differing", "annotator bench differing --ways first,probable --seeds 2 --json"
    ),
)
def bench_differing(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    ways: Annotated[str, typer.Option(metavar="A,B,...", help="Ways to use the answers [default: all].")] = "",
    seeds: Annotated[int, typer.Option(help="Repetitions with other images, mistakes and weights.", min=1)] = 6,
    as_json: AsJson = False,
) -> None:
    """Train on answers of people who err: those they differ on left out, taken, weighed by who errs, or settled."""
    from annotator.benchmark.disagreement_teaching import TEACHING_WAYS, measure

    result = speed.run_benchmark(measure, images, truth, seeds=seeds, ways=speed.split_names(ways) or TEACHING_WAYS)
    print_bench(result, as_json)


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
    """Labels gained for human effort: simulated people work in different ways, on the real engine and store."""
    from annotator.benchmark.effort import effort_report, report_by_times
    from annotator.benchmark.effort.by_times import measure_by_times
    from annotator.benchmark.effort.effort_measurement import measure_effort
    from annotator.benchmark.effort.effort_plot import draw_curves
    from annotator.benchmark.effort.time_sets import read_time_sets
    from annotator.benchmark.methods.comparison_plot import check_ending

    if plot:
        check_ending(plot)
    if times and (plot or all_noisy):
        raise AnnotatorError("With --times one perfect person plays, under each set; leave out --plot and --all-noisy.")
    shared = {"seed": seed, "seeds": seeds, "jobs": jobs, "most": most, "work": work, "backbone": backbone}
    shared["policies"] = speed.split_names(policies)
    if times:
        result = speed.run_benchmark(measure_by_times, read_time_sets(times), images, truth, **shared)
        head, tables, foot = (
            [effort_report.describe_effort(result)],
            report_by_times.make_tables(result),
            report_by_times.make_footnotes(result),
        )
    else:
        result = speed.run_benchmark(measure_effort, images, truth, noisy=noisy, all_noisy=all_noisy, **shared)
        head, tables, foot = (
            [effort_report.describe_effort(result)],
            effort_report.make_tables(result),
            [effort_report.EFFORT_NOTE],
        )
    if plot:
        draw_curves(result, plot)
    if markdown:
        command = f"annotator {shlex.join(sys.argv[1:])}"
        markdown.write_text(effort_report.format_markdown(command, [*head, *foot], tables), encoding="utf-8")
    if as_json:
        print(json.dumps(result))
        return
    print(*head)
    for title, headings, rows in tables:
        print(f"\n{title}")
        print_table(headings, rows)
    print("\n" + "\n\n".join(foot))


@commands.command(
    "events",
    epilog=format_examples(
        "annotator bench events",
        "annotator bench events --images photos --truth truth.csv --events 300 --json",
    ),
)
def bench_events(
    images: Annotated[Path | None, typer.Option(help="Folder of photos [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    events: Annotated[int, typer.Option(help="Events that are made of them.", min=20)] = 160,
    frames: Annotated[int, typer.Option(help="Images of each event.", min=1)] = 5,
    noisy: Annotated[bool, typer.Option(help="Also simulate a person who makes mistakes.")] = True,
    seed: Annotated[int, typer.Option(help="Random seed of the set.", min=0)] = 0,
    seeds: Annotated[int, typer.Option(help="Plays of each: means are reported.", min=1)] = 1,
    work: Annotated[Path | None, typer.Option(help="Keep the images that are made here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what events save: a set like those of camera traps is made of photos, and labeled with and without."""
    from annotator.benchmark.events.event_savings import measure
    from annotator.benchmark.events.scenes import Recipe

    recipe = Recipe(events=events, frames=frames, seed=seed)
    print_bench(
        speed.run_benchmark(measure, images, truth, recipe=recipe, noisy=noisy, seeds=seeds, keep=work), as_json
    )


@commands.command(
    "relations",
    epilog=format_examples(
        "annotator bench relations",
        "annotator bench relations --images photos --truth truth.csv --seeds 3 --jobs 2 --json",
    ),
)
def bench_relations(
    images: Annotated[Path | None, typer.Option(help="Folder of photos [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    seeds: Annotated[int, typer.Option(help="Plays of each: means are reported.", min=1)] = 1,
    jobs: Annotated[int, typer.Option(help="Processes at the same time; the result is the same.", min=1)] = 1,
    most: Annotated[float, typer.Option(help="Stop a play after this many times the form's actions.", min=0.01)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Measure what relations of classes save: a tree of three levels and two exclusive groups, declared and not."""
    from annotator.benchmark.relation_savings import measure

    print_bench(speed.run_benchmark(measure, images, truth, seeds=seeds, jobs=jobs, most=most), as_json)


@commands.command(
    "heatmaps",
    epilog=format_examples(
        "annotator bench heatmaps",
        "annotator bench heatmaps --images photos --truth truth.csv --boxes boxes.csv --labels 50,200 --json",
    ),
)
def bench_heatmaps(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    boxes: Annotated[Path | None, typer.Option(help="CSV image,class,left,top,right,bottom, in pixels.")] = None,
    labels: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of labels to train with.")] = "20,40,80,160",
    as_json: AsJson = False,
) -> None:
    """Measure how often a heat map's hottest spot lies in a box of its class; also the center and a random point."""
    from annotator.benchmark.heatmaps import measure

    print_bench(
        speed.run_benchmark(
            measure, images, truth, boxes, labels=[int(number) for number in speed.parse_numbers(labels, "--labels")]
        ),
        as_json,
    )


@commands.command("pace", epilog=format_examples("annotator bench pace", "annotator bench pace --people 20 --json"))
def bench_pace(
    people: Annotated[int, typer.Option(help="Made-up people of each kind.", min=10)] = 100,
    as_json: AsJson = False,
) -> None:
    """Measure how often the 95 % intervals of annotator pace contain the truth, for made-up people of every kind."""
    from annotator.benchmark.pace import measure

    print_bench(measure(people), as_json)
