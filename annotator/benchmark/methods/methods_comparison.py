"""`annotator bench methods`: every training method on equal images, labels and budget."""

import hashlib
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.first_named_class import RANDOM_NAMING, Naming, compute_naming_rates
from annotator.benchmark.methods import data, measures, tune
from annotator.benchmark.methods.cells import Cell, Tasks, Trainings
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.epochs import delete_files
from annotator.benchmark.methods.finished_results import Work
from annotator.benchmark.methods.on_cluster import TrainingCluster
from annotator.benchmark.methods.supervision import SINGLE_POSITIVE, Supervision
from annotator.benchmark.methods.task import (
    HIDDEN_FIGURES,
    REPORTED_FIGURES,
    SUGGESTIONS_PER_SITTING,
    Choice,
    Task,
    make_task,
)
from annotator.benchmark.methods.trainers import make_training_function
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError
from spmll.labels import PRESENT
from spmll.methods import METHODS
from spmll.single_positive_sampling import ALL_LABELS

# key, heading, digits; the figures with a spread are written "mean +- deviation".
TABLE_COLUMNS = (
    ("test_map", "test mAP", 1),
    *((key, measures.FIGURE_HEADINGS[key], 1) for key in HIDDEN_FIGURES),
    (f"precision_{SUGGESTIONS_PER_SITTING}", f"of first {SUGGESTIONS_PER_SITTING}", 1),
    ("ece", "ECE", 1),
    ("seconds", "s / epoch", 3),
)
METHODS_NOTE = (
    "Figures but the last are percent, mean and standard deviation over seeds. test mAP: mean over classes of the "
    "average precision on the test images. hidden AP: average precision of the hidden positives of the training "
    "images, all unanswered cells in one ranking; hidden mAP: the same class by class, and then the mean. of first "
    f"{SUGGESTIONS_PER_SITTING}: how many of the first {SUGGESTIONS_PER_SITTING} suggestions are true. ECE: expected "
    "calibration error on the test images."
)


def measure_methods(
    images: Path | None = None,
    truth: Path | None = None,
    *,
    boxes: Path | None = None,
    dataset: str | None = None,
    root: Path | None = None,
    options: Options | None = None,
    command: str = "",
) -> dict:
    """Train every method at every labeled share with every seed, and return their figures.

    Args:
        truth: CSV `image,labels`.
        dataset, root: Published set and its folder, instead of `images`. Without either the sample data is
            used.
        options: `regime` is "linear" or "finetune". `trials` settings are tried per method and share on
            validation mAP. With `no_split` all images are training images and the last epoch counts.

    Returns:
        {"bench": "methods", "rows": [...], "setting": {...}}. A row has method, share, clicks, seed means of
        REPORTED_FIGURES with deviation (`_std`), and for nonrandom clicks the gain `hidden_ap_over_random`.

    Raises:
        AnnotatorError: For invalid options or data.
        ValueError: From models.
    """
    asked = options or Options()
    options = asked.check_and_resolve()
    if "all" in asked.methods:
        for reason in filter(None, map(asked.find_obstacle, METHODS)):
            print_progress(f"left out: {reason}")
    return compare_methods(
        data.read_dataset(images, truth, dataset, root, boxes=boxes, split=not options.no_split), options, command
    )


