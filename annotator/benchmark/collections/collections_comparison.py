"""Comparison of the method `auto` with the best published method, with constants chosen on other collections.

Published methods keep the best epoch on fully labeled validation images, `auto` its last. A cell is one combination of
collection, labeled share and figure.
"""

import hashlib
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.collections.answers import CLICKED_SHARE, measure_rare_totals
from annotator.benchmark.collections.recipes import COLLECTION_NAMES, KEPT_BACK_NAMES, make_collection
from annotator.benchmark.collections.searched_settings import SEARCH_SPACE, choose_left_out_settings, draw_settings
from annotator.benchmark.datasets import DataSet
from annotator.benchmark.datasets.clicks import draw_clicks
from annotator.benchmark.first_named_class import RANDOM_NAMING
from annotator.benchmark.methods import data
from annotator.benchmark.methods.cells import Cell
from annotator.benchmark.methods.compared_images import ComparedImages
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.measures import FIGURE_HEADINGS
from annotator.benchmark.methods.methods_comparison import Comparison
from annotator.benchmark.methods.on_cluster import TrainingCluster
from annotator.benchmark.methods.task import HIDDEN_FIGURES, RARE_FIGURES, Choice, make_task
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError, did_you_mean
from annotator.humanize import format_count
from annotator.settings import SAMPLE_DATA_FOLDER
from spmll.methods import get_default_parameters

OUR_METHOD = "auto"
SAMPLE_DATA = "sample_data"
RIVAL_METHODS = ("an", "wan", "epr", "role", "em", "em_apl", "gr", "ll_r", "hill")
LABELED_SHARES = (0.02, 0.05, 0.2, 1.0)
COLLECTIONS_NOTE = (
    "Percent and points; means over seeds. Of each figure: auto with its present constants, the best published method "
    "there, and the lead. Published methods keep their best epoch by fully labeled validation images; auto keeps its "
    "last. ECE: expected calibration error of auto on the test images."
)
LEFT_OUT_NOTE = (
    "Left out: auto with the constants that were best on average over the other collections, of all settings that were "
    "tried."
)


def measure_collections(
    folders: Sequence[Path] = (),
    *,
    made: Sequence[str] = (SAMPLE_DATA, *COLLECTION_NAMES),
    images: int = 400,
    most: int = 2000,
    settings: int = 1,
    options: Options = Options(RIVAL_METHODS, shares=LABELED_SHARES, seeds=2),
    command: str = "",
) -> dict[str, Any]:
    """Compare `auto` with the rivals on given folders and generated collections.

    Args:
        folders: Folders with `images` and `truth.csv`.
        made: Generated collections, and SAMPLE_DATA.
        most: Maximum of images per folder.
        settings: Number of `auto` settings to try, the current one first.
        options: Its methods are the rivals.

    Returns:
        {"bench", "setting", "rows", "rare", "methods", "settings", "summary"}. A row (collection, share) has
        seed means of HIDDEN_FIGURES for `auto`, for `auto` with constants chosen without this collection, and
        for the best rival. `rare` has rare classes per collection and those with an honest total.

    Raises:
        AnnotatorError: For an invalid folder, recipe or option.
    """
    options = replace(options, methods=(OUR_METHOD, *options.methods)).check_and_resolve()
    known = (SAMPLE_DATA, *COLLECTION_NAMES, *KEPT_BACK_NAMES)
    if unknown := [name for name in made if name not in known]:
        raise AnnotatorError(f"No collection is called {unknown[0]!r}. {did_you_mean(unknown[0], known, 99)}")
    tried = draw_settings(settings)
    places = _prepare_folders(folders, made, images, options.work)
    results = {name: _measure_collection(name, place, most, tried, options) for name, place in places.items()}
    scores = np.array([[result["scores"][number] for result in results.values()] for number in range(len(tried))])
    chosen = choose_left_out_settings(scores)
    rows = [
        _make_row(name, share, result["figures"], choice)
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
            "rivals": [name for name in options.methods if name != OUR_METHOD],
            "collections": {name: result["about"] | {"chosen": choice}
                            for (name, result), choice in zip(results.items(), chosen, strict=True)},
            "searched": {name: list(values) for name, values in SEARCH_SPACE.items()} if settings > 1 else {},
        },
        "settings": [{"constants": constants, "scores": scores[number].round(5).tolist(),
                      "mean": round(float(scores[number].mean()), 5)} for number, constants in enumerate(tried)],
        "rows": rows,
        "rare": {name: list(result["rare"]) for name, result in results.items()},
        "methods": _make_method_rows([result["figures"] for result in results.values()], options),
        "summary": {"present": summarize_cells(rows, ""), "left_out": summarize_cells(rows, "_left_out")},
    }  # fmt: skip


