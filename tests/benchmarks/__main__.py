"""`make bench NAME=store`: commands that measure the program itself, on made-up projects.

What people run on their own images are commands of the program: `annotator bench`.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.bench.bench_inputs import parse_numbers, run_benchmark, split_names, stop_on_signals
from annotator.cli.bench.bench_outputs import output_result
from annotator.cli.options import AsJson, format_examples
from annotator.cli.printing import print_bench, show_progress
from annotator.errors import AnnotatorError

MIN_IMAGES = 1000  # of `scale`: a training of fewer is over at once

commands = typer.Typer(
    name="bench",
    help="Measure the speed, the promises and the faults of the program on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
commands.callback()(stop_on_signals)


@commands.command(
    "interface",
    epilog=format_examples("make bench NAME=interface", "make bench NAME=interface ARGS='--rows key,grid --keys 20'"),
)
def bench_interface(
    keys: Annotated[int, typer.Option(help="Key presses per row and page.", min=10)] = 60,
    rows: Annotated[str, typer.Option(metavar="A,B,...", help="Which rows [default: all; takes 12 minutes].")] = "",
    as_json: AsJson = False,
) -> None:
    """Time from key or click to the next image, grid or heat map on screen, in Chromium, compared with a bare page."""
    from benchmarks.interface import measure

    print_bench(measure(keys=keys, rows=split_names(rows)), as_json)


@commands.command(
    "store", epilog=format_examples("make bench NAME=store", "make bench NAME=store ARGS='--images 100000 --json'")
)
def bench_store(
    images: Annotated[int, typer.Option(help="Images in the large synthetic project.", min=1000)] = 1_000_000,
    classes: Annotated[int, typer.Option(help="Classes in both projects.", min=3)] = 100,
    as_json: AsJson = False,
) -> None:
    """Time of every server route with a million images, compared with a thousand."""
    from benchmarks.store import measure

    print_bench(measure(images, classes), as_json)


@commands.command(
    "scale",
    epilog=format_examples(
        "make bench NAME=scale",
        "make bench NAME=scale ARGS='--images 250000,500000,1000000 --classes 100 --work scale --json'",
        "make bench NAME=scale ARGS='--images 20000 --kilobytes 100 --steps register'",
        "make bench NAME=scale ARGS='--images 1000000 --steps train'   (the images are no files then)",
    ),
)
def bench_scale(
    images: Annotated[
        str, typer.Option(metavar="N,N,...", help="Made-up images; of several sizes the growth is said, too.")
    ] = "100000",
    classes: Annotated[int, typer.Option(help="Classes.", min=3)] = 80,
    kilobytes: Annotated[int, typer.Option(help="Size of an image file.", min=1, max=5000)] = 1,
    steps: Annotated[str, typer.Option(metavar="A,B,...", help="Which steps are reported [default: all].")] = "",
    work: Annotated[Path | None, typer.Option(help="Keeps the figures of each size, and resumes from them.")] = None,
    as_json: AsJson = False,
) -> None:
    """A made-up project from its files to its export, step by step: seconds, memory, and the floor.

    The steps are register, embed, train, rank, page, decide, status and export. The files are tiny unless --kilobytes
    says more; features are made up, so embed is writing them only. A size that the disk cannot hold is refused at once.
    """
    from benchmarks.scale.scale_measurement import build_scale_report, measure

    try:
        result = run_benchmark(
            measure, parse_image_counts(images), classes, kilobytes=kilobytes, steps=split_names(steps), work=work
        )
    except KeyboardInterrupt:
        raise AnnotatorError(
            "Interrupted: what was made is gone. --work FOLDER keeps the figures of sizes that were finished."
        ) from None
    output_result(result, build_scale_report, as_json)


@commands.command(
    "classifier", epilog=format_examples("make bench NAME=classifier", "make bench NAME=classifier ARGS='--json'")
)
def bench_classifier(
    rounds: Annotated[int, typer.Option(help="Timings of each.", min=1)] = 5, as_json: AsJson = False
) -> None:
    """Images a second of a classifier that was taken home, in onnxruntime, compared with the same model in torch."""
    from benchmarks.classifier_speed import measure

    print_bench(run_benchmark(measure, rounds), as_json)


@commands.command(
    "cluster",
    epilog=format_examples("make bench NAME=cluster", "make bench NAME=cluster ARGS='--images 5000 --workers 2'"),
)
def bench_cluster(
    images: Annotated[int, typer.Option(help="Made-up images.", min=1)] = 20_000,
    workers: Annotated[int, typer.Option(help="Machines of the cluster, with one core each.", min=1)] = 3,
    kill_every: Annotated[float, typer.Option(help="Seconds between two workers that are killed.", min=1)] = 20.0,
    as_json: AsJson = False,
) -> None:
    """Time to analyze images on a Ray cluster of this machine, with and without killed workers, compared with none."""
    from benchmarks.scale.cluster import measure

    print_bench(measure(images, workers, kill_every), as_json)


@commands.command(
    "data",
    epilog=format_examples(
        "make bench NAME=data",
        "make bench NAME=data ARGS='--images 1000000 --formats csv,coco --json'",
        "make bench NAME=data ARGS='--absent 77'   (every pair is answered)",
    ),
)
def bench_data(
    images: Annotated[int, typer.Option(help="Made-up images.", min=1)] = 100_000,
    classes: Annotated[int, typer.Option(help="Classes.", min=1)] = 80,
    formats: Annotated[str, typer.Option(metavar="A,B,...", help="Which formats [default: all with labels].")] = "",
    present: Annotated[float, typer.Option(help="Present labels an image, on average.", min=0)] = 3.0,
    absent: Annotated[float, typer.Option(help="Absent labels an image, on average.", min=0)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Labels out of a project and into another one in every format: images a second, memory, and the floor.

    The images are made-up names without files; only labels are measured. Ends with status 1 when a label does not come
    back as it was.
    """
    from benchmarks.data.formats_measurement import build_formats_report, measure_formats

    try:
        with show_progress("bench data") as show:
            result = measure_formats(images, classes, split_names(formats), present=present, absent=absent, show=show)
    except KeyboardInterrupt:
        raise AnnotatorError(
            "Interrupted: nothing is reported, and what was made for it is gone. The same command begins anew; "
            "--formats names fewer formats."
        ) from None
    output_result(result, build_formats_report, as_json)
    for sentence in result["wrong"]:
        print(f"WRONG {sentence}", file=sys.stderr)
    if result["wrong"]:
        raise typer.Exit(1)


