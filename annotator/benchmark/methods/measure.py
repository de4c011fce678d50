"""Every method on the same images, the same labels and the same budget: `annotator bench methods`."""

import hashlib
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods import data, tune
from annotator.benchmark.methods.cells import Cell, Tasks, Trainings
from annotator.benchmark.methods.epochs import forget
from annotator.benchmark.methods.measures import PLAIN as MEASURES
from annotator.benchmark.methods.on_cluster import OnCluster
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import FIGURES, FIRST, HIDDEN, Choice, Task, task_of
from annotator.benchmark.methods.trainers import training_function
from annotator.benchmark.methods.work import Work
from annotator.benchmark.naming import RANDOM, Naming, naming_rates
from annotator.errors import AnnotatorError
from models.labels import PRESENT
from models.methods import METHODS


def measure(
    images: Path | None = None,
    truth: Path | None = None,
    *,
    boxes: Path | None = None,
    dataset: str | None = None,
    root: Path | None = None,
    options: Options | None = None,
    command: str = "",
) -> dict:
    """Train every method at every share with every seed, and return their figures.

    Args:
        images: A folder of images.
        truth: Its CSV `image,labels`.
        boxes: A CSV of the boxes of things in that folder.
        dataset: The name of a set of the papers, instead of `images`; neither: the sample data.
        root: The folder of that set.
        options: Methods: names, or ("all",). regime: "linear", a linear head on frozen features, or "finetune", the
            whole network. shares: of the training images that have their one label; the others have none. trials: the
            number of settings tried for every method on validation mAP at each share, with the labels of the first seed
            (1: the method's own). epochs, batch, size, linear_init: see finetune.Network. work: a folder for features
            and finished results, which later calls continue. no_split: all images are training images and the last
            epoch counts, as in a project; figures of test images are left out. on: "local", or the Ray cluster on which
            methods train (on_cluster.py). clicks, strengths: the ways in which the one label was chosen (naming.py),
            besides at random. precision: of whole networks (finetune.py). protocol: "own" or "cole" (cole.py). changed:
            constants of methods (changes.py). labels, positives, negatives, validate: see supervision.Supervision.
            measures: figures besides FIGURES (measures.py).
        command: The command line, for the report.

    Returns:
        {"bench": "methods", "rows": [...], "setting": {...}}. A row: method, share, clicks, the mean over the seeds of
        each of FIGURES in [0, 1] (seconds of an epoch), its deviation as `_std`, the chosen settings; and, for other
        clicks than random, `hidden_ap_over_random`, the gain over random clicks.

    Raises:
        AnnotatorError: Options make no sense, or the data cannot be compared on.
        ValueError: As models do.
    """
    asked = options or Options()
    options = asked.checked()
    if "all" in asked.methods:
        for reason in filter(None, map(asked.unmet, METHODS)):
            say(f"left out: {reason}")
    return compare(data.read(images, truth, dataset, root, boxes=boxes, split=not options.no_split), options, command)


def compare(compared: DataSet, options: Options, command: str = "") -> dict:
    """Return the figures of every method on a set that has been read, as `measure` does.

    Args:
        compared: The images.
        options: What Options.checked returned.
        command: The command line, for the report.

    Raises:
        AnnotatorError: The data cannot be compared on.
        ValueError: As models do.
    """
    tasks = {
        (share, naming): [
            task_of(
                compared,
                share,
                seed,
                naming,
                options.supervision,
                absences={METHODS[name].known_absences for name in options.methods},
                measures=options.measures,
            )
            for seed in range(options.seeds)
        ]
        for share in options.shares
        for naming in options.namings
    }
    for (share, _), drawn in tasks.items():
        if options.supervision.hides and not any(task.chance() > 0 for task in drawn):
            raise AnnotatorError(f"At a share of {share:g} every label is known: there is nothing hidden to find.")
    with OnCluster(options.on) as cluster:
        rows = with_differences(list(Comparison.build(compared, options, tasks, cluster).rows()))
    return {"bench": "methods", "rows": rows, "setting": _setting(compared, options, tasks, command)}


