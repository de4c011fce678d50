"""The charts of the Progress page."""

from datetime import datetime

import altair as alt
import numpy as np
import pandas as pd

from annotator.humanize import format_percent
from annotator.ui.shared import chart_theme
from annotator.ui.shared.chart_theme import CHART_HEIGHT_PIXELS, STATES, Palette
from spmll.statistics.intervals import wilson_interval

AXIS_PIXELS = 86  # pixels of HEIGHT which axes and legend take where they lie above and below the rows
MIN_BARS = 20  # room for so many: the first minute of a project is not as wide as the page
MAX_CLASSES_SHOWN = 40
MAX_MATRIX_CLASSES = 30
MAX_RUNS_SHOWN = 60
BIN_WIDTH = 0.1
COUNTS_BASELINE = -0.16  # room under the curve for the counts, on its own scale
MAX_CLASSES_WITH_NUMBERS = 12  # classes up to which a cell of the matrix has room for its number

SOURCE_TITLES = {
    "click": "Annotate",
    "grid": "Grid",
    "suggestion": "Review",
    "audit": "Audit",
    "random": "Random image",
    "exploration": "Exploration",
    "search": "Search",
    "sample": "Search",
    "relabel": "Checked again",
    "settlement": "Settled",
    "done": "Nothing else",
    "skip": "Skipped",
    "flag": "Flagged",
    "aside": "Flagged",
    "gallery": "Gallery",
    "script": "Script",
    "clear": "Cleared",
    "comment": "Commented",
    "merge": "Merged classes",
    "reading": "Blind",
    "known": "Blind",
    "event": "Whole event",
}
"""What the page calls the sources of decisions, in the order of the chart."""


def build_decision_chart(table: pd.DataFrame, step: str, colors: Palette) -> alt.Chart:
    """Plot decisions over time as bars.

    Args:
        table: Columns at, until (times with a zone), kind, order, decisions.
        step: Bar length in words, such as "a minute".
    """
    kinds = list(dict.fromkeys(SOURCE_TITLES.values()))
    starts, ends = table["at"].tolist(), table["until"].tolist()
    length = max(end - start for start, end in zip(starts, ends, strict=True))
    times = alt.Scale(domain=[_to_chart_time(min(*starts, max(ends) - MIN_BARS * length)), _to_chart_time(max(ends))])
    shown = [kind for kind in kinds if kind in set(table["kind"])]
    return (
        alt.Chart(table)
        .mark_bar(stroke=colors.background, strokeWidth=0.6)
        .encode(
            x=alt.X("at:T", title=None, scale=times, axis=_build_time_axis()),
            x2="until:T",
            y=alt.Y("sum(decisions):Q", title=f"Decisions {step}", stack="zero"),
            color=chart_theme.build_color_scale("kind:N", shown, [colors.kinds[kinds.index(kind)] for kind in shown]),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("at:T", title="From", format="%d %b %H:%M"),
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("decisions:Q", title="Decisions"),
            ],
        )
        .properties(height=CHART_HEIGHT_PIXELS)
    )


def build_label_chart(table: pd.DataFrame, colors: Palette) -> alt.Chart:
    """Plot the columns present, absent and unsure of the MAX_CLASSES_SHOWN classes with most labels."""
    most = chart_theme.escape_class_names(
        table.assign(all=table[list(STATES)].sum(axis=1)).nlargest(MAX_CLASSES_SHOWN, "all")
    )
    long = most.melt(["class"], list(STATES), "state", "images")
    long["order"] = [STATES.index(state) for state in long["state"]]
    return (
        alt.Chart(long)
        .mark_bar(stroke=colors.background, strokeWidth=0.8)
        .encode(
            y=alt.Y(
                "class:N",
                sort=list(most["class"]),
                title=None,
                axis=alt.Axis(labelOverlap=False, labelFlush=False, labelLimit=150),
            ),
            x=alt.X("images:Q", title="Images", axis=alt.Axis(tickMinStep=1)),
            color=chart_theme.build_color_scale("state:N", list(STATES), list(colors.states)),
            order=alt.Order("order:Q"),
            tooltip=["class:N", "state:N", "images:Q"],
        )
        .properties(height=AXIS_PIXELS + 20 * len(most))
    )


