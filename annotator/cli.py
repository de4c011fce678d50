"""The command line: parse, call one function, print. It never loads torch itself, except for `worker` and `train`."""

import getpass
import json
import signal
import sys
import time
import uuid
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from annotator import settings
from annotator.errors import AnnotatorError
from annotator.records import STATES, Decision

app = typer.Typer(
    name="annotator",
    help="Turn a folder of images into a complete multi-label data set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
bench = typer.Typer(
    help="Measure this machine against the floor or the rival, in the same run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bench, name="bench")

MethodName = StrEnum("MethodName", {name: name for name in settings.METHODS})
StateName = StrEnum("StateName", {name: name for name in STATES})
FormatName = StrEnum("FormatName", {"csv": "csv", "jsonl": "jsonl"})
UnknownName = StrEnum("UnknownName", {name: name for name in ("keep", "absent", "model")})

Project = Annotated[Path, typer.Argument(help="The project folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


def _examples(*lines: str) -> str:
    return "Examples:\n\n\b\n" + "\n".join(f"  {line}" for line in lines)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        from annotator import __version__

        print(__version__)
        raise typer.Exit


@app.command(
    epilog=_examples(
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
    method: Annotated[MethodName | None, typer.Option(help="Training method [new project: gr].")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Any timm or torchvision network [new project: efficientnet_lite2].")
    ] = None,
) -> None:
    """Make a project from a folder of images, or add images, classes and labels to one."""
    from annotator.engine.setup import set_up

    bar = _Progress("Looking at images")
    done = set_up(
        project,
        images_folder=images,
        class_file=classes,
        label_file=labels,
        method=method,
        backbone=backbone,
        progress=bar.show,
    )
    bar.end()
    found = done.registered
    print(
        f"{project}: {found.added:,} images added, {found.known + found.duplicates:,} known already "
        f"({found.duplicates:,} files with the content of another), {len(found.bad):,} files kept out."
    )
    for bad in found.bad[:20]:
        print(f"  kept out: {bad.path}: {bad.reason}")
    if len(found.bad) > 20:
        print(f"  and {len(found.bad) - 20:,} more: annotator status {project}")
    if done.classes_added:
        print(f"{len(done.classes_added):,} classes added.")
    if labels:
        print(f"{done.labels_added:,} labels read, {done.labels_known:,} were answered already and left as they are.")
    for name in done.labels_without_image[:20]:
        print(f"  no label kept for {name}: its file was kept out")
    print(f"Go on with: annotator serve {project}")


@app.command(epilog=_examples("annotator serve birds", "annotator serve birds --port 8600 --no-browser"))
def serve(
    project: Project,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = settings.DEFAULT_PORT,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
) -> None:
    """Open the app on this machine, with its worker. Ctrl+C ends both; nothing is lost."""
    from annotator.ui.server import serve as run

    run(project, port=port, browser=browser)


@app.command(epilog=_examples("annotator demo", "annotator demo my-demo --no-browser"))
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to make the demo project.")] = Path("demo-project"),
    port: Annotated[int | None, typer.Option(help="Port on 127.0.0.1 [default: the first free one].")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
) -> None:
    """Try it on the drawn scenes of sample_data; run again, it goes on where it was."""
    from annotator.ui.server import free_port
    from annotator.ui.server import serve as run

    sample = Path(__file__).resolve().parent.parent / "sample_data"
    if not (folder / "project.db").exists():
        if not (sample / "images").is_dir():
            raise AnnotatorError(f"The sample images are not where they should be: {sample / 'images'}. Install again.")
        from annotator.engine.setup import set_up

        bar = _Progress("Looking at images")
        set_up(folder, images_folder=sample / "images", class_file=sample / "classes.txt", progress=bar.show)
        bar.end()
    run(folder, port=port or free_port(settings.DEFAULT_PORT), browser=browser)


@app.command(epilog=_examples("annotator worker birds --once", "annotator worker birds"))
def worker(
    project: Project,
    once: Annotated[bool, typer.Option("--once", help="Embed what is missing, train, publish, end.")] = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
) -> None:
    """Train in the background (the app starts its own worker), or once."""
    from annotator.engine.worker import main

    run = main(project, once=once, watched=watched)
    if run:
        print(
            f"Run {run.id}: {run.method}, {run.epochs} epochs in {run.seconds:.2f} s, "
            f"probabilities of {run.images:,} images published."
        )


@app.command(epilog=_examples("annotator train birds", "annotator train birds --method em_apl"))
def train(
    project: Project,
    method: Annotated[MethodName | None, typer.Option(help="Use this method from now on.")] = None,
) -> None:
    """Train now, and choose the method for this and later runs."""
    from annotator.engine.train_now import train_now

    bar = _Progress("Waiting for the worker")
    run = train_now(project, method, progress=bar.show)
    bar.end()
    print(f"Run {run.id}: {run.method}, {run.epochs} epochs in {run.seconds:.2f} s.")


@app.command(
    epilog=_examples(
        "annotator decide birds 2021/heron.jpg heron present", "annotator decide birds a.jpg fox absent --annotator Ann"
    )
)
def decide(
    project: Project,
    image: Annotated[
        str, typer.Argument(help="Path of the image in its folder, or its file name if it is the only one.")
    ],
    class_name: Annotated[str, typer.Argument(metavar="CLASS", help="Name of the class.")],
    state: Annotated[StateName, typer.Argument(help="Is it on the image?")],
    annotator: Annotated[str | None, typer.Option(help="Who decides [default: your login name].")] = None,
) -> None:
    """Give one image one label."""
    from annotator.store import classes, decisions, images
    from annotator.store.database import Database

    db = Database(project)
    found, one = images.find_image(db, image), classes.find_class(db, class_name)
    decision = Decision(
        str(uuid.uuid4()),
        "label",
        annotator or _login(),
        "click",
        image_id=found.id,
        class_id=one.id,
        state=STATES[state],
    )
    decisions.decide(db, [decision])
    print(f"{found.name}: {one.name} {state}")


@app.command(epilog=_examples("annotator undo birds", "annotator undo birds --annotator Ann"))
def undo(
    project: Project,
    annotator: Annotated[str | None, typer.Option(help="Only this person's decisions [default: anybody's].")] = None,
) -> None:
    """Take the newest decision back (a whole grid as one); again for the one before it."""
    from annotator.store import decisions
    from annotator.store.database import Database

    for row in decisions.undo(Database(project), annotator):
        state = next((name for name, value in STATES.items() if value == row["state"]), row["action"])
        print(f"undone: {row['image']}: {row['class'] or ''} {state} (by {row['annotator']})")


@app.command(epilog=_examples("annotator suggest birds --limit 20", "annotator suggest birds --class heron --json"))
def suggest(
    project: Project,
    class_name: Annotated[str | None, typer.Option("--class", help="Only this class.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the labels that are probably missing, likeliest first; none that a person has answered."""
    from annotator.engine.suggest import missing_positives
    from annotator.store import classes, images
    from annotator.store.database import Database

    db = Database(project)
    class_id = classes.find_class(db, class_name).id if class_name else None
    found = missing_positives(db, class_id, limit)
    names = {one.id: one.name for one in classes.all_classes(db)}
    files = images.images(db, {one.image_id for one in found})
    rows = [
        {
            "image": files[one.image_id].name,
            "class": names[one.class_id],
            "probability": round(one.probability, 4),
            "run": one.run_id,
        }
        for one in found
    ]
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['probability']:.3f}  {row['class']:<20}  {row['image']}")
    if not rows:
        print(f"No suggestions yet. Label some images, then run: annotator worker {project} --once")


@app.command(epilog=_examples("annotator status birds", "annotator status birds --json"))
def status(project: Project, as_json: AsJson = False) -> None:
    """Show how far the project is, what the worker does, and everything that went wrong."""
    from annotator.engine.status import status as read
    from annotator.store.database import Database

    found = read(Database(project))
    if as_json:
        print(json.dumps(found))
        return
    _print_status(found)


@app.command(
    epilog=_examples(
        "annotator export birds labels.csv --format csv",
        "annotator export birds labels.jsonl --format jsonl --unknown model --threshold 0.9",
    )
)
def export(
    project: Project,
    dest: Annotated[Path, typer.Argument(help="The file to write.")],
    kind: Annotated[FormatName, typer.Option("--format", help="File format.")] = FormatName.csv,
    unknown: Annotated[UnknownName, typer.Option(help="What to do with cells nobody answered.")] = UnknownName.keep,
    threshold: Annotated[
        float | None, typer.Option(help="For --unknown model: present from this probability on [default: the run's].")
    ] = None,
) -> None:
    """Write the data set: one row per image, one value per class, and where each label came from."""
    from annotator.engine.export import export as write
    from annotator.store.database import Database

    table, written = write(Database(project), dest, kind, unknown, threshold)
    print(f"{len(table.images):,} images x {len(table.classes):,} classes: {', '.join(str(path) for path in written)}")


@bench.callback()
def _bench() -> None:
    """Ended from outside, a benchmark still ends the processes it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@bench.command("interface", epilog=_examples("annotator bench interface", "annotator bench interface --json"))
def bench_interface(
    keys: Annotated[int, typer.Option(help="Key presses and clicks per row.", min=10)] = 60,
    as_json: AsJson = False,
) -> None:
    """Key or click -> next image painted, in Chromium, against a bare Starlette page."""
    from annotator.benchmark.interface import measure

    _print_bench(measure(keys=keys), as_json)


@bench.command(
    "embedding", epilog=_examples("annotator bench embedding", "annotator bench embedding --images ~/photos --json")
)
def bench_embedding(
    images: Annotated[Path | None, typer.Option(help="Folder of photos [default: sample_data].")] = None,
    as_json: AsJson = False,
) -> None:
    """Images embedded a second, against the bare forward pass and the plain loop."""
    from annotator.benchmark.embedding import measure

    _print_bench(measure(images), as_json)


@bench.command("freshness", epilog=_examples("annotator bench freshness", "annotator bench freshness --json"))
def bench_freshness(
    images: Annotated[int, typer.Option(help="Images in the made-up project.", min=100)] = 10_000,
    classes: Annotated[int, typer.Option(help="Classes in it.", min=2)] = 20,
    as_json: AsJson = False,
) -> None:
    """The last decision -> new probabilities published, against one bare matrix product."""
    from annotator.benchmark.freshness import measure

    _print_bench(measure(images, classes), as_json)


@bench.command(
    "suggestions",
    epilog=_examples(
        "annotator bench suggestions", "annotator bench suggestions --images photos --truth truth.csv --json"
    ),
)
def bench_suggestions(
    images: Annotated[Path | None, typer.Option(help="Folder of images [default: sample_data].")] = None,
    truth: Annotated[Path | None, typer.Option(help="CSV image,labels with the full truth.")] = None,
    share: Annotated[float, typer.Option(help="Share of the images that get their one click.")] = 0.5,
    seeds: Annotated[int, typer.Option(help="Repetitions with other clicks.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """One click an image on a share of them: how well each method ranks the hidden positives, against chance."""
    from annotator.benchmark.suggestions import measure

    _print_bench(measure(images, truth, share=share, seeds=seeds), as_json)


class _Progress:
    """One line that counts, on a terminal only."""

    def __init__(self, title: str):
        self.title, self.shown_at, self.live = title, 0.0, sys.stderr.isatty()

    def show(self, done: int, of: int) -> None:
        now = time.monotonic()
        if self.live and (now - self.shown_at > 0.1 or done == of):
            self.shown_at = now
            bar = "#" * round(30 * done / max(of, 1))
            sys.stderr.write(f"\r{self.title} [{bar:<30}] {done:,} of {of:,} ")
            sys.stderr.flush()

    def end(self) -> None:
        if self.live and self.shown_at:
            sys.stderr.write("\n")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _print_status(found: dict) -> None:
    def counted(counts: dict) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in counts.items()) or "none yet"

    worker, run = found["worker"], found["run"]
    print(f"{found['project']}")
    print(
        f"  images     {found['images']:,}, of these {found['images_without_decision']:,} without a decision, "
        f"{found['images_complete']:,} complete"
    )
    print(f"  classes    {found['classes']:,}")
    print(f"  decisions  {counted(found['decisions'])}")
    print(f"  labels     {counted(found['labels'])}")
    print(f"  features   {found['features']:,} of {found['images']:,} ({found['backbone']})")
    beat = f", heartbeat {time.time() - worker['heartbeat_at']:.0f} s ago" if worker["heartbeat_at"] else ""
    doing = (
        worker["state"]
        if worker["alive"] or worker["state"] in ("stopped", "not started")
        else (f"not running (was: {worker['state']})")
    )
    steps = f" {worker['done']:,} of {worker['of']:,}" if worker["alive"] and worker["of"] else ""
    print(f"  worker     {doing}{steps}{beat}")
    if run:
        print(
            f"  run        {run['id']}: {run['method']}, {run['epochs']} epochs in {run['seconds']:.2f} s, "
            f"saw decision {run['last_decision']}, {run['newer_decisions']:,} newer"
        )
    else:
        print("  run        none yet")
    if found["files_kept_out"]:
        print(f"  kept out   {len(found['files_kept_out']):,} files")
        for bad in found["files_kept_out"][:50]:
            print(f"    {bad['file']}: {bad['reason']}")
        if len(found["files_kept_out"]) > 50:
            print("    all of them: annotator status PROJECT --json")
    if found["last_error"]:
        print("  last error")
        for line in found["last_error"].splitlines():
            print(f"    {line}")


def _print_bench(result: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    print(f"bench {result['bench']}")
    for kind in ("figures", "ratios"):
        print(f"  {kind}")
        for name, value in result[kind].items():
            print(f"    {name:<60} {value:,.3f}")