OFTEN = 20  # labeled images that show a class, over all seeds, from which on its rate of being named is reported
# What changes the figures too; results from before there was a choice are those of the default.
DECIDING_LATER = ("precision", "protocol", "labels", "positives", "negatives", "validate", "measures")
DECIDING = ("regime", "backbone", "epochs", "size", "batch", "linear_init", "device")  # what changes the figures


def basis_of(dataset: DataSet, options: Options) -> dict[str, Any]:
    """Return all that every result of a comparison depends on, as JSON values (work.Work)."""
    basis = {"version": 1, "data": data.fingerprint(dataset)} | {name: getattr(options, name) for name in DECIDING}
    usual = Options()
    basis |= {name: value for name in DECIDING_LATER if (value := getattr(options, name)) != getattr(usual, name)}
    if dataset.areas is not None:
        basis["areas"] = hashlib.sha256(dataset.areas.tobytes()).hexdigest()[:16]
    return basis


@dataclass
class Comparison:
    """One comparison in progress: its trainings, and the folder of finished results."""

    options: Options
    work: Work
    trainings: Trainings
    tasks: Tasks
    cluster: OnCluster

    @classmethod
    def build(cls, dataset: DataSet, options: Options, tasks: Tasks, cluster: OnCluster) -> "Comparison":
        """Return the comparison of these options; compute the features if they are needed and missing."""
        trainings = Trainings(training_function(dataset, options), tasks)
        return cls(options, Work(options.work, basis_of(dataset, options)), trainings, tasks, cluster)

    def rows(self) -> Iterator[dict]:
        """Yield the row of every share, way of clicking and method; print progress and the remaining time."""
        pairs = [(share, naming, name) for share, naming in self.tasks for name in self.options.methods]
        choices = {name: tune.candidates(name, self.options) for name in self.options.methods}
        tuned = [pair for pair in pairs if choices[pair[2]]]
        tried = [
            Cell("trial", name, share, 0, choice, naming) for share, naming, name in tuned for choice in choices[name]
        ]
        self.expect(len(pairs) * self.options.seeds + len(tried))
        scores = self.made(tried)
        changed = self.options.parameters
        chosen: dict[tuple[float, Naming, str], tuple[Choice, list[float]]] = {
            pair: (Choice(parameters=changed.get(pair[2], {})), []) for pair in pairs
        }
        budget = len(tried) // max(len(tuned), 1)  # the same for every method
        for place, pair in enumerate(tuned):
            of_pair = scores[place * budget : (place + 1) * budget]
            chosen[pair] = tune.best_of(choices[pair[2]], [result["val_map"] for result in of_pair])
        seeds = range(self.options.seeds)
        cells = [
            Cell("result", name, share, seed, chosen[share, naming, name][0], naming)
            for share, naming, name in pairs
            for seed in seeds
        ]
        results = self.made(cells)
        for place, (share, naming, name) in enumerate(pairs):
            choice, of_trials = chosen[share, naming, name]
            of_pair = results[place * len(seeds) : (place + 1) * len(seeds)]
            yield _row(name, share, naming, of_pair) | {"chosen": asdict(choice), "trial_scores": of_trials}

    def expect(self, trainings: int) -> None:
        """Print progress out of `trainings` from now on; call it before `made`."""
        self.clock = _Clock(trainings)

    def made(self, cells: Sequence[Cell]) -> list[dict]:
        """Return the result of each training in the order of `cells`; finished ones are read from the work folder."""
        results: dict[int, dict] = {}
        waiting: list[int] = []
        for place, cell in enumerate(cells):
            finished = self.work.finished(cell.kind, cell.what)
            if finished is None:
                waiting.append(place)
            else:
                results[place] = finished
                self.clock.tick(True, cell.said(finished))
        for place, result in self._trained(cells, waiting):
            cell = cells[place]
            self.work.finish(cell.kind, cell.what, result)
            forget(self._state(cell))
            results[place] = result
            self.clock.tick(False, cell.said(result))
        return [results[place] for place in range(len(cells))]

    def _trained(self, cells: Sequence[Cell], places: Sequence[int]) -> Iterator[tuple[int, dict]]:
        """Yield each of these cells and its result: first those trained on the cluster, then those trained here."""
        sent = [place for place in places if self.options.on != "local" and cells[place].can_be_sent]
        if sent:
            yield from self.cluster.results(self.trainings, cells, sent)
        for place in places:
            if place not in sent:
                yield place, self.trainings.result(cells[place], self._state(cells[place]))

    def _state(self, cell: Cell) -> Path:
        return self.work.place(cell.kind, cell.what)