def build_suggestion_chart(table: pd.DataFrame, colors: Palette) -> alt.Chart:
    """Plot the columns accepted, rejected and unsure (answered suggestions) of the newest MAX_RUNS_SHOWN runs."""
    answers = ["accepted", "rejected", "unsure"]
    long = table.tail(MAX_RUNS_SHOWN).melt(["run"], answers, "answer", "suggestions")
    long["order"] = [answers.index(answer) for answer in long["answer"]]
    return (
        alt.Chart(long)
        .mark_bar(stroke=colors.background, strokeWidth=0.8)
        .encode(
            x=alt.X("run:O", title="Run", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("suggestions:Q", title="Suggestions answered", axis=alt.Axis(tickMinStep=1)),
            color=chart_theme.build_color_scale("answer:N", answers, list(colors.states)),
            order=alt.Order("order:Q"),
            tooltip=["run:O", "answer:N", "suggestions:Q"],
        )
        .properties(height=CHART_HEIGHT_PIXELS)
    )


def build_reliability_table(bins: list[dict]) -> pd.DataFrame:
    """Count the answers per bin of the probability shown to annotators, of width BIN_WIDTH.

    Bins without present or absent answers are omitted. Intervals are Wilson's (JASA 1927).

    Args:
        bins: low, high, present, absent, unsure. Their widths divide BIN_WIDTH.

    Returns:
        shown from, shown to, present, absent, unsure, share present with its 95% interval.
    """
    rows: dict[int, dict] = {}
    for bin_ in bins:
        place = int((bin_["low"] + 1e-9) / BIN_WIDTH)
        row = rows.setdefault(place, dict.fromkeys(STATES, 0))
        for state in STATES:
            row[state] += bin_[state]
    table = []
    for place, row in sorted(rows.items()):
        answers = row["present"] + row["absent"]
        if answers:
            low, high = wilson_interval(row["present"], answers)
            edges = {"shown from": round(place * BIN_WIDTH, 2), "shown to": round((place + 1) * BIN_WIDTH, 2)}
            table.append({**edges, **row, "share": row["present"] / answers, "from": low, "to": high})
    return pd.DataFrame(table, columns=["shown from", "shown to", *STATES, "share", "from", "to"])


def build_reliability_chart(table: pd.DataFrame, colors: Palette) -> alt.LayerChart | alt.FacetChart:
    """Plot the reliability curve with intervals and answer counts."""
    shown = table.assign(
        middle=(table["shown from"] + table["shown to"]) / 2, answers=table["present"] + table["absent"]
    )
    shown["bin"] = [
        f"{low:.0%} to {high:.0%}" for low, high in zip(table["shown from"], table["shown to"], strict=True)
    ]
    shown["present_share"] = shown["share"].map(format_percent)
    axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    limits, shares = alt.Scale(domain=[0, 1]), alt.Scale(domain=[COUNTS_BASELINE, 1])
    x = alt.X("middle:Q", scale=limits, axis=axis, title="Probability shown")
    tooltip = [
        alt.Tooltip("bin:N", title="Shown"),
        alt.Tooltip("present_share:N", title="Present"),
        alt.Tooltip("from:Q", title="95 % from", format=".0%"),
        alt.Tooltip("to:Q", title="95 % to", format=".0%"),
        alt.Tooltip("answers:Q", title="Answers"),
    ]
    diagonal = (
        alt.Chart(pd.DataFrame({"middle": [0.0, 1.0], "share": [0.0, 1.0]}))
        .mark_line(color=colors.muted, strokeDash=[4, 4], strokeWidth=1.5)
        .encode(x=x, y=alt.Y("share:Q", scale=shares, axis=axis, title="Found present"))
    )
    curve = alt.Chart(shown).encode(x=x)
    intervals = curve.mark_rule(color=colors.states[0], strokeWidth=2).encode(y="from:Q", y2="to:Q")
    points = curve.mark_line(
        color=colors.states[0], strokeWidth=2, point=chart_theme.build_point_mark(colors.states[0], 70)
    ).encode(y="share:Q", tooltip=tooltip)
    counts = curve.mark_text(color=colors.muted, fontSize=11).encode(
        y=alt.datum(COUNTS_BASELINE / 2), text=alt.Text("answers:Q", format=".3~s")
    )
    return (diagonal + intervals + points + counts).properties(height=CHART_HEIGHT_PIXELS)


def build_cooccurrence_table(counts: np.ndarray, names: list[str]) -> pd.DataFrame:
    """Return class, with, images and share per pair of frequent classes, from (C, C) numbers of images with both."""
    most = np.argsort(-np.diagonal(counts), kind="stable")[:MAX_MATRIX_CLASSES]
    most = [place for place in most if counts[place, place]]
    return pd.DataFrame(
        [
            {
                "class": names[row],
                "with": names[column],
                "images": int(counts[row, column]),
                "share": counts[row, column] / counts[row, row],
            }
            for row in most
            for column in most
            if row != column
        ],
        columns=["class", "with", "images", "share"],
    )


def build_cooccurrence_chart(table: pd.DataFrame, colors: Palette) -> alt.LayerChart | alt.FacetChart | alt.Chart:
    table = chart_theme.escape_class_names(table)
    names = list(dict.fromkeys(table["class"]))
    side = {"sort": names, "title": None}
    most = max([0.05, *table["share"].tolist()])
    cells = alt.Chart(table.assign(percent=table["share"].map(format_percent))).encode(
        x=alt.X("with:N", axis=alt.Axis(orient="top", labelAngle=-45, labelLimit=110, labelOverlap=False), **side),
        y=alt.Y("class:N", axis=alt.Axis(labelLimit=130, labelOverlap=False, labelFlush=False), **side),
        tooltip=[
            alt.Tooltip("class:N", title="Images with"),
            alt.Tooltip("percent:N", title="share that show"),
            alt.Tooltip("with:N", title="also"),
            alt.Tooltip("images:Q", title="Images"),
        ],
    )
    squares = cells.mark_rect(stroke=colors.background, strokeWidth=1).encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, most], range=list(colors.ramp)),
            legend=alt.Legend(title=None, format=".0%", orient="bottom", gradientLength=160),
        )
    )
    height = 2 * AXIS_PIXELS + (20 if len(names) > MAX_CLASSES_WITH_NUMBERS else 28) * len(names)
    if len(names) > MAX_CLASSES_WITH_NUMBERS:
        return squares.properties(height=height)
    numbers = (
        cells.transform_calculate(number="slice(datum.percent, 0, -2)")
        .mark_text(fontSize=11)
        .encode(
            text=alt.Text("number:N"),
            color=alt.condition(alt.datum.share > 0.55 * most, alt.value(colors.background), alt.value(colors.text)),
        )
    )
    return (squares + numbers).properties(height=height)


