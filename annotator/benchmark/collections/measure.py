"""`auto` against the best published method on many collections, with constants chosen on the other collections.

Every method is taken as it comes. The published ones keep their best epoch by the validation images, which are fully
labeled; `auto` keeps its last. The best published method is another one from cell to cell: a collection, a share of
labels and one of the two figures.
"""

import hashlib
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.collections.answers import SHARE, rare_totals
from annotator.benchmark.collections.recipes import COLLECTIONS, KEPT_BACK, make_collection
from annotator.benchmark.collections.settings import SPACE, drawn_settings, left_out_choices
from annotator.benchmark.datasets import DataSet
from annotator.benchmark.datasets.clicks import clicks
from annotator.benchmark.harness.processes import say
from annotator.benchmark.harness.projects import SAMPLE
from annotator.benchmark.methods import data
from annotator.benchmark.methods.cells import Cell
from annotator.benchmark.methods.images import ComparedImages
from annotator.benchmark.methods.measure import Comparison
from annotator.benchmark.methods.on_cluster import OnCluster
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import HIDDEN, RARE, Choice, task_of
from annotator.benchmark.naming import RANDOM
from annotator.errors import AnnotatorError, did_you_mean

OURS = "auto"
SAMPLE_DATA = "sample_data"
RIVALS = ("an", "wan", "epr", "role", "em", "em_apl", "gr", "ll_r", "hill")
SHARES = (0.02, 0.05, 0.2, 1.0)


def measure(
    folders: Sequence[Path] = (),
    *,
    made: Sequence[str] = (SAMPLE_DATA, *COLLECTIONS),
    images: int = 400,
    most: int = 2000,
    settings: int = 1,
    options: Options = Options(RIVALS, shares=SHARES, seeds=2),
    command: str = "",
) -> dict[str, Any]:
    """Compare `auto` with the rivals on the given folders, and on collections made by recipe or brought along.

    Args:
        folders: Folders that hold `images` and `truth.csv`.
        made: Names of recipes.COLLECTIONS and recipes.KEPT_BACK, and SAMPLE_DATA.
        images: The number of images of each collection made by recipe.
        most: The largest number of images of a folder that take part, chosen by a hash of their names.
        settings: The number of settings of the constants of `auto` to try, the present one first.
        options: Methods: the rivals. shares, seeds, epochs, backbone, device, work: as in methods.measure.
        command: The command line, for the report.

    Returns:
        {"bench", "setting", "rows", "rare", "methods", "settings", "summary"}. A row, of a collection and a share: the
        mean over seeds of each of HIDDEN of `auto` with its present constants, and with those chosen without this
        collection (`_left_out`), of the best rival, and its name; `ece` and `ece_left_out` on test images; RARE as
        task.py has it. `rare`: of each collection, the rare classes of all seeds once questions were answered, and how
        many of them have an honest total.

    Raises:
        AnnotatorError: A folder is no such collection, a recipe does not exist, or options make no sense.
    """
    options = replace(options, methods=(OURS, *options.methods)).checked()
    known = (SAMPLE_DATA, *COLLECTIONS, *KEPT_BACK)
    if unknown := [name for name in made if name not in known]:
        raise AnnotatorError(f"No collection is called {unknown[0]!r}. {did_you_mean(unknown[0], known, 99)}")
    tried = drawn_settings(settings)
    places = _places(folders, made, images, options.work)
    results = {name: _results(name, place, most, tried, options) for name, place in places.items()}
    scores = np.array([[result["scores"][number] for result in results.values()] for number in range(len(tried))])
    chosen = left_out_choices(scores)
    rows = [
        _row(name, share, result["figures"], choice)
        for (name, result), choice in zip(results.items(), chosen, strict=True)
        for share in options.shares
    ]
    return {
        "bench": "collections",
        "setting": {
            "command": command,
            "backbone": options.backbone,
            "seeds": options.seeds,
            "shares": list(options.shares),
            "rivals": [name for name in options.methods if name != OURS],
            "collections": {name: result["about"] | {"chosen": choice}
                            for (name, result), choice in zip(results.items(), chosen, strict=True)},
            "searched": {name: list(values) for name, values in SPACE.items()} if settings > 1 else {},
        },
        "settings": [{"constants": constants, "scores": scores[number].round(5).tolist(),
                      "mean": round(float(scores[number].mean()), 5)} for number, constants in enumerate(tried)],
        "rows": rows,
        "rare": {name: list(result["rare"]) for name, result in results.items()},
        "methods": _methods([result["figures"] for result in results.values()], options),
        "summary": {"present": summary(rows, ""), "left_out": summary(rows, "_left_out")},
    }  # fmt: skip


def summary(rows: Sequence[dict[str, Any]], which: str) -> dict[str, float]:
    """Return the summary of all cells (collection, share, figure).

    Args:
        rows: The rows that `measure` returns.
        which: "" for the present constants, "_left_out" for those that were chosen without the collection.

    Returns:
        `cells`, their number; `first`, the share of them in which `auto` is not behind the best rival; `lead`, its mean
        lead, and `worst`, its smallest one, both in [-1, 1]; `ece`, the mean over collections and shares; `near`, the
        share of cells in which it is at most a point behind; `rare`, the number of rare classes of a seed over all
        collections and shares (metrics.honest_totals), and `honest`, the share of them with an honest total.
    """
    rare = sum(row[f"rare{which}"] for row in rows)
    leads = [row[f"{key}{which}"] - row[f"{key}_rival"] for row in rows for key in HIDDEN]
    return {
        "cells": len(leads),
        "first": sum(lead >= 0 for lead in leads) / len(leads),
        "lead": statistics.fmean(leads),
        "worst": min(leads),
        "near": sum(lead >= -0.01 for lead in leads) / len(leads),
        "ece": statistics.fmean(row[f"ece{which}"] for row in rows),
        "rare": rare,
        "honest": sum(row[f"rare_honest{which}"] for row in rows) / max(rare, 1),
    }


