"""The leads of `auto` as a picture that can be read on a white and on a black page."""

from pathlib import Path
from typing import Any

from annotator.benchmark.collections.collections_report import FIGURE_HEADINGS
from annotator.benchmark.methods.comparison_plot import FAINT_COLOR, INK_COLOR, LINE_COLORS
from annotator.benchmark.methods.task import HIDDEN_FIGURES


def draw_leads(result: dict[str, Any], path: Path) -> None:
    """Draw one panel for each figure: the lead of `auto` on every collection at each share.

    With searched constants, each collection's lead is that of the constants chosen on the other collections.

    Args:
        result: What `measure` returned.
        path: The file to write; its suffix, one of methods.comparison_plot.PICTURE_SUFFIXES, decides the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names, shares = list(result["setting"]["collections"]), result["setting"]["shares"]
    which = "_left_out" if result["setting"]["searched"] else ""
    figure = Figure(figsize=(11, 1.2 + 0.33 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, key in zip(figure.subplots(1, len(HIDDEN_FIGURES), sharey=True), HIDDEN_FIGURES, strict=True):
        for number, share in enumerate(shares):
            leads = [
                100 * (row[f"{key}{which}"] - row[f"{key}_rival"]) for row in result["rows"] if row["share"] == share
            ]
            places = [len(names) - place - 0.12 * (number - len(shares) / 2) for place in range(len(names))]
            colour = LINE_COLORS[number % len(LINE_COLORS)]
            axes.plot(leads, places, "o", color=colour, markersize=5, label=f"{100 * share:g} % labeled")
        axes.axvline(0, color=INK_COLOR, linewidth=1)
        axes.set_yticks(range(len(names), 0, -1), names)
        axes.set_xlabel(f"lead of auto in {FIGURE_HEADINGS[key]}, points", color=INK_COLOR)
        axes.tick_params(colors=INK_COLOR, labelsize=8)
        axes.grid(axis="x", color=FAINT_COLOR, linewidth=0.5)
        for spine in axes.spines.values():
            spine.set_color(FAINT_COLOR)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, labelcolor=INK_COLOR, fontsize=8)
    figure.savefig(path, dpi=130, transparent=True)
