"""The result of a comparison as a picture that can be read on a white and on a black page."""

from pathlib import Path

from annotator.errors import AnnotatorError

# Far enough from white and from black alike; the ground stays transparent.
INK_COLOR, FAINT_COLOR = "#7d8590", "#7d859055"
LINE_COLORS = ("#3b82c4", "#d9772b", "#3f9a4f", "#c4473f", "#8e63c7", "#9a6a4f", "#cf6aa8", "#8a8f2a", "#2a9d9d")
LINE_DASHES = ("-", "--", "-.", ":")
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
FIGURE_PANELS = (("hidden_ap", "hidden AP (%)"), ("test_map", "test mAP (%)"))
CLICKS_PANELS = (("hidden_ap", "hidden AP (%)"), ("hidden_map", "hidden mAP (%)"))


def check_ending(path: Path) -> None:
    """Check the suffix of a picture before hours of training.

    Raises:
        AnnotatorError: `draw_comparison` could not write the file.
    """
    if path.suffix.lower() not in PICTURE_SUFFIXES or not path.resolve().parent.is_dir():
        raise AnnotatorError(
            f"No picture can be drawn into {path}: its folder must exist and its ending be one of "
            f"{', '.join(PICTURE_SUFFIXES)}."
        )


def draw_comparison(result: dict, path: Path) -> None:
    """Draw hidden AP and test mAP of every method: points for one share of labelled images, curves over several.

    If first clicks were made in several ways, draw hidden AP and hidden mAP by way of clicking, for each share.

    Args:
        result: What `measure` returned.
        path: The file to write; its suffix, one of PICTURE_SUFFIXES, decides the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = result["rows"]
    shares = sorted({row["share"] for row in rows})
    names = _sort_best_first(rows, shares)
    ways = list(result["setting"]["named"])
    if len(ways) > 1:
        _draw_clicks(rows, names, shares, ways, path)
        return
    height = max(2.0, 0.27 * len(names) + 1.0)
    figure = Figure(figsize=(11, height if len(shares) == 1 else max(4.6, height)), layout="constrained")
    FigureCanvasAgg(figure)
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
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, labelcolor=INK_COLOR, fontsize=8)
    figure.savefig(path, dpi=130, transparent=True)


def _draw_clicks(rows: list[dict], names: list[str], shares: list[float], ways: list[str], path: Path) -> None:
    """Draw one panel for each figure and share, with one line for each method, beginning at random clicks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, max(3.2 * len(shares), 0.27 * len(names) + 1.0)), layout="constrained")
    FigureCanvasAgg(figure)
    by_cell = {(row["method"], row["share"], row["clicks"]): row for row in rows}
    grid = figure.subplots(len(shares), len(CLICKS_PANELS), squeeze=False)
    for share, line in zip(shares, grid, strict=True):
        for axes, (key, title) in zip(line, CLICKS_PANELS, strict=True):
            for number, name in enumerate(names):
                values = [100 * by_cell[name, share, way][key] for way in ways]
                axes.plot(ways, values, label=name, marker="o", markersize=3, linewidth=1.2, **_make_line_style(number))
            axes.set_title(f"{title}, {100 * share:g} % labeled", color=INK_COLOR, fontsize=10)
            _style_axes(axes)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, labelcolor=INK_COLOR, fontsize=8)
    figure.savefig(path, dpi=130, transparent=True)


def _make_line_style(number: int) -> dict[str, str]:
    return {
        "color": LINE_COLORS[number % len(LINE_COLORS)],
        "linestyle": LINE_DASHES[number // len(LINE_COLORS) % len(LINE_DASHES)],
    }


def _draw_points(axes, rows: list[dict], names: list[str], key: str) -> None:
    """Draw one point for each method with its deviation; bars would need an axis that begins at 0."""
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


def _draw_curves(axes, rows: list[dict], names: list[str], shares: list[float], key: str) -> None:
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


def _style_axes(axes) -> None:
    axes.tick_params(colors=INK_COLOR, labelsize=8)
    axes.grid(axis="both", color=FAINT_COLOR, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, line in axes.spines.items():
        line.set_color(INK_COLOR)
        line.set_visible(side in ("left", "bottom"))


def _sort_best_first(rows: list[dict], shares: list[float]) -> list[str]:
    """Return the methods by their mean hidden AP (test mAP where nothing is hidden) over the shares, best first."""
    names = dict.fromkeys(row["method"] for row in rows)
    key = "hidden_ap" if "hidden_ap" in rows[0] else "test_map"
    mean = {name: [row[key] for row in rows if row["method"] == name] for name in names}
    return sorted(names, key=lambda name: -sum(mean[name]) / len(mean[name]))