def build_loss_chart(loss: list[float], method: str, colors: Palette) -> alt.Chart:
    return (
        alt.Chart(build_loss_table(loss))
        .mark_line(color=colors.states[0], strokeWidth=2, point=chart_theme.build_point_mark(colors.states[0], 40))
        .encode(
            x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1), title="Epoch"),
            y=alt.Y("loss:Q", scale=alt.Scale(zero=False), title=f"Loss ({method})"),
            tooltip=["epoch:Q", alt.Tooltip("loss:Q", format=".4f")],
        )
        .properties(height=CHART_HEIGHT_PIXELS)
    )


def build_loss_table(loss: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"epoch": range(1, len(loss) + 1), "loss": loss})


def _build_time_axis() -> alt.Axis:
    midnight = "hours(datum.value) == 0 && minutes(datum.value) == 0"
    words = f"timeFormat(datum.value, {midnight} ? '%d %b' : '%H:%M')"
    return alt.Axis(grid=False, tickCount=6, labelOverlap=True, labelExpr=words)


def _to_chart_time(time: datetime) -> alt.DateTime:
    return alt.DateTime(
        year=time.year, month=time.month, date=time.day, hours=time.hour, minutes=time.minute, seconds=time.second
    )


def build_work_time_chart(table: pd.DataFrame, colors: Palette) -> alt.LayerChart | alt.FacetChart:
    """Plot an annotator's times per task (columns name, seconds, low, high, default): dot, interval and default."""
    rows = alt.Axis(labelOverlap=False, labelFlush=False, labelLimit=260)
    seconds = alt.Scale(type="log", domain=[table["low"].to_numpy().min(), table["high"].to_numpy().max()], nice=True)
    columns = {"seconds": "Seconds", "low": "95 % from", "high": "95 % to", "default": "Default"}
    base = alt.Chart(table).encode(
        y=alt.Y("name:N", sort=list(table["name"]), title=None, axis=rows),
        tooltip=["name:N", *(alt.Tooltip(f"{key}:Q", title=title, format=".2f") for key, title in columns.items())],
    )
    along = alt.Axis(grid=True, tickCount=4, format="~g")
    x = alt.X("low:Q", scale=seconds, axis=along, title="Seconds")
    intervals = base.mark_rule(strokeWidth=4, opacity=0.45, color=colors.states[0]).encode(x=x, x2="high:Q")
    defaults = base.mark_tick(color=colors.muted, thickness=2, size=16).encode(x=alt.X("default:Q", scale=seconds))
    points = base.mark_point(size=60, filled=True, opacity=1, color=colors.states[0])
    return (intervals + defaults + points.encode(x=alt.X("seconds:Q", scale=seconds))).properties(
        height=AXIS_PIXELS + 22 * len(table)
    )
