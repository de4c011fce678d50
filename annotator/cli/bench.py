"""`annotator bench ...`: measurements that anybody can repeat."""

import json
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, examples
from annotator.cli.printing import print_bench
from annotator.errors import AnnotatorError, several

commands = typer.Typer(
    help="Measure this machine against the floor or the rival, in the same run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.callback()
def _bench() -> None:
    """Ended from outside, a benchmark still ends the processes it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if hasattr(signal, "SIGHUP"):  # a closed terminal
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))


@commands.command(
    "interface",
    epilog=examples("annotator bench interface", "annotator bench interface --rows key,grid --keys 20 --json"),
)
def bench_interface(
    keys: Annotated[int, typer.Option(help="Presses on each page in a row.", min=10)] = 60,
    rows: Annotated[str, typer.Option(metavar="A,B,...", help="Which rows [default: all, 12 minutes].")] = "",
    as_json: AsJson = False,
) -> None:
    """Key or click -> next image, grid or heat map painted, in Chromium, against a bare Starlette page."""
    from annotator.benchmark.interface import measure

    print_bench(measure(keys=keys, rows=names(rows)), as_json)


@commands.command("store", epilog=examples("annotator bench store", "annotator bench store --images 100000 --json"))
def bench_store(
    images: Annotated[int, typer.Option(help="Images in the large made-up project.", min=1000)] = 1_000_000,
    classes: Annotated[int, typer.Option(help="Classes in both.", min=3)] = 100,
    as_json: AsJson = False,
) -> None:
    """Every route of the server with a million images, against the same with a thousand."""
    from annotator.benchmark.store import measure

    print_bench(measure(images, classes), as_json)


@commands.command(
    "embedding", epilog=examples("annotator bench embedding", "annotator bench embedding --images ~/photos --json")
)
def bench_embedding(
    images: Annotated[Path | None, typer.Option(help="Folder of photos [default: sample_data].")] = None,
    as_json: AsJson = False,
) -> None:
    """Images embedded a second, against the bare forward pass and the plain loop."""
    from annotator.benchmark.embedding import measure

    print_bench(measure(images), as_json)


@commands.command(
    "freshness",
    epilog=examples("annotator bench freshness", "annotator bench freshness --images 100000 --runs 1 --json"),
)
def bench_freshness(
    images: Annotated[int, typer.Option(help="Images in the made-up project.", min=100)] = 10_000,
    classes: Annotated[int, typer.Option(help="Classes in it.", min=2)] = 80,
    answers: Annotated[int, typer.Option(help="Decisions of each kind.", min=1)] = 40,
    runs: Annotated[int, typer.Option(help="Trainings that are waited for.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """A decision -> gone from every queue, in the probabilities, in a training; against one bare matrix product."""
    from annotator.benchmark.freshness import measure

    print_bench(measure(images, classes, answers=answers, repetitions=runs), as_json)


@commands.command(
    "acceptance", epilog=examples("annotator bench acceptance", "annotator bench acceptance --projects 100 --json")
)
def bench_acceptance(
    projects: Annotated[int, typer.Option(help="Made-up projects of each kind.", min=10)] = 1000,
    as_json: AsJson = False,
) -> None:
    """How often auto-accept at 0.99 breaks its precision guarantee, in made-up projects of every kind."""
    from annotator.benchmark.acceptance import measure

    print_bench(measure(projects), as_json)


@commands.command(
    "certificate", epilog=examples("annotator bench certificate", "annotator bench certificate --projects 100 --json")
)
def bench_certificate(
    projects: Annotated[int, typer.Option(help="Made-up projects of each kind.", min=10)] = 1000,
    as_json: AsJson = False,
) -> None:
    """How often the certificate's 95 % intervals hold the truth, in made-up projects of every kind."""
    from annotator.benchmark.certificate import measure

    print_bench(measure(projects), as_json)


@commands.command(
    "effort",
    epilog=examples(
        "annotator bench effort",
        "annotator bench effort --images photos --truth truth.csv --policies form,autopilot --json",
        "annotator bench effort --images photos --truth truth.csv --plot effort.png",
    ),
)
def bench_effort(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    policies: Annotated[str, typer.Option(metavar="A,B,...", help="Which ways to work [default: all].")] = "",
    seed: Annotated[int, typer.Option(help="Another person, another order.")] = 0,
    noisy: Annotated[bool, typer.Option(help="Play a person who makes mistakes as well.")] = True,
    most: Annotated[float, typer.Option(help="Nobody goes on for more actions than this times the form's.")] = 1.0,
    work: Annotated[Path | None, typer.Option(help="Keep the embedded project here for the next time.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file (png, svg, pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Finished labels for human effort: made-up people work in different ways, on the real engine and store."""
    from annotator.benchmark.effort.measure import measure
    from annotator.benchmark.effort.plot import draw
    from annotator.benchmark.methods.plot import check_ending

    if plot:
        check_ending(plot)
    result = run_benchmark(
        measure, images, truth, policies=names(policies), seed=seed, noisy=noisy, most=most, work=work
    )
    if plot:
        draw(result, plot)
    print_bench(result, as_json)


@commands.command(
    "heatmaps",
    epilog=examples(
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
    """How often a heat map's hottest spot lies in a box of its class, against the centre and a random point."""
    from annotator.benchmark.heatmaps import measure

    print_bench(
        run_benchmark(measure, images, truth, boxes, labels=[int(number) for number in numbers(labels)]), as_json
    )


@commands.command(
    "methods",
    epilog=examples(
        "annotator bench methods",
        "annotator bench methods --images photos --truth truth.csv --share 0.05,0.2,1.0 --trials 20 --plot methods.png",
        "annotator bench methods --no-split --share 0.5 --methods an,em_apl,gr,auto",
        "annotator bench methods --dataset voc --root VOCdevkit --regime finetune --methods an,gr,role+linear_init",
    ),
)
def bench_methods(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="voc|coco|nus|cub", help="A set of the papers.")] = None,
    root: Annotated[Path | None, typer.Option(help="The folder that holds it.")] = None,
    methods: Annotated[str, typer.Option(metavar="A,B,...", help="Which methods.")] = "all",
    regime: Annotated[
        str, typer.Option(metavar="linear|finetune", help="A linear head on frozen features, or the whole network.")
    ] = "linear",
    share: Annotated[
        str, typer.Option(metavar="S,S,...", help="Shares of the training images that have their one label.")
    ] = "1.0",
    seeds: Annotated[int, typer.Option(help="Repetitions with other labels and another start.")] = 3,
    trials: Annotated[
        int, typer.Option(help="Settings tried for every method on validation mAP; 1: as they come.")
    ] = 1,
    backbone: Annotated[
        str | None, typer.Option(help="Network [linear: efficientnet_lite2, finetune: resnet50].")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs [default: the method's own].")] = None,
    size: Annotated[int, typer.Option(help="finetune: pixels, both sides of an image.")] = 448,
    batch: Annotated[int | None, typer.Option(help="Images a step [default: the method's own].")] = None,
    no_split: Annotated[
        bool, typer.Option("--no-split", help="Train on all images to the last epoch, as in a project.")
    ] = False,
    linear_init: Annotated[
        bool, typer.Option("--linear-init", help="finetune: train the classifier alone first, on frozen features.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, ... [auto: cuda where there is one].")] = "auto",
    work: Annotated[
        Path, typer.Option(help="Features and finished results: killed or asked again, it goes on from there.")
    ] = Path("bench-methods"),
    plot: Annotated[Path | None, typer.Option(help="Draw the result into this file (png, svg, pdf).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table into this file, as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """All methods on the same images and labels: test mAP, hidden positives found, calibration, time.

    Labels are single positives on a share of the training images; validation and test images are fully labelled.
    """
    from annotator.benchmark.methods import report
    from annotator.benchmark.methods.measure import measure
    from annotator.benchmark.methods.options import Options
    from annotator.benchmark.methods.plot import check_ending, draw

    if plot:
        check_ending(plot)
    options = Options(
        names(methods), regime, numbers(share), seeds, trials, backbone, epochs, size, batch, device, linear_init, work,
        no_split,
    )  # fmt: skip
    command = f"annotator {shlex.join(sys.argv[1:])}"
    result = run_benchmark(measure, images, truth, dataset=dataset, root=root, options=options, command=command)
    if plot:
        draw(result, plot)
    if markdown:
        markdown.write_text(report.markdown(result), encoding="utf-8")
    print(json.dumps(result) if as_json else report.text(result))


@commands.command(
    "faults",
    epilog=examples("annotator bench faults", "annotator bench faults --kills 250 --seed 1..4 --work faults --json"),
)
def bench_faults(
    kills: Annotated[int, typer.Option(help="Processes killed, for each seed.", min=1)] = 100,
    seconds: Annotated[
        float | None, typer.Option(help="Of each seed at most [default: until the kills are done].")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="N|N..M", help="One seed, or several, summed up.")] = "0",
    people: Annotated[int, typer.Option(help="With two open pages each.", min=1, max=8)] = 4,
    work: Annotated[
        Path | None, typer.Option(help="Keep the result of each seed: asked again, it goes on from there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Kill server, worker and commands while people work, fill and stall the disk, turn the clock: what was lost?

    Ends with status 1 when a guarantee was broken.
    """
    from annotator.benchmark.faults.measure import measure

    result = measure(kills, seconds, seeds(seed), people, work)
    print_bench(result, as_json)
    for sentence in result["broken"]:
        print(f"BROKEN {sentence}", file=sys.stderr)
    if result["broken"]:
        raise typer.Exit(1)


def seeds(text: str) -> range:
    """What `--seed` names: 3, or 1..4. Raises AnnotatorError for anything else."""
    first, dots, last = text.partition("..")
    try:
        span = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        span = range(0)
    if not span:
        raise AnnotatorError(f"--seed takes a whole number, or two such as 1..4, not {text!r}.")
    return span


def names(text: str) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers(text: str) -> tuple[float, ...]:
    """The numbers between commas. Raises AnnotatorError naming every word that is none."""
    wrong = []
    values = []
    for word in names(text):
        try:
            values.append(float(word))
        except ValueError:
            wrong.append(f"{word!r} is not a number")
    if wrong:
        raise several(f"--share takes numbers with commas between them, such as 0.05,0.2,1.0, not {text!r}:", wrong)
    return tuple(values)


def run_benchmark(call: Callable[..., dict], *arguments: object, **options: object) -> dict:
    """The result of a benchmark. Raises AnnotatorError, which prints no traceback, where an input is wrong."""
    try:
        return call(*arguments, **options)
    except (ValueError, OSError) as error:
        raise AnnotatorError(str(error)) from error
