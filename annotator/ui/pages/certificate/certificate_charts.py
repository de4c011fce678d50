"""The recall chart of the Certificate page."""

import altair as alt
import pandas as pd

from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT
from annotator.ui.shared import chart_theme
from annotator.ui.shared.chart_theme import Palette

AXIS_PIXELS = 56  # pixels that the axis above takes
ROW_PIXELS = 14  # pixels of one kind of one class
MAX_CLASSES_SHOWN = 200
MAX_ROWS_IN_VIEW = 20  # rows that are seen without scrolling
INTERVAL_KINDS = (f"recall {IF_ANSWERS_ARE_RIGHT}", "allowing for mistakes", "precision")
KIND_SHAPES = ("circle", "square", "diamond")


def build_interval_chart(
    table: pd.DataFrame, target: float, colors: Palette, title: str = "Class"
) -> alt.LayerChart | alt.FacetChart:
    """Plot recall and precision intervals per class, with a dashed line at the target recall.

    Args:
        table: class, kind (one of INTERVAL_KINDS), estimate, low, high. NaN means not measured.
        title: Noun for a row in its tooltip.
    """
    table = chart_theme.escape_class_names(table)
    drawn, names = set(table.loc[table["low"].notna(), "kind"]), list(dict.fromkeys(table["class"]))
    looks = zip(INTERVAL_KINDS, (colors.states[0], colors.kinds[7], colors.kinds[2]), KIND_SHAPES, strict=True)
    kinds, shades, shapes = map(list, zip(*(look for look in looks if look[0] in drawn), strict=True))
    shares = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], orient="top")
    rows = alt.Axis(labelOverlap=False, labelFlush=False, labelLimit=130)
    base = alt.Chart(table).encode(
        y=alt.Y("class:N", sort=names, title=None, axis=rows),
        yOffset=alt.YOffset("kind:N", sort=kinds, scale=alt.Scale(paddingOuter=0.25)),
        color=chart_theme.build_color_scale("kind:N", kinds, shades),
        tooltip=[
            alt.Tooltip("class:N", title=title),
            alt.Tooltip("kind:N", title="What"),
            alt.Tooltip("estimate:Q", title="Estimate", format=".1%"),
            alt.Tooltip("low:Q", title="95 % from", format=".1%"),
            alt.Tooltip("high:Q", title="95 % to", format=".1%"),
        ],
    )
    ends = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), axis=shares, title=None)
    intervals = base.mark_rule(strokeWidth=3, opacity=0.7).encode(x=ends, x2="high:Q")
    points = (
        base.transform_filter("isValid(datum.estimate)")
        .mark_point(size=55, filled=True, opacity=1)
        .encode(
            x="estimate:Q",
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=shapes), legend=None),
        )
    )
    line = alt.Chart(pd.DataFrame({"target": [target]})).mark_rule(
        color=colors.muted, strokeDash=[4, 4], strokeWidth=1.5
    )
    layers = line.encode(x="target:Q") + intervals
    if bool(table["estimate"].notna().any()):  # to a screen reader an empty layer is a picture without a name
        layers += points
    return layers.properties(height=AXIS_PIXELS + ROW_PIXELS * len(kinds) * len(names))
