"""Plots of benchmark results, readable on white and on black pages. A path's suffix selects the format."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from annotator.benchmark.methods.measures import FIGURE_HEADINGS
from annotator.errors import AnnotatorError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Far enough from white and from black alike; the ground stays transparent.
INK_COLOR, FAINT_COLOR = "#7d8590", "#7d859055"
LINE_COLORS = ("#3b82c4", "#d9772b", "#3f9a4f", "#c4473f", "#8e63c7", "#9a6a4f", "#cf6aa8", "#8a8f2a", "#2a9d9d")
LINE_DASHES = ("-", "--", "-.", ":")
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
PICTURE_WIDTH_INCHES = 11.0
FIGURE_PANELS = (("hidden_ap", "hidden AP (%)"), ("test_map", "test mAP (%)"))
CURVE_PANELS = (
    ("decided", "recall", "actions", "recall of the labels people gave"),
    ("filled", "micro_f1", "actions", "micro F1, unknown cells filled in by the model"),
    ("decided", "recall", "seconds", "recall of the labels people gave"),
    ("filled", "micro_f1", "seconds", "micro F1, unknown cells filled in by the model"),
)
PANELS_PER_ROW = 2  # panels beside each other
LegendPlace = Literal["outside right upper", "outside upper center", "outside lower center"]


def check_ending(path: Path) -> None:
    """Check before hours of training that an image can be written to this path. Raises AnnotatorError if not."""
    if path.suffix.lower() not in PICTURE_SUFFIXES or not path.resolve().parent.is_dir():
        raise AnnotatorError(
            f"No picture can be drawn into {path}: its folder must exist and its ending be one of "
            f"{', '.join(PICTURE_SUFFIXES)}."
        )


def draw_comparison(result: dict, path: Path) -> None:
    """Draw hidden AP (on unlabeled training cells) and test mAP per method, over labeled shares or click models."""
    rows = result["rows"]
    shares = sorted({row["share"] for row in rows})
    names = _sort_best_first(rows, shares)
    ways = list(result["setting"]["named"])
    if len(ways) > 1:
        _draw_clicks(rows, names, shares, ways, path)
        return
    height = max(2.0, 0.27 * len(names) + 1.0)
    figure = _create_figure(height if len(shares) == 1 else max(4.6, height))
    panels = [panel for panel in FIGURE_PANELS if panel[0] in rows[0]]
    for axes, (key, title) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        if len(shares) == 1:
            _draw_points(axes, rows, names, key)
        else:
            _draw_curves(axes, rows, names, shares, key)
        axes.set_xlabel(title if len(shares) == 1 else "training images with their one label (%)", color=INK_COLOR)
        axes.set_title("" if len(shares) == 1 else title, color=INK_COLOR, fontsize=10)
        _style_axes(axes)
    if len(shares) > 1:
        _add_legend(figure, "outside right upper")
    _save_figure(figure, path)


def draw_leads(result: dict[str, Any], path: Path) -> None:
    """Draw the lead of the method `auto` per collection and labeled share, one panel per figure."""
    names, shares = list(result["setting"]["collections"]), result["setting"]["shares"]
    which = "_left_out" if result["setting"]["searched"] else ""
    figure = _create_figure(1.2 + 0.33 * len(names))
    for axes, (key, heading) in zip(
        figure.subplots(1, len(FIGURE_HEADINGS), sharey=True), FIGURE_HEADINGS.items(), strict=True
    ):
        for number, share in enumerate(shares):
            leads = [
                100 * (row[f"{key}{which}"] - row[f"{key}_rival"]) for row in result["rows"] if row["share"] == share
            ]
            places = [len(names) - place - 0.12 * (number - len(shares) / 2) for place in range(len(names))]
            color = LINE_COLORS[number % len(LINE_COLORS)]
            axes.plot(leads, places, "o", color=color, markersize=5, label=f"{100 * share:g} % labeled")
        axes.axvline(0, color=INK_COLOR, linewidth=1)
        axes.set_yticks(range(len(names), 0, -1), names)
        axes.set_xlabel(f"lead of auto in {heading}, points", color=INK_COLOR)
        axes.tick_params(colors=INK_COLOR, labelsize=8)
        axes.grid(axis="x", color=FAINT_COLOR, linewidth=0.5)
        _fade_frame(axes)
    _add_legend(figure, "outside upper center", 4)
    _save_figure(figure, path)


def draw_curves(result: dict, path: Path) -> None:
    """Draw recall and F1 against actions and hours, one line per policy and seed."""
    figure = _create_figure(8)
    names = list(dict.fromkeys(curve["policy"] for curve in result["curves"]))
    for axes, (kind, score, cost, title) in zip(figure.subplots(2, 2).ravel(), CURVE_PANELS, strict=True):
        labeled = set()
        for curve in result["curves"]:
            label = curve["policy"] + (", noisy person" if curve["person"] == "noisy" else "")
            place, noisy = names.index(curve["policy"]), curve["person"] == "noisy"
            costs = [point[cost] / (3600 if cost == "seconds" else 1) for point in curve["points"]]
            axes.plot(
                costs,
                [100 * point[kind][score] for point in curve["points"]],
                LINE_DASHES[place // len(LINE_COLORS)] if not noisy else ":",
                color=LINE_COLORS[place % len(LINE_COLORS)],
                linewidth=1.0 if noisy else 2.2 if curve["policy"] == "autopilot" else 1.4,
                label=label if label not in labeled else "_",  # one entry for all seeds
            )
            labeled.add(label)
        axes.set_xlabel("hours" if cost == "seconds" else "actions", color=INK_COLOR)
        axes.set_title(f"{title} (%)", color=INK_COLOR, fontsize=10)
        axes.axhline(95, color=FAINT_COLOR, linewidth=0.8)
        _style_percent_axes(axes)
    _add_legend(figure, "outside lower center", 5)
    _save_figure(figure, path)


def draw_recall_curves(result: dict, path: Path) -> None:
    """Draw recall against a person's time, one panel per set and simulated person of the first seed.

    A dot marks a correct claim to be finished, a cross a premature one.
    """
    rows = [row for row in result["rows"] if row["seed"] == 0]
    panels = list(dict.fromkeys((row["set"], row["person"]) for row in rows))
    names = list(dict.fromkeys(row["tool"] for row in rows))
    down = -(-len(panels) // PANELS_PER_ROW)
    figure = _create_figure(3.2 * down + 0.6)
    every = figure.subplots(down, PANELS_PER_ROW, squeeze=False).ravel()
    for axes, (set_, person) in zip(every, panels, strict=False):
        for row in rows:
            if (row["set"], row["person"]) == (set_, person) and row["curve"]:
                _draw_line(axes, row, names.index(row["tool"]))
        axes.set_title(f"{set_}, {person} person", color=INK_COLOR, fontsize=10)
        axes.set_xlabel("minutes", color=INK_COLOR)
        axes.set_ylabel("recall (%)", color=INK_COLOR)
        axes.axhline(100 * result["goal"]["recall"], color=FAINT_COLOR, linewidth=0.8)
        _style_percent_axes(axes)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    lines = {line.get_label(): line for axes in every for line in axes.get_lines()}
    lines = {name: lines[name] for name in names if name in lines}
    figure.legend(
        lines.values(), lines, loc="outside lower center", ncols=5, frameon=False, labelcolor=INK_COLOR, fontsize=8
    )
    figure.suptitle(
        f"annotator bench finish, protocol {result['protocol']}, {result['date']}", color=INK_COLOR, fontsize=9
    )
    _save_figure(figure, path)


def _create_figure(height: float) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PICTURE_WIDTH_INCHES, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save_figure(figure: "Figure", path: Path) -> None:
    figure.savefig(path, dpi=130, transparent=True)


def _add_legend(figure: "Figure", place: LegendPlace, columns: int = 1) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False, labelcolor=INK_COLOR, fontsize=8)


def _style_axes(axes: "Axes") -> None:
    axes.tick_params(colors=INK_COLOR, labelsize=8)
    axes.grid(axis="both", color=FAINT_COLOR, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, line in axes.spines.items():
        line.set_color(INK_COLOR)
        line.set_visible(side in ("left", "bottom"))


def _style_percent_axes(axes: "Axes") -> None:
    axes.set_ylim(0, 101)
    axes.tick_params(colors=INK_COLOR)
    axes.patch.set_alpha(0)
    _fade_frame(axes)


def _fade_frame(axes: "Axes") -> None:
    for spine in axes.spines.values():
        spine.set_color(FAINT_COLOR)


def _draw_clicks(rows: list[dict], names: list[str], shares: list[float], ways: list[str], path: Path) -> None:
    figure = _create_figure(max(3.2 * len(shares), 0.27 * len(names) + 1.0))
    by_cell = {(row["method"], row["share"], row["clicks"]): row for row in rows}
    grid = figure.subplots(len(shares), len(FIGURE_HEADINGS), squeeze=False)
    for share, line in zip(shares, grid, strict=True):
        for axes, (key, title) in zip(line, FIGURE_HEADINGS.items(), strict=True):
            for number, name in enumerate(names):
                values = [100 * by_cell[name, share, way][key] for way in ways]
                axes.plot(ways, values, label=name, marker="o", markersize=3, linewidth=1.2, **_make_line_style(number))
            axes.set_title(f"{title} (%), {100 * share:g} % labeled", color=INK_COLOR, fontsize=10)
            _style_axes(axes)
    _add_legend(figure, "outside right upper")
    _save_figure(figure, path)


def _make_line_style(number: int) -> dict[str, Any]:
    return {
        "color": LINE_COLORS[number % len(LINE_COLORS)],
        "linestyle": LINE_DASHES[number // len(LINE_COLORS) % len(LINE_DASHES)],
    }


def _draw_points(axes: "Axes", rows: list[dict], names: list[str], key: str) -> None:
    """Draw one point per method with standard deviation, because bars need an axis from 0."""
    by_name = {row["method"]: row for row in rows}
    for place, name in zip(range(len(names), 0, -1), names, strict=True):
        value, spread = 100 * by_name[name][key], 100 * by_name[name].get(f"{key}_std", 0.0)
        axes.errorbar(value, place, xerr=spread, color=LINE_COLORS[0], fmt="o", markersize=5, elinewidth=1.5, capsize=2)
        text = f"{value:.1f}"
        axes.annotate(
            text, (value + spread, place), (7, 0), textcoords="offset points", va="center", color=INK_COLOR, size=7
        )
    axes.set_yticks(range(len(names), 0, -1), names)
    axes.set_ylim(0.3, len(names) + 0.7)
    axes.margins(x=0.12)


def _draw_curves(axes: "Axes", rows: list[dict], names: list[str], shares: list[float], key: str) -> None:
    by_cell = {(row["method"], row["share"]): row for row in rows}
    for number, name in enumerate(names):
        measured = [share for share in shares if (name, share) in by_cell]
        axes.errorbar(
            [100 * share for share in measured],
            [100 * by_cell[name, share][key] for share in measured],
            yerr=[100 * by_cell[name, share].get(f"{key}_std", 0.0) for share in measured],
            label=name,
            marker="o",
            markersize=3,
            linewidth=1.2,
            elinewidth=0.7,
            **_make_line_style(number),
        )
    axes.set_xscale("log")
    axes.set_xticks([100 * share for share in shares], [f"{100 * share:g}" for share in shares], minor=False)
    axes.minorticks_off()


def _sort_best_first(rows: list[dict], shares: list[float]) -> list[str]:
    names = dict.fromkeys(row["method"] for row in rows)
    key = "hidden_ap" if "hidden_ap" in rows[0] else "test_map"
    mean = {name: [row[key] for row in rows if row["method"] == name] for name in names}
    return sorted(names, key=lambda name: -sum(mean[name]) / len(mean[name]))


def _draw_line(axes: "Axes", row: dict, place: int) -> None:
    color = LINE_COLORS[place % len(LINE_COLORS)]
    minutes = [point["seconds"] / 60 for point in row["curve"]]
    recall = [100 * point["decided"]["recall"] for point in row["curve"]]
    axes.plot(
        minutes, recall, LINE_DASHES[place // len(LINE_COLORS) % len(LINE_DASHES)], color=color, label=row["tool"]
    )
    if claim := row["claim"]:
        mark = "x" if row["seconds"] is None else "o"
        axes.plot(claim["seconds"] / 60, 100 * claim["decided"]["recall"], mark, color=color, markersize=7)
