"""The charts of the Agreement page."""

import altair as alt
import pandas as pd

from annotator.ui.shared import chart_theme
from annotator.ui.shared.chart_theme import AnyChart, Palette

AXIS_PIXELS = 56  # pixels that the axis above takes
MAX_CLASSES_SHOWN = 200
MAX_PEOPLE_SHOWN = 30


def build_class_chart(table: pd.DataFrame, colors: Palette) -> AnyChart:
    """Plot Krippendorff's alpha with interval per class (columns class, alpha, low, high), and a line at chance."""
    table = chart_theme.escape_class_names(table)
    names = list(table["class"])
    ends = alt.Scale(domain=[min(0.0, float(table["low"].to_numpy().min())), 1])
    axis = alt.Axis(orient="top", format=".1f", tickMinStep=0.1)  # finer ticks would be rounded to one another's figure
    base = alt.Chart(table).encode(
        y=alt.Y("class:N", sort=names, title=None, axis=alt.Axis(labelOverlap=False, labelLimit=130)),
        tooltip=[
            alt.Tooltip("class:N", title="Class"),
            alt.Tooltip("alpha:Q", title="Alpha", format=".2f"),
            alt.Tooltip("low:Q", title="95 % from", format=".2f"),
            alt.Tooltip("high:Q", title="95 % to", format=".2f"),
        ],
    )
    intervals = base.mark_rule(strokeWidth=3, opacity=0.7, color=colors.states[0]).encode(
        x=alt.X("low:Q", scale=ends, axis=axis, title=None), x2="high:Q"
    )
    points = base.mark_point(size=55, filled=True, opacity=1, color=colors.states[0]).encode(x="alpha:Q")
    chance = alt.Chart(pd.DataFrame({"chance": [0.0]})).mark_rule(color=colors.muted, strokeDash=[4, 4])
    layers = chance.encode(x="chance:Q") + intervals + points
    return layers.properties(height=AXIS_PIXELS + 24 * len(names))


def build_pair_chart(table: pd.DataFrame, colors: Palette) -> AnyChart:
    """Plot the agreement of pairs of annotators as a matrix.

    Args:
        table: Columns one, other (annotators), same (share of equal answers), cells. Each pair has two rows.
    """
    table = chart_theme.escape_class_names(table)
    people = sorted(set(table["one"]))
    base = alt.Chart(table).encode(
        x=alt.X("other:N", sort=people, title=None, axis=alt.Axis(orient="top", labelAngle=-30)),
        y=alt.Y("one:N", sort=people, title=None),
        tooltip=[
            alt.Tooltip("one:N", title="One"),
            alt.Tooltip("other:N", title="Other"),
            alt.Tooltip("same:Q", title="Same answer", format=".1%"),
            alt.Tooltip("cells:Q", title="Answered both", format=","),
        ],
    )
    squares = base.mark_rect().encode(
        color=alt.Color("same:Q", scale=alt.Scale(domain=[0.5, 1], range=list(colors.ramp), clamp=True), legend=None)
    )
    # Halfway up the ramp the ground's colour becomes the better readable one.
    figures = base.mark_text().encode(
        text=alt.Text("same:Q", format=".0%"),
        color=alt.condition("datum.same > 0.75", alt.value(colors.background), alt.value(colors.text)),
    )
    return (squares + figures).properties(height=AXIS_PIXELS + 34 * len(people))