def summarize_cells(rows: Sequence[dict[str, Any]], suffix: str) -> dict[str, float]:
    """Return counts and mean leads of `auto` over all cells (collection, labeled share, figure).

    Args:
        suffix: "" for current constants, "_left_out" for those chosen without the collection.

    Returns:
        `cells`: number of cells. `first`, `near`: shares of cells where `auto` is not behind, or at most one
        point behind. `lead`, `worst`: mean and smallest lead. `ece`: mean calibration error. `rare`: number of
        rare classes. `honest`: share of them whose summed probability is within factor 2 of the truth.
    """
    rare = sum(row[f"rare{suffix}"] for row in rows)
    leads = [row[f"{key}{suffix}"] - row[f"{key}_rival"] for row in rows for key in HIDDEN_FIGURES]
    return {
        "cells": len(leads),
        "first": sum(lead >= 0 for lead in leads) / len(leads),
        "lead": statistics.fmean(leads),
        "worst": min(leads),
        "near": sum(lead >= -0.01 for lead in leads) / len(leads),
        "ece": statistics.fmean(row[f"ece{suffix}"] for row in rows),
        "rare": rare,
        "honest": sum(row[f"rare_honest{suffix}"] for row in rows) / max(rare, 1),
    }


def _prepare_folders(
    folders: Sequence[Path], collection_names: Sequence[str], image_count: int, root: Path
) -> dict[str, Path]:
    places = {path.resolve().name: path for path in folders}
    root.mkdir(parents=True, exist_ok=True)
    if len(places) < len(folders) or set(places) & set(collection_names):
        raise AnnotatorError(
            "Two of the collections have the same name: "
            f"{', '.join([*(path.name for path in folders), *collection_names])}. Rename one of the folders, or leave "
            "one out with --made."
        )
    for name in collection_names:
        if name == SAMPLE_DATA:
            places[name] = SAMPLE_DATA_FOLDER
            continue
        place = root / f"{name}-{image_count}"
        if not place.exists():
            print_progress(f"making {image_count} images of {name}")
            part = place.with_name(f"{place.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
            make_collection(part, name, image_count)
            part.rename(place)
        places[name] = place
    return places


def _measure_collection(
    name: str, place: Path, max_images: int, tried_settings: Sequence[dict[str, Any]], options: Options
) -> dict[str, Any]:
    print_progress(f"== {name}")
    dataset = limit_images(data.read_dataset(place / "images", place / "truth.csv", None, None), max_images)
    tasks = {
        (share, RANDOM_NAMING): [make_task(dataset, share, seed) for seed in range(options.seeds)]
        for share in options.shares
    }
    choices = [(OUR_METHOD, Choice(parameters=constants)) for constants in tried_settings]
    choices += [(method, Choice()) for method in options.methods if method != OUR_METHOD]
    wanted = [
        (method, number, share, Cell("result", method, share, seed, choice))
        for number, (method, choice) in enumerate(choices)
        for share in options.shares
        for seed in range(options.seeds)
    ]
    with TrainingCluster(options.on) as cluster:
        comparison = Comparison.build(dataset, options, tasks, cluster)
        comparison.expect_trainings(len(wanted))
        done = comparison.compute_results([cell for *_, cell in wanted])
    answered = [make_task(dataset, CLICKED_SHARE, seed) for seed in range(options.seeds)]
    rare = measure_rare_totals(ComparedImages(dataset, options), answered, comparison.work)
    figures: dict[tuple[str, int, float], dict[str, float]] = {}
    for place_, (method, number, share, _) in enumerate(wanted):
        if place_ % options.seeds == 0:
            of_seeds = done[place_ : place_ + options.seeds]
            key = (method, number if method == OUR_METHOD else 0, share)
            figures[key] = {
                figure: statistics.fmean(result[figure] for result in of_seeds)
                for figure in (*HIDDEN_FIGURES, "ece", *RARE_FIGURES)
            }
    scores = [
        statistics.fmean(figures[OUR_METHOD, number, share][key] for share in options.shares for key in HIDDEN_FIGURES)
        for number in range(len(tried_settings))
    ]
    whole = data.join_parts(dataset).truth
    about = {"images": len(whole), "classes": whole.shape[1], "labels_an_image": round(float(whole.sum(1).mean()), 2)}
    return {"about": about, "figures": figures, "scores": scores, "rare": rare}


def _make_row(name: str, share: float, figures: dict, choice: int) -> dict[str, Any]:
    row: dict[str, Any] = {"collection": name, "share": share}
    for figure in HIDDEN_FIGURES:
        rivals = {method: of[figure] for (method, _, at), of in figures.items() if method != OUR_METHOD and at == share}
        best = max(rivals, key=lambda method: rivals[method])
        row |= {f"{figure}_rival": rivals[best], f"{figure}_rival_is": best}
    for figure in (*HIDDEN_FIGURES, "ece", *RARE_FIGURES):
        row |= {
            figure: figures[OUR_METHOD, 0, share][figure],
            f"{figure}_left_out": figures[OUR_METHOD, choice, share][figure],
        }
    return row


def _make_method_rows(figures: Sequence[dict], options: Options) -> list[dict[str, Any]]:
    cells = [(of, share, key) for of in figures for share in options.shares for key in HIDDEN_FIGURES]
    first = [max(options.methods, key=lambda name: of[name, 0, share][key]) for of, share, key in cells]
    means = [
        {"method": name, "best": first.count(name)}
        | {
            key: statistics.fmean(of[name, 0, share][key] for of, share, at in cells if at == key)
            for key in HIDDEN_FIGURES
        }
        for name in options.methods
    ]
    return sorted(means, key=lambda of: -sum(of[key] for key in HIDDEN_FIGURES))


def limit_images(dataset: DataSet, max_images: int) -> DataSet:
    """Return at most `max_images` images, chosen by a hash of their names, in the proportions of the parts."""
    size = sum(len(getattr(dataset, name)) for name in data.PART_NAMES)
    if size <= max_images:
        return dataset
    parts = {}
    for name in data.PART_NAMES:
        part = getattr(dataset, name)
        order = np.argsort([hashlib.sha256(path.name.encode()).hexdigest() for path in part.paths], kind="stable")
        parts[name] = part.rows(np.sort(order[: max(1, max_images * len(part) // size)]))
    return replace(dataset, observed=draw_clicks(parts["train"].truth, 1.0, 0), **parts)


def build_collections_report(result: dict[str, Any]) -> Report:
    """Return the report: every collection and labeled share, all methods, and the tried settings of `auto`."""
    searched = bool(result["setting"]["searched"])
    tables = [_build_collections_table(result), _build_methods_table(result)]
    return Report(
        describe_collections(result),
        [*tables, _build_settings_table(result)] if searched else tables,
        ["\n".join(describe_outcome(result)), "\n".join([COLLECTIONS_NOTE, *([LEFT_OUT_NOTE] if searched else [])])],
        command=result["setting"]["command"],
    )


def describe_collections(result: dict[str, Any]) -> list[str]:
    """Return one line per collection, and one on backbone, seeds and rivals."""
    setting = result["setting"]
    lines = [
        f"* {name}: {of['images']:,} images, {of['classes']} classes, {of['labels_an_image']:.2f} labels an image"
        + (f"; constants of setting {of['chosen']} by the others" if setting["searched"] else "")
        + "."
        for name, of in setting["collections"].items()
    ]
    return [
        *lines,
        "",
        f"{setting['backbone']}, {format_count(setting['seeds'], 'seed')}; against {', '.join(setting['rivals'])}.",
    ]


def describe_outcome(result: dict[str, Any]) -> list[str]:
    """Describe the lead of `auto`, with its constants and with those chosen without the collection."""
    words = {"present": "Present constants"} | (
        {"left_out": "Constants chosen on the other collections"} if result["setting"]["searched"] else {}
    )
    rare, honest = (sum(of[place] for of in result["rare"].values()) for place in (0, 1))
    return [
        f"{words[name]}: auto is first in {100 * of['first']:.0f} % of {of['cells']} cells, leads by "
        f"{100 * of['lead']:+.1f} points on average, {100 * of['worst']:+.1f} at worst, and is at most a point behind "
        f"in {100 * of['near']:.0f} %; ECE {100 * of['ece']:.1f} %. Of {of['rare']:.0f} classes with fewer than ten "
        f"marks, {100 * of['honest']:.0f} % have probabilities that add up to the truth within a factor of 2."
        for name, of in result["summary"].items()
        if name in words
    ] + [
        f"Once questions were answered: of {rare} classes with fewer than ten known positives, "
        f"{100 * honest / max(rare, 1):.0f} % have published probabilities that add up to the truth within a factor "
        "of 2."
    ]


def _build_collections_table(result: dict[str, Any]) -> ReportTable:
    left_out = ["left out"] if result["setting"]["searched"] else []
    words = [word for key in HIDDEN_FIGURES for word in (FIGURE_HEADINGS[key], "best published", "lead", *left_out)]
    rows = [
        [
            row["collection"],
            f"{100 * row['share']:g} %",
            *(word for key in HIDDEN_FIGURES for word in _format_figures(row, key, bool(left_out))),
            f"{100 * row['ece']:.1f}",
        ]
        for row in result["rows"]
    ]
    return ReportTable(["collection", "labeled", *words, "ECE"], rows)


def _format_figures(row: dict[str, Any], key: str, is_searched: bool) -> list[str]:
    best = row[f"{key}_rival"]
    leads = [row[key] - best] + ([row[f"{key}_left_out"] - best] if is_searched else [])
    words = [f"{100 * row[key]:.1f}", f"{100 * best:.1f} (`{row[f'{key}_rival_is']}`)"]
    return words + [f"{100 * lead:+.1f}" for lead in leads]


def _build_methods_table(result: dict[str, Any]) -> ReportTable:
    """Return a table of all methods, best first, with `auto` at its present constants."""
    rows = [
        [f"`{of['method']}`", *(f"{100 * of[key]:.1f}" for key in HIDDEN_FIGURES), f"{of['best']}"]
        for of in result["methods"]
    ]
    return ReportTable(["method", *(FIGURE_HEADINGS[key] for key in HIDDEN_FIGURES), "best in cells"], rows)


def _build_settings_table(result: dict[str, Any]) -> ReportTable:
    tried = sorted(enumerate(result["settings"]), key=lambda pair: -pair[1]["mean"])
    chosen = [of["chosen"] for of in result["setting"]["collections"].values()]
    names, present = list(result["setting"]["searched"]), get_default_parameters(OUR_METHOD)
    rows = [
        [
            f"{number}" + (" (present)" if not of["constants"] else ""),
            f"{100 * of['mean']:.2f}",
            f"{chosen.count(number)}",
            *(f"{of['constants'].get(name, present[name])}" for name in names),
        ]
        for number, of in tried
    ]
    return ReportTable(["setting", "mean", "chosen", *names], rows)
