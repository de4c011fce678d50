"""Every method on the same images, the same labels and the same budget: `annotator bench methods`."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods import data, tune
from annotator.benchmark.methods.epochs import forget
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import FIGURES, FIRST, Choice, Task, task_of
from annotator.benchmark.methods.trainers import Train, training_function
from annotator.benchmark.methods.work import Work
from annotator.errors import AnnotatorError
from models.methods import METHODS


def measure(
    images: Path | None = None,
    truth: Path | None = None,
    *,
    dataset: str | None = None,
    root: Path | None = None,
    options: Options | None = None,
    command: str = "",
) -> dict:
    """Train every method at every share with every seed, and report how well it did.

    images, truth   a folder and its CSV `image,labels`; or
    dataset, root   a set of the papers and where it lies; neither: the sample data
    options         methods: names, or ("all",); regime "linear": a linear head on frozen features, or "finetune": the
                    whole network. shares: of the training images that have their one label, the others have none.
                    trials: how many settings are tried for every method on validation mAP at each share, with the
                    labels of the first seed (1: the method's own). epochs, batch, size, linear_init: see
                    finetune.Network. work: a folder for features and finished results, taken up again. no_split: all
                    images are training images and the last epoch counts, as in a project; what is measured on test
                    images is left out
    command         as it was typed, for the report
    returns         {"bench": "methods", "rows": [...], "setting": {...}}. A row: method, share, and the mean over the
                    seeds of each of FIGURES in [0, 1] (seconds of an epoch), its deviation as `_std`, what was chosen

    Raises AnnotatorError for options that make no sense, or data that cannot be compared on; ValueError from models.
    """
    options = (options or Options()).checked()
    compared = data.read(images, truth, dataset, root, split=not options.no_split)
    tasks = {share: [task_of(compared, share, seed) for seed in range(options.seeds)] for share in options.shares}
    for share, drawn in tasks.items():
        if not any(task.chance() > 0 for task in drawn):
            raise AnnotatorError(f"At a share of {share:g} every label is known: there is nothing hidden to find.")
    rows = list(Comparison.of(compared, options).rows(tasks))
    return {"bench": "methods", "rows": rows, "setting": _setting(compared, options, tasks, command)}


DECIDING = ("regime", "backbone", "epochs", "size", "batch", "linear_init", "device")  # what changes the figures


@dataclass
class Comparison:
    """One comparison under way: how a method is trained, and where finished results are kept."""

    options: Options
    work: Work
    train: Train

    @classmethod
    def of(cls, dataset: DataSet, options: Options) -> "Comparison":
        """The comparison of these options; makes the features if they are needed and not there yet."""
        basis = {"version": 1, "data": data.fingerprint(dataset)} | {name: getattr(options, name) for name in DECIDING}
        return cls(options, Work(options.work, basis), training_function(dataset, options))

    def rows(self, tasks: dict[float, list[Task]]) -> Iterator[dict]:
        """The row of every share and method; each says on the way how it went and how long the rest will take."""
        cells = [(share, name) for share in tasks for name in self.options.methods]
        tuned = sum(not METHODS[name].as_it_is for _, name in cells) if self.options.trials > 1 else 0
        clock = _Clock(len(cells) * self.options.seeds + tuned * self.options.trials)
        for share, name in cells:
            choice, scores = self.chosen(name, share, tasks[share][0], clock)
            results = []
            for seed, task in enumerate(tasks[share]):
                result, cached = self.once("result", name, share, seed, choice, task)
                results.append(result)
                on_test = f"test mAP {100 * result['test_map']:.1f}, " if "test_map" in result else ""
                scores_text = f"{on_test}hidden AP {100 * result['hidden_ap']:.1f}"
                clock.tick(cached, f"share {share:g}, seed {seed}: {name} has {scores_text}")
            yield _row(name, share, results) | {"chosen": asdict(choice), "trial_scores": scores}

    def chosen(self, name: str, share: float, task: Task, clock: "_Clock") -> tuple[Choice, list[float]]:
        """What tuning chose with the labels of the first seed, and the validation mAP of each trial."""
        if self.options.trials == 1 or METHODS[name].as_it_is:
            return Choice(), []

        def score(choice: Choice) -> float:
            result, cached = self.once("trial", name, share, 0, choice, task)
            clock.tick(cached, f"share {share:g}, trial: {name} has validation mAP {100 * result['val_map']:.1f}")
            if "refused" in result:
                raise ValueError(result["refused"])
            return result["val_map"]

        return tune.tuned(name, self.options.trials, score)

    def once(self, kind: str, name: str, share: float, seed: int, choice: Choice, task: Task) -> tuple[dict, bool]:
        """One training, or what it had given earlier. A trial is not asked for its figures on the test images."""
        what = {"method": name, "share": share, "seed": seed, "choice": asdict(choice)}
        state = self.work.place(kind, what)

        def train() -> dict:
            try:
                trained = self.train(name, choice, task, seed, state)
            except ValueError as error:
                if kind == "trial" and choice != Choice():
                    return {"refused": str(error), "val_map": 0.0}
                raise
            result = {"epoch": trained.epoch} | ({"val_map": trained.val_map} if len(task.val) else {})
            return result if kind == "trial" else result | task.figures(trained)

        result, cached = self.work.once(kind, what, train)
        forget(state)
        return result, cached


class _Clock:
    """Says what is done, and guesses from what was not there before how long the rest will take."""

    def __init__(self, steps: int):
        self.steps, self.done, self.made, self.started = steps, 0, 0, time.monotonic()

    def tick(self, cached: bool, text: str) -> None:
        self.done += 1
        self.made += not cached
        left = (self.steps - self.done) * (time.monotonic() - self.started) / max(self.made, 1)
        end = " (done before)" if cached else f"; about {_span(left)} left" if self.done < self.steps else ""
        say(f"[{self.done}/{self.steps}] {text}{end}")


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _row(name: str, share: float, results: Sequence[dict]) -> dict:
    row: dict = {"method": name, "share": share}
    for key in (key for key in FIGURES if key in results[0]):
        values = [result[key] for result in results]
        row[key] = round(statistics.fmean(values), 5)
        row[f"{key}_std"] = round(statistics.pstdev(values), 5)
    if "val_map" in results[0]:
        row["val_map"] = round(statistics.fmean(result["val_map"] for result in results), 5)
    return row | {"epoch": [result["epoch"] for result in results]}


def _setting(dataset: DataSet, options: Options, tasks: dict[float, list[Task]], command: str) -> dict:
    truth = data.everything(dataset).truth
    chance = {share: float(np.mean([task.chance() for task in drawn])) for share, drawn in tasks.items()}
    choices = asdict(options) | {"methods": list(options.methods), "shares": list(options.shares)}
    del choices["work"]
    return choices | {
        "command": command,
        "data": dataset.name,
        "images": len(truth),
        **{name: len(getattr(dataset, name)) for name in data.PARTS},
        "classes": len(dataset.classes),
        "labels_an_image": round(float(truth.sum(1).mean()), 4),
        "labelled": {f"{share:g}": [len(task.labelled) for task in drawn] for share, drawn in tasks.items()},
        "chance": {f"{share:g}": round(value, 5) for share, value in chance.items()},
        "searched": tune.space() if options.trials > 1 else {},
        "first": FIRST,
        "notes": list(dataset.notes),
    }
