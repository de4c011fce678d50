"""The chart of the splits of an export: of each class, which share of its labels is in which split."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from annotator.ui.charts import theme
from annotator.ui.charts.theme import Palette

AROUND = 60  # pixels that axes and legend take
CLASSES_SHOWN = 60
COLOURS = (0, 4, 2, 9, 7, 3, 6, 1)  # of Palette.kinds: neighbours differ in lightness


def splits_table(splits: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return class, split, order, images and share of the CLASSES_SHOWN classes with most labels, the rarest last.

    Args:
        splits: As of DataSet.
    """
    classes = {name: sum(split["present"][name] for split in splits) for name in splits[0]["present"]}
    shown = sorted((name for name in classes if classes[name]), key=lambda name: -classes[name])[:CLASSES_SHOWN]
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


def splits(table: pd.DataFrame, colours: Palette) -> alt.Chart:
    """Return the chart of splits: one bar a class, a segment a split."""
    table = theme.drawable(table.assign(split=theme.JOINER + table["split"]))
    names, parts = list(dict.fromkeys(table["class"])), list(dict.fromkeys(table["split"]))
    shades = [colours.kinds[COLOURS[place % len(COLOURS)]] for place in range(len(parts))]
    return (
        alt.Chart(table)
        .mark_bar(stroke=colours.ground, strokeWidth=0.8)
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
            color=theme.categories("split:N", parts, shades),
            order=alt.Order("order:Q"),
            tooltip=["class:N", "split:N", "images:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(height=AROUND + 22 * len(names))
    )
