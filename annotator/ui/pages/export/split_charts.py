"""The chart of an export's splits: each class's labels per split."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from annotator.ui.shared import chart_theme
from annotator.ui.shared.chart_theme import Palette

AXIS_PIXELS = 60  # pixels that axes and legend take
MAX_CLASSES_SHOWN = 60
COLOR_ORDER = (0, 4, 2, 9, 7, 3, 6, 1)  # of Palette.kinds: neighbours differ in lightness


def build_split_table(splits: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return class, split, order, images and share of the MAX_CLASSES_SHOWN largest classes."""
    classes = {name: sum(split["present"][name] for split in splits) for name in splits[0]["present"]}
    shown = sorted((name for name in classes if classes[name]), key=lambda name: -classes[name])[:MAX_CLASSES_SHOWN]
    return pd.DataFrame(
        [
            {
                "class": name,
                "split": split["name"] or "none",
                "order": place,
                "images": split["present"][name],
                "share": split["present"][name] / classes[name],
            }
            for name in shown
            for place, split in enumerate(splits)
        ],
        columns=["class", "split", "order", "images", "share"],
    )


def build_split_chart(table: pd.DataFrame, colors: Palette) -> alt.Chart:
    table = chart_theme.escape_class_names(table.assign(split=chart_theme.WORD_JOINER + table["split"]))
    names, parts = list(dict.fromkeys(table["class"])), list(dict.fromkeys(table["split"]))
    shades = [colors.kinds[COLOR_ORDER[place % len(COLOR_ORDER)]] for place in range(len(parts))]
    return (
        alt.Chart(table)
        .mark_bar(stroke=colors.background, strokeWidth=0.8)
        .encode(
            y=alt.Y(
                "class:N",
                sort=names,
                title=None,
                axis=alt.Axis(labelOverlap=False, labelFlush=False, labelLimit=150),
            ),
            x=alt.X(
                "share:Q",
                title="Share of the class's labels",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
            ),
            color=chart_theme.build_color_scale("split:N", parts, shades),
            order=alt.Order("order:Q"),
            tooltip=["class:N", "split:N", "images:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(height=AXIS_PIXELS + 22 * len(names))
    )