class _Clock:
    """A printer of progress that estimates the remaining time from the trainings that were not finished before."""

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


def _row(name: str, share: float, naming: Naming, results: Sequence[dict]) -> dict:
    row: dict = {"method": name, "share": share, "clicks": naming.label}
    figures = (*FIGURES, *(key for key in results[0] if key in MEASURES or "@" in key))
    for key in (key for key in figures if key in results[0]):
        values = [result[key] for result in results]
        if not all(map(math.isfinite, values)):  # a measure that a seed has nothing for
            continue
        row[key] = round(statistics.fmean(values), 5)
        row[f"{key}_std"] = round(statistics.pstdev(values), 5)
    if "val_map" in results[0]:
        row["val_map"] = round(statistics.fmean(result["val_map"] for result in results), 5)
    if "separations" in results[0]:
        row["separations"] = [result["separations"] for result in results]
    return row | {"epoch": [result["epoch"] for result in results]}


def with_differences(rows: list[dict]) -> list[dict]:
    """Return the rows; those of other clicks get their gain over random clicks (`_over_random`)."""
    random = {(row["method"], row["share"]): row for row in rows if row["clicks"] == RANDOM.label}
    return [
        row
        if row["clicks"] == RANDOM.label
        else row
        | {f"{key}_over_random": round(row[key] - random[row["method"], row["share"]][key], 5) for key in HIDDEN}
        for row in rows
    ]


def _setting(dataset: DataSet, options: Options, tasks: Tasks, command: str) -> dict:
    truth = data.everything(dataset).truth
    at_random = {share: drawn for (share, naming), drawn in tasks.items() if naming == RANDOM}
    chance = {share: float(np.mean([task.chance() for task in drawn])) for share, drawn in at_random.items()}
    choices = asdict(options) | {"methods": list(options.methods), "shares": list(options.shares)}
    del choices["work"], choices["on"]
    return choices | {
        "command": command,
        "data": dataset.name,
        "images": len(truth),
        **{name: len(getattr(dataset, name)) for name in data.PARTS},
        "classes": len(dataset.classes),
        "labels_an_image": round(float(truth.sum(1).mean()), 4),
        "labelled": {f"{share:g}": [len(task.labelled) for task in drawn] for share, drawn in at_random.items()},
        "chance": {f"{share:g}": round(value, 5) for share, value in chance.items()},
        "searched": tune.space(options),
        "first": FIRST,
        "named": {naming.label: _named(tasks[options.shares[-1], naming]) for naming in options.namings},
        "notes": list(dataset.notes),
    }


def _named(drawn: Sequence[Task]) -> list[float]:
    """Return the lowest and the highest naming rate of the classes that are shown at least OFTEN times.

    If no class is shown so often, all classes count.
    """
    truth = np.concatenate([task.truth[task.train] for task in drawn])
    labels = np.concatenate([task.labels for task in drawn])
    is_seen_often = truth[(labels == PRESENT).any(1)].sum(0) >= OFTEN
    rates = naming_rates(truth, labels)[is_seen_often] if is_seen_often.any() else naming_rates(truth, labels)
    return [round(float(limit(rates)), 4) for limit in (np.nanmin, np.nanmax)]
