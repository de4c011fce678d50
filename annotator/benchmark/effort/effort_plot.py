"""The curves of `bench effort` as a picture that is legible on a white and on a black page."""

from pathlib import Path

from annotator.benchmark.methods.comparison_plot import FAINT_COLOR, INK_COLOR, LINE_COLORS, LINE_DASHES

CURVE_PANELS = (
    ("decided", "recall", "actions", "recall of the labels people gave"),
    ("filled", "micro_f1", "actions", "micro F1, unknown cells filled in by the model"),
    ("decided", "recall", "seconds", "recall of the labels people gave"),
    ("filled", "micro_f1", "seconds", "micro F1, unknown cells filled in by the model"),
)


def draw_curves(result: dict, path: Path) -> None:
    """Draw recall and F1 against actions and against hours, one line per policy and seed; noisy annotators are dotted.

    Args:
        result: What `measure` returned.
        path: The file to write; its suffix decides the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
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
        axes.set_ylim(0, 101)
        axes.tick_params(colors=INK_COLOR)
        axes.patch.set_alpha(0)
        for spine in axes.spines.values():
            spine.set_color(FAINT_COLOR)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, labelcolor=INK_COLOR, fontsize=8)
    figure.savefig(path, dpi=130, transparent=True)
