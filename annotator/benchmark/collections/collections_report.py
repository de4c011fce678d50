"""The result in tables: for a terminal, and the same in Markdown."""

from collections.abc import Callable, Sequence
from typing import Any

from annotator.benchmark.collections.collections_comparison import OUR_METHOD
from annotator.benchmark.methods.task import HIDDEN_FIGURES
from annotator.humanize import format_count
from spmll.methods import get_default_parameters

FIGURE_HEADINGS = {"hidden_ap": "hidden AP", "hidden_map": "hidden mAP"}
COLLECTIONS_NOTE = (
    "Percent and points; means over seeds. Of each figure: auto with its present constants, the best published method "
    "there, and the lead. Published methods keep their best epoch by fully labeled validation images; auto keeps its "
    "last. ECE: expected calibration error of auto on the test images."
)
LEFT_OUT_NOTE = (
    "Left out: auto with the constants that were best on average over the other collections, of all settings that were "
    "tried."
)


def list_headings(result: dict[str, Any]) -> list[str]:
    """Return the headings of `format_rows`."""
    of_figures = [
        word
        for key in HIDDEN_FIGURES
        for word in (FIGURE_HEADINGS[key], "best published", "lead", *_list_left_out_headings(result))
    ]
    return ["collection", "labeled", *of_figures, "ECE"]


def format_rows(result: dict[str, Any], code: Callable[[str], str] = str) -> list[list[str]]:
    """Return one row for each collection and share; `code` formats the name of a method."""
    return [
        [
            row["collection"],
            f"{100 * row['share']:g} %",
            *(word for key in HIDDEN_FIGURES for word in _format_figures(result, row, key, code)),
            f"{100 * row['ece']:.1f}",
        ]
        for row in result["rows"]
    ]


def describe_collections(result: dict[str, Any]) -> list[str]:
    """Return one line for each collection, and one on the backbone, the seeds and the rivals."""
    setting = result["setting"]
    lines = [
        f"{name}: {of['images']:,} images, {of['classes']} classes, {of['labels_an_image']:.2f} labels an image"
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
    """Return one sentence for each choice of constants: the share of cells in which `auto` is first, and its lead."""
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


def format_settings(result: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the tried settings, best first by their mean over all collections and figures."""
    tried = sorted(enumerate(result["settings"]), key=lambda pair: -pair[1]["mean"])
    chosen = [of["chosen"] for of in result["setting"]["collections"].values()]
    names, present = list(result["setting"]["searched"]), get_default_parameters(OUR_METHOD)
    words = [
        [
            f"{number}" + (" (present)" if not of["constants"] else ""),
            f"{100 * of['mean']:.2f}",
            f"{chosen.count(number)}",
            *(f"{of['constants'].get(name, present[name])}" for name in names),
        ]
        for number, of in tried
    ]
    return ["setting", "mean", "chosen", *names], words


def format_methods(result: dict[str, Any], code: Callable[[str], str] = str) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of all methods, best first; `auto` has its present constants.

    A row holds the means over all collections and shares, and the number of cells in which the method is best of all.
    """
    lines = [
        [code(of["method"]), *(f"{100 * of[key]:.1f}" for key in HIDDEN_FIGURES), f"{of['best']}"]
        for of in result["methods"]
    ]
    return ["method", *(FIGURE_HEADINGS[key] for key in HIDDEN_FIGURES), "best in cells"], lines


def format_markdown(result: dict[str, Any]) -> str:
    """Return the whole result in Markdown, with the exact command."""
    lines = [
        f"`{result['setting']['command']}`",
        "",
        *(f"* {line}" if line else line for line in describe_collections(result)[:-1]),
    ]
    lines += [
        describe_collections(result)[-1],
        "",
        *describe_outcome(result),
        "",
        COLLECTIONS_NOTE,
        *([LEFT_OUT_NOTE] if _list_left_out_headings(result) else []),
        "",
    ]
    lines += _format_table(list_headings(result), format_rows(result, "`{}`".format))
    lines += ["", *_format_table(*format_methods(result, "`{}`".format))]
    if result["setting"]["searched"]:
        lines += ["", *_format_table(*format_settings(result))]
    return "\n".join([*lines, ""])


def _format_table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (titles, ["---"] * len(titles), *lines)]


def _list_left_out_headings(result: dict[str, Any]) -> list[str]:
    return ["left out"] if result["setting"]["searched"] else []


def _format_figures(result: dict[str, Any], row: dict[str, Any], key: str, code: Callable[[str], str]) -> list[str]:
    best = row[f"{key}_rival"]
    words = [f"{100 * row[key]:.1f}", f"{100 * best:.1f} ({code(row[f'{key}_rival_is'])})"]
    leads = [row[key] - best] + ([row[f"{key}_left_out"] - best] if _list_left_out_headings(result) else [])
    return words + [f"{100 * lead:+.1f}" for lead in leads]