def _places(folders: Sequence[Path], made: Sequence[str], images: int, root: Path) -> dict[str, Path]:
    """Return the folder of each collection by name; collections by recipe are made below `root` if they are missing."""
    places = {path.resolve().name: path for path in folders}
    root.mkdir(parents=True, exist_ok=True)
    if len(places) < len(folders) or set(places) & set(made):
        raise AnnotatorError(
            f"Two of the collections have the same name: {', '.join([*(path.name for path in folders), *made])}. "
            "Rename one of the folders, or leave one out with --made."
        )
    for name in made:
        if name == SAMPLE_DATA:
            places[name] = SAMPLE
            continue
        place = root / f"{name}-{images}"
        if not place.exists():
            say(f"making {images} images of {name}")
            part = place.with_name(f"{place.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
            make_collection(part, name, images)
            part.rename(place)
        places[name] = place
    return places


def _results(name: str, place: Path, most: int, tried: Sequence[dict[str, Any]], options: Options) -> dict[str, Any]:
    """Train every method on one collection and return its results.

    `about` describes the collection; `rare` is from rare_totals; `figures` holds the means over seeds of each
    training, by (method, number of the setting, share); `scores` holds one score for each setting of `auto`.
    """
    say(f"== {name}")
    dataset = reduced(data.read(place / "images", place / "truth.csv", None, None), most)
    tasks = {
        (share, RANDOM): [task_of(dataset, share, seed) for seed in range(options.seeds)] for share in options.shares
    }
    choices = [(OURS, Choice(parameters=constants)) for constants in tried]
    choices += [(method, Choice()) for method in options.methods if method != OURS]
    wanted = [
        (method, number, share, Cell("result", method, share, seed, choice))
        for number, (method, choice) in enumerate(choices)
        for share in options.shares
        for seed in range(options.seeds)
    ]
    with OnCluster(options.on) as cluster:
        comparison = Comparison.build(dataset, options, tasks, cluster)
        comparison.expect(len(wanted))
        done = comparison.made([cell for *_, cell in wanted])
    answered = [task_of(dataset, SHARE, seed) for seed in range(options.seeds)]
    rare = rare_totals(ComparedImages(dataset, options), answered, comparison.work)
    figures: dict[tuple[str, int, float], dict[str, float]] = {}
    for place_, (method, number, share, _) in enumerate(wanted):
        if place_ % options.seeds == 0:
            of_seeds = done[place_ : place_ + options.seeds]
            key = (method, number if method == OURS else 0, share)
            figures[key] = {
                figure: statistics.fmean(result[figure] for result in of_seeds) for figure in (*HIDDEN, "ece", *RARE)
            }
    scores = [
        statistics.fmean(figures[OURS, number, share][key] for share in options.shares for key in HIDDEN)
        for number in range(len(tried))
    ]
    whole = data.everything(dataset).truth
    about = {"images": len(whole), "classes": whole.shape[1], "labels_an_image": round(float(whole.sum(1).mean()), 2)}
    return {"about": about, "figures": figures, "scores": scores, "rare": rare}


def _row(name: str, share: float, figures: dict, choice: int) -> dict[str, Any]:
    row: dict[str, Any] = {"collection": name, "share": share}
    for figure in HIDDEN:
        rivals = {method: of[figure] for (method, _, at), of in figures.items() if method != OURS and at == share}
        best = max(rivals, key=lambda method: rivals[method])
        row |= {f"{figure}_rival": rivals[best], f"{figure}_rival_is": best}
    for figure in (*HIDDEN, "ece", *RARE):
        row |= {figure: figures[OURS, 0, share][figure], f"{figure}_left_out": figures[OURS, choice, share][figure]}
    return row


def _methods(figures: Sequence[dict], options: Options) -> list[dict[str, Any]]:
    """Return one row for each method, in falling order of the means of its figures; `auto` has its present constants.

    A row holds the mean of each figure over all collections and shares, and as `best` the number of cells (collection,
    share, figure) in which the method is first.
    """
    cells = [(of, share, key) for of in figures for share in options.shares for key in HIDDEN]
    first = [max(options.methods, key=lambda name: of[name, 0, share][key]) for of, share, key in cells]
    means = [
        {"method": name, "best": first.count(name)}
        | {key: statistics.fmean(of[name, 0, share][key] for of, share, at in cells if at == key) for key in HIDDEN}
        for name in options.methods
    ]
    return sorted(means, key=lambda of: -sum(of[key] for key in HIDDEN))


def reduced(dataset: DataSet, most: int) -> DataSet:
    """Return at most `most` images of a set, chosen by a hash of their names, the three parts in proportion."""
    size = sum(len(getattr(dataset, name)) for name in data.PARTS)
    if size <= most:
        return dataset
    parts = {}
    for name in data.PARTS:
        part = getattr(dataset, name)
        order = np.argsort([hashlib.sha256(path.name.encode()).hexdigest() for path in part.paths], kind="stable")
        parts[name] = part.rows(np.sort(order[: max(1, most * len(part) // size)]))
    return replace(dataset, observed=clicks(parts["train"].truth, 1.0, 0), **parts)