def compare_methods(dataset: DataSet, options: Options, command: str = "") -> dict:
    """Return the figures of every method on a loaded set. `options` must be resolved.

    Raises AnnotatorError for unsuitable data, and ValueError from models.
    """
    tasks = {
        (share, naming): [
            make_task(
                dataset,
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
        if options.supervision.hides and not any(task.compute_chance() > 0 for task in drawn):
            raise AnnotatorError(f"At a share of {share:g} every label is known: there is nothing hidden to find.")
    with TrainingCluster(options.on) as cluster:
        rows = add_differences(list(Comparison.build(dataset, options, tasks, cluster).iterate_rows()))
    return {"bench": "methods", "rows": rows, "setting": _describe_setting(dataset, options, tasks, command)}


# labeled images that show a class, over all seeds, from which on its rate of being named is reported
MIN_SHOWN_IMAGES = 20
# What changes the figures too; results from before there was a choice are those of the default.
LATER_RESULT_OPTIONS = ("precision", "protocol", "labels", "positives", "negatives", "validate", "measures")
RESULT_OPTIONS = ("regime", "backbone", "epochs", "size", "batch", "linear_init", "device")  # what changes the figures


def make_basis(dataset: DataSet, options: Options) -> dict[str, Any]:
    """Return everything that all results depend on, as JSON values."""
    basis = {"version": 1, "data": data.compute_fingerprint(dataset)} | {
        name: getattr(options, name) for name in RESULT_OPTIONS
    }
    usual = Options()
    basis |= {name: value for name in LATER_RESULT_OPTIONS if (value := getattr(options, name)) != getattr(usual, name)}
    if dataset.areas is not None:
        basis["areas"] = hashlib.sha256(dataset.areas.tobytes()).hexdigest()[:16]
    return basis


@dataclass
class Comparison:
    """A comparison in progress, with its trainings and its finished results."""

    options: Options
    work: Work
    trainings: Trainings
    tasks: Tasks
    cluster: TrainingCluster

    @classmethod
    def build(cls, dataset: DataSet, options: Options, tasks: Tasks, cluster: TrainingCluster) -> "Comparison":
        trainings = Trainings(make_training_function(dataset, options), tasks)
        return cls(options, Work(options.work, make_basis(dataset, options)), trainings, tasks, cluster)

    def iterate_rows(self) -> Iterator[dict]:
        """Yield the result row of every share, click model and method, printing progress."""
        pairs = [(share, naming, name) for share, naming in self.tasks for name in self.options.methods]
        choices = {name: tune.list_candidates(name, self.options) for name in self.options.methods}
        tuned = [pair for pair in pairs if choices[pair[2]]]
        tried = [
            Cell("trial", name, share, 0, choice, naming) for share, naming, name in tuned for choice in choices[name]
        ]
        self.expect_trainings(len(pairs) * self.options.seeds + len(tried))
        scores = self.compute_results(tried)
        changed = self.options.parameters
        chosen: dict[tuple[float, Naming, str], tuple[Choice, list[float]]] = {
            pair: (Choice(parameters=changed.get(pair[2], {})), []) for pair in pairs
        }
        budget = len(tried) // max(len(tuned), 1)  # the same for every method
        for place, pair in enumerate(tuned):
            of_pair = scores[place * budget : (place + 1) * budget]
            chosen[pair] = tune.choose_best(choices[pair[2]], [result["val_map"] for result in of_pair])
        seeds = range(self.options.seeds)
        cells = [
            Cell("result", name, share, seed, chosen[share, naming, name][0], naming)
            for share, naming, name in pairs
            for seed in seeds
        ]
        results = self.compute_results(cells)
        for place, (share, naming, name) in enumerate(pairs):
            choice, of_trials = chosen[share, naming, name]
            of_pair = results[place * len(seeds) : (place + 1) * len(seeds)]
            yield _make_row(name, share, naming, of_pair) | {"chosen": asdict(choice), "trial_scores": of_trials}

    def expect_trainings(self, trainings: int) -> None:
        """Start the progress display for this number of trainings, before `compute_results`."""
        self.clock = _ProgressClock(trainings)

    def compute_results(self, cells: Sequence[Cell]) -> list[dict]:
        """Return each training's result in order, reusing finished ones."""
        results: dict[int, dict] = {}
        waiting: list[int] = []
        for place, cell in enumerate(cells):
            finished = self.work.load_result(cell.kind, cell.result_key)
            if finished is None:
                waiting.append(place)
            else:
                results[place] = finished
                self.clock.report_training(True, cell.describe_result(finished))
        for place, result in self._train_cells(cells, waiting):
            cell = cells[place]
            self.work.store_result(cell.kind, cell.result_key, result)
            delete_files(self._get_state_path(cell))
            results[place] = result
            self.clock.report_training(False, cell.describe_result(result))
        return [results[place] for place in range(len(cells))]

    def _train_cells(self, cells: Sequence[Cell], places: Sequence[int]) -> Iterator[tuple[int, dict]]:
        sent = [place for place in places if self.options.on != "local" and cells[place].can_be_sent]
        if sent:
            yield from self.cluster.iterate_results(self.trainings, cells, sent)
        for place in places:
            if place not in sent:
                yield place, self.trainings.compute_result(cells[place], self._get_state_path(cells[place]))

    def _get_state_path(self, cell: Cell) -> Path:
        return self.work.get_path(cell.kind, cell.result_key)


class _ProgressClock:
    """A printer of progress, which estimates the remaining time from the trainings that were not stored before."""

    def __init__(self, steps: int):
        self.steps, self.done, self.trained_count, self.started = steps, 0, 0, time.monotonic()

    def report_training(self, cached: bool, text: str) -> None:
        self.done += 1
        self.trained_count += not cached
        left = (self.steps - self.done) * (time.monotonic() - self.started) / max(self.trained_count, 1)
        end = " (done before)" if cached else f"; about {_format_span(left)} left" if self.done < self.steps else ""
        print_progress(f"[{self.done}/{self.steps}] {text}{end}")


def _format_span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _make_row(name: str, share: float, naming: Naming, results: Sequence[dict]) -> dict:
    row: dict = {"method": name, "share": share, "clicks": naming.label}
    figures = (*REPORTED_FIGURES, *(key for key in results[0] if key in measures.PLAIN_MEASURES or "@" in key))
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


def add_differences(rows: list[dict]) -> list[dict]:
    """Add to each row its gains over the same method on random clicks (`_over_random`)."""
    random = {(row["method"], row["share"]): row for row in rows if row["clicks"] == RANDOM_NAMING.label}
    return [
        row
        if row["clicks"] == RANDOM_NAMING.label
        else row
        | {
            f"{key}_over_random": round(row[key] - random[row["method"], row["share"]][key], 5)
            for key in HIDDEN_FIGURES
        }
        for row in rows
    ]


def _describe_setting(dataset: DataSet, options: Options, tasks: Tasks, command: str) -> dict:
    truth = data.join_parts(dataset).truth
    at_random = {share: drawn for (share, naming), drawn in tasks.items() if naming == RANDOM_NAMING}
    chance = {share: float(np.mean([task.compute_chance() for task in drawn])) for share, drawn in at_random.items()}
    choices = asdict(options) | {"methods": list(options.methods), "shares": list(options.shares)}
    del choices["work"], choices["on"]
    return choices | {
        "command": command,
        "data": dataset.name,
        "images": len(truth),
        **{name: len(getattr(dataset, name)) for name in data.PART_NAMES},
        "classes": len(dataset.classes),
        "labels_an_image": round(float(truth.sum(1).mean()), 4),
        "labelled": {f"{share:g}": [len(task.labeled_places) for task in drawn] for share, drawn in at_random.items()},
        "chance": {f"{share:g}": round(value, 5) for share, value in chance.items()},
        "searched": tune.describe_space(options),
        "first": SUGGESTIONS_PER_SITTING,
        "named": {naming.label: _find_naming_range(tasks[options.shares[-1], naming]) for naming in options.namings},
        "notes": list(dataset.notes),
    }


def _find_naming_range(tasks: Sequence[Task]) -> list[float]:
    truth = np.concatenate([task.truth[task.train] for task in tasks])
    labels = np.concatenate([task.labels for task in tasks])
    is_seen_often = truth[(labels == PRESENT).any(1)].sum(0) >= MIN_SHOWN_IMAGES
    rates = (
        compute_naming_rates(truth, labels)[is_seen_often]
        if is_seen_often.any()
        else compute_naming_rates(truth, labels)
    )
    return [round(float(limit(rates)), 4) for limit in (np.nanmin, np.nanmax)]


def build_methods_report(result: dict) -> Report:
    """Return the report: one table for each labeled share and click model, and comparisons of click models."""
    groups = dict.fromkeys((row["share"], row["clicks"]) for row in result["rows"])
    return Report(
        _make_about_lines(result),
        [*(_build_share_table(result, *group) for group in groups), *_build_clicks_tables(result)],
        [" ".join([METHODS_NOTE, *measures.list_notes(result["setting"]["measures"])])],
        command=result["setting"]["command"],
    )


def _make_about_lines(result: dict) -> list[str]:
    setting = result["setting"]
    lines = [
        f"{setting['data']}: {setting['images']:,} images ({setting['train']:,} train, "
        f"{setting['val']:,} validation, {setting['test']:,} test), {setting['classes']} classes, "
        f"{setting['labels_an_image']:.2f} labels an image.",
        f"Regime {setting['regime']}, {setting['backbone']}, {_format_precision(setting)}{setting['seeds']} seeds, "
        f"{_describe_tuning(setting)}, on {setting['device']}.",
    ]
    told = Supervision(*(setting[name] for name in ("labels", "positives", "negatives", "validate")))
    if told != SINGLE_POSITIVE:
        lines.append(_describe_supervision(told))
    if setting["changed"]:
        lines.append(f"Changed constants: {', '.join(setting['changed'])}.")
    if len(setting["named"]) > 1:
        lines += [
            f"First clicks {way}: a class is named on {100 * low:.0f} to {100 * high:.0f} % of the labeled images that "
            "show it."
            for way, (low, high) in setting["named"].items()
        ]
    return lines + [f"Note: {note}." for note in setting["notes"]]


def _describe_tuning(setting: dict) -> str:
    if setting["protocol"] == "cole":
        tried = len(setting["searched"]["lr"]) * len(setting["searched"]["batches"])
        return f"protocol of Cole et al. at {setting['size']} pixels, the best of {tried} settings on validation mAP"
    return (
        f"{setting['trials']} trials of tuning on validation mAP" if setting["trials"] > 1 else "settings as they come"
    )


def _format_precision(setting: dict) -> str:
    if setting["regime"] != "finetune":
        return ""
    return f"{setting['precision'] or 'precision of each paper'}, "


def _describe_supervision(supervision: Supervision) -> str:
    counts = ("all" if count == ALL_LABELS else str(count) for count in (supervision.positives, supervision.negatives))
    known = "all labels" if supervision.labels == "full" else "{} positives and {} negatives".format(*counts)
    return (
        f"Known of a labeled training image: {known}. Validation labels that choose the epoch: {supervision.validate}."
    )


def _build_share_table(result: dict, share: float, clicks: str) -> ReportTable:
    """Return a table of the methods at one share, highest hidden AP (on unlabeled training cells) first."""
    best = "hidden_ap" if "hidden_ap" in result["rows"][0] else "test_map"
    rows = [row for row in result["rows"] if (row["share"], row["clicks"]) == (share, clicks)]
    columns = _list_columns(result)
    cells = [
        [f"`{row['method']}`", *(_format_cell(row, key, digits) for key, _, digits in columns)]
        for row in sorted(rows, key=lambda row: -row.get(best, 0))
    ]
    how = "" if clicks == RANDOM_NAMING.label else f", {clicks} clicks"
    chance = f"hidden AP by chance: {100 * result['setting']['chance'][f'{share:g}']:.1f}"
    title = f"Labels on {100 * share:g} % of the training images{how} ({chance})"
    return ReportTable(["method", *(heading for _, heading, _ in columns)], cells, title)


def _list_columns(result: dict) -> list[tuple[str, str, int]]:
    asked = [(name, name, 1) for name in result["setting"]["measures"]]
    columns, measured = [*TABLE_COLUMNS[:-1], *asked, TABLE_COLUMNS[-1]], {key for row in result["rows"] for key in row}
    return [column for column in columns if column[0] in measured]


def _format_cell(row: dict, key: str, digits: int) -> str:
    if key not in row:
        return "-"
    if key == "seconds":
        return f"{row[key]:.{digits}f}"
    spread = row.get(f"{key}_std")
    return f"{100 * row[key]:.{digits}f}" + (f" ± {100 * spread:.{digits}f}" if spread is not None else "")


def _build_clicks_tables(result: dict) -> list[ReportTable]:
    """Return a table of methods by click model for each share and figure, [] if all clicks are random."""
    if len(result["setting"]["named"]) < 2:
        return []
    shares = dict.fromkeys(row["share"] for row in result["rows"])
    return [_build_clicks_table(result, share, key) for share in shares for key in HIDDEN_FIGURES]


def _build_clicks_table(result: dict, share: float, key: str) -> ReportTable:
    ways = list(result["setting"]["named"])
    rows = {(row["method"], row["clicks"]): row for row in result["rows"] if row["share"] == share}
    names = dict.fromkeys(name for name, _ in rows)
    cells = [
        [f"`{name}`", *(_format_clicks_cell(rows[name, way], key) for way in ways)]
        for name in sorted(names, key=lambda name: -sum(rows[name, way][key] for way in ways))
    ]
    if len(names) > 1:
        cells.append(["first, and its lead", *(_format_lead(rows, names, way, key) for way in ways)])
    heading = measures.FIGURE_HEADINGS[key]
    title = f"{heading} by first clicks, {100 * share:g} % labeled (difference from random clicks)"
    return ReportTable(["method", *ways], cells, title)


def _format_clicks_cell(row: dict, key: str) -> str:
    more = row.get(f"{key}_over_random")
    return f"{100 * row[key]:.1f}" + ("" if more is None else f" ({100 * more:+.1f})")


def _format_lead(rows: dict, names: Iterable[str], way: str, key: str) -> str:
    first, second = sorted(names, key=lambda name: -rows[name, way][key])[:2]
    return f"`{first}` +{100 * (rows[first, way][key] - rows[second, way][key]):.1f}"
