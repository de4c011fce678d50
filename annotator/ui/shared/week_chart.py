"""The weekly chart of the Agreement and People pages."""

import altair as alt
import pandas as pd

from annotator.ui.shared import chart_theme
from annotator.ui.shared.chart_theme import AnyChart, Palette


def build_week_chart(table: pd.DataFrame, colors: Palette) -> AnyChart:
    """Plot weekly agreement with intervals, from columns week (its Monday), same, low, high and cells."""
    mondays = [alt.DateTime(year=day.year, month=day.month, date=day.day) for day in table["week"]]
    days = alt.Axis(format="%d %b %Y", values=mondays, labelOverlap=True)
    base = alt.Chart(table).encode(
        x=alt.X("week:T", title=None, axis=days),
        tooltip=[
            alt.Tooltip("week:T", title="Week of", format="%d %b %Y"),
            alt.Tooltip("same:Q", title="Same answer", format=".1%"),
            alt.Tooltip("low:Q", title="95 % from", format=".1%"),
            alt.Tooltip("high:Q", title="95 % to", format=".1%"),
            alt.Tooltip("cells:Q", title="Answered twice", format=","),
        ],
    )
    share = alt.Scale(domain=[min(0.5, float(table["low"].to_numpy().min())), 1])
    axis = alt.Axis(format=".0%")
    intervals = base.mark_rule(strokeWidth=3, opacity=0.6, color=colors.states[0]).encode(
        y=alt.Y("low:Q", scale=share, axis=axis, title=None), y2="high:Q"
    )
    points = base.mark_line(color=colors.states[0], point=chart_theme.build_point_mark(colors.states[0], 55)).encode(
        y="same:Q"
    )
    return (intervals + points).properties(height=chart_theme.CHART_HEIGHT_PIXELS)
