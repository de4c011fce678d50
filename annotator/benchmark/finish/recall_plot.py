"""Recall against minutes, one line a tool: a picture that is legible on a white and on a black page."""

from pathlib import Path

from annotator.benchmark.finish.run import RUN_CERTIFIED
from annotator.benchmark.methods.comparison_plot import FAINT_COLOR, INK_COLOR, LINE_COLORS, LINE_DASHES

PANELS_PER_ROW = 2  # panels beside each other


def draw_recall_curves(result: dict, path: Path) -> None:
    """Draw one panel for each set and person of the first seed.

    A dot marks where a tool said rightly that it was done, a cross where it said so too early.

    Args:
        result: The result of the benchmark.
        path: The file to write; its suffix decides the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in result["rows"] if row["seed"] == 0]
    panels = list(dict.fromkeys((row["set"], row["person"]) for row in rows))
    names = list(dict.fromkeys(row["tool"] for row in rows))
    down = -(-len(panels) // PANELS_PER_ROW)
    figure = Figure(figsize=(11, 3.2 * down + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    every = figure.subplots(down, PANELS_PER_ROW, squeeze=False).ravel()
    for axes, (set_, person) in zip(every, panels, strict=False):
        for row in rows:
            if (row["set"], row["person"]) == (set_, person) and row["curve"]:
                _draw_line(axes, row, names.index(row["tool"]))
        axes.set_title(f"{set_}, {person} person", color=INK_COLOR, fontsize=10)
        axes.set_xlabel("minutes", color=INK_COLOR)
        axes.set_ylabel("recall (%)", color=INK_COLOR)
        axes.axhline(100 * result["goal"]["recall"], color=FAINT_COLOR, linewidth=0.8)
        axes.set_ylim(0, 101)
        axes.tick_params(colors=INK_COLOR)
        axes.patch.set_alpha(0)
        for spine in axes.spines.values():
            spine.set_color(FAINT_COLOR)
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
    figure.savefig(path, dpi=130, transparent=True)


def _draw_line(axes, row: dict, place: int) -> None:
    colour = LINE_COLORS[place % len(LINE_COLORS)]
    minutes = [point["seconds"] / 60 for point in row["curve"]]
    recall = [100 * point["decided"]["recall"] for point in row["curve"]]
    axes.plot(
        minutes, recall, LINE_DASHES[place // len(LINE_COLORS) % len(LINE_DASHES)], color=colour, label=row["tool"]
    )
    if claim := row["claim"]:
        mark = "o" if row["ended"] == RUN_CERTIFIED else "x"
        axes.plot(claim["seconds"] / 60, 100 * claim["decided"]["recall"], mark, color=colour, markersize=7)