@commands.command(
    "freshness",
    epilog=format_examples("make bench NAME=freshness", "make bench NAME=freshness ARGS='--images 100000 --runs 1'"),
)
def bench_freshness(
    images: Annotated[int, typer.Option(help="Images in the synthetic project.", min=100)] = 10_000,
    classes: Annotated[int, typer.Option(help="Classes in the synthetic project.", min=2)] = 80,
    answers: Annotated[int, typer.Option(help="Decisions of each kind.", min=1)] = 40,
    runs: Annotated[int, typer.Option(help="Number of trainings.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """Time until a decision has left every queue, and is in the probabilities and in a training."""
    from benchmarks.freshness import measure

    print_bench(measure(images, classes, answers=answers, repetitions=runs), as_json)


@commands.command(
    "faults",
    epilog=format_examples(
        "make bench NAME=faults",
        "make bench NAME=faults ARGS='--kills 250 --seed 1..4 --work faults --json'",
        "make bench NAME=faults ARGS='--kills 0 --command-kills 20 --json'",
        "make bench NAME=faults ARGS='--during merge --during restore'",
    ),
)
def bench_faults(
    kills: Annotated[int, typer.Option(help="Processes killed per seed while people work.", min=0)] = 100,
    command_kills: Annotated[
        int, typer.Option(help="Kills per seed of each command that changes, copies or exports a whole project.", min=0)
    ] = 12,
    during: Annotated[
        list[str] | None, typer.Option(help="Only kill this command, such as merge or restore; may be repeated.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="At most so long per seed [default: until the kills are done].")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="N|N..M", help="One seed, or a range.")] = "0",
    people: Annotated[int, typer.Option(help="Simulated people, with two open pages each.", min=1, max=8)] = 4,
    work: Annotated[Path | None, typer.Option(help="Keeps the result of each seed, and resumes from it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Kill processes, fill and stall the disk and turn the clock while people work: is anything lost?

    Then kill merges, backups, restores, exports, upgrades and adapting before each of their steps and at any moment.
    Ends with status 1 when a guarantee was broken.
    """
    from benchmarks.faults.command_kills import measure as measure_command_kills
    from benchmarks.faults.fault_measurement import measure

    result = {"bench": "faults", "figures": {}, "ratios": {}, "broken": []}
    if kills and not during:
        result = measure(kills, seconds, parse_seeds(seed), people, work)
    if command_kills:
        more = measure_command_kills(command_kills, parse_seeds(seed), during or (), work)
        result["figures"] |= more["figures"]
        result["broken"] += more["broken"]
    print_bench(result, as_json)
    for sentence in result["broken"]:
        print(f"BROKEN {sentence}", file=sys.stderr)
    if result["broken"]:
        raise typer.Exit(1)


@commands.command(
    "team",
    epilog=format_examples("make bench NAME=team", "make bench NAME=team ARGS='--people 200 --every 5 --minutes 3'"),
)
def bench_team(
    people: Annotated[int, typer.Option(help="People at work at once.", min=1, max=1000)] = 50,
    every: Annotated[float, typer.Option(help="Seconds between two decisions of one person.", min=0.05)] = 1.0,
    minutes: Annotated[float, typer.Option(help="How long they work.", min=0.05)] = 10.0,
    browsers: Annotated[int, typer.Option(help="How many of them are in front of a real browser.", min=0, max=16)] = 4,
    images: Annotated[
        int | None,
        typer.Option(help="Images of the project [default: one for every decision, and those in hand].", min=50),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Many people on one server at once: how quick, is anything lost or in two hands, and does memory grow?

    Ends with status 1 when a decision was lost, doubled or moved, or something was in two hands.
    """
    from benchmarks.team.team_measurement import measure

    result = run_benchmark(measure, people, every, minutes, browsers, images)
    print_bench(result, as_json)
    broken = (
        "decisions_lost",
        "decisions_doubled",
        "decisions_moved",
        "decisions_from_nobody",
        "in_two_hands",
        "tables_broken",
    )
    if any(result["figures"][kind] for kind in broken):
        print("BROKEN", *result["said"], file=sys.stderr)
        raise typer.Exit(1)


@commands.command(
    "acceptance",
    epilog=format_examples("make bench NAME=acceptance", "make bench NAME=acceptance ARGS='--projects 100 --json'"),
)
def bench_acceptance(
    projects: Annotated[int, typer.Option(help="Synthetic projects of each kind.", min=10)] = 1000,
    as_json: AsJson = False,
) -> None:
    """Measure how often auto-accept at 0.99 breaks its precision guarantee, in synthetic projects of every kind."""
    from benchmarks.acceptance import measure

    print_bench(measure(projects), as_json)


@commands.command(
    "certificate",
    epilog=format_examples(
        "make bench NAME=certificate",
        "make bench NAME=certificate ARGS='--projects 100 --json'",
        "make bench NAME=certificate ARGS='--groups --projects 200'",
    ),
)
def bench_certificate(
    projects: Annotated[int, typer.Option(help="Synthetic projects of each kind.", min=10)] = 1000,
    groups: Annotated[bool, typer.Option("--groups", help="Of single groups of images, as --by shows them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how often the certificate's 95 % intervals contain the truth, in synthetic projects of every kind."""
    from benchmarks import certificate_coverage, certified_groups

    print_bench((certified_groups if groups else certificate_coverage).measure(projects), as_json)


@commands.command(
    "heatmaps",
    epilog=format_examples(
        "make bench NAME=heatmaps",
        "make bench NAME=heatmaps ARGS='--images photos --truth truth.csv --boxes boxes.csv --labels 50,200 --json'",
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
    from benchmarks.heatmaps import measure

    print_bench(
        run_benchmark(
            measure, images, truth, boxes, labels=[int(number) for number in parse_numbers(labels, "--labels")]
        ),
        as_json,
    )


@commands.command("pace", epilog=format_examples("make bench NAME=pace", "make bench NAME=pace ARGS='--people 20'"))
def bench_pace(
    people: Annotated[int, typer.Option(help="Made-up people of each kind.", min=10)] = 100,
    as_json: AsJson = False,
) -> None:
    """Measure how often the 95 % intervals of annotator pace contain the truth, for made-up people of every kind."""
    from benchmarks.pace import measure

    print_bench(measure(people), as_json)


def parse_seeds(text: str) -> range:
    """Return the seeds in the text of `--seed`: 3, or 1..4. Raises AnnotatorError for anything else."""
    first, dots, last = text.partition("..")
    try:
        span = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        span = range(0)
    if not span:
        raise AnnotatorError(f"--seed takes a whole number, or two such as 1..4, not {text!r}.")
    return span


def parse_image_counts(text: str) -> tuple[int, ...]:
    """Return the numbers in the text of `--images`, each at least 1,000. Raises AnnotatorError for anything else."""
    words = split_names(text)
    if not words or not all(word.isascii() and word.isdigit() and int(word) >= MIN_IMAGES for word in words):
        raise AnnotatorError(
            f"--images takes whole numbers of at least {MIN_IMAGES:,} with commas between them, such as 250000,500000, "
            f"not {text!r}."
        )
    return tuple(map(int, words))


def main() -> None:
    """Run the command; an error is printed as the program prints it."""
    try:
        commands()
    except AnnotatorError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
