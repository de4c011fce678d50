"""The chart colors of both themes, distinguishable in gray, and shared chart parts."""

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

CHART_HEIGHT_PIXELS = 290  # pixels, with axes and legend: Streamlit fits everything into it
WORD_JOINER = "\u2060"  # no width, no meaning, and no break

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart


@dataclass(frozen=True)
class Palette:
    """The colors of one theme."""

    background: str
    text: str
    muted: str
    # colors of present, absent, unsure
    states: tuple[str, str, str]
    kinds: tuple[str, ...]
    # colors of the lowest and highest value
    ramp: tuple[str, str]


LIGHT_PALETTE = Palette(
    background="#fcfcfb",
    text="#1c2221",
    muted="#6d7573",
    states=("#0f7b6c", "#8a1f18", "#d79b2c"),
    kinds=(
        "#0f7b6c",
        "#5aa9d6",
        "#2c4a7c",
        "#9a6fb8",
        "#d9b8e0",
        "#86c9b4",
        "#7c8f3a",
        "#b0562d",
        "#c3c8c6",
        "#d79b2c",
        "#8a1f18",
        "#3f6fd1",
        "#6b4f3a",
        "#c94f9b",
        "#e58aa0",
        "#4d5654",
        "#17b3c1",
        "#8fae1b",
        "#5b3fa8",
    ),
    ramp=("#eef1f0", "#0b6156"),
)
DARK_PALETTE = Palette(
    background="#161817",
    text="#e9ecea",
    muted="#9aa3a0",
    states=("#43b5a2", "#d65a50", "#f2cc74"),
    kinds=(
        "#43b5a2",
        "#2f78b0",
        "#a9c8ee",
        "#b48fd0",
        "#6d4a86",
        "#2a7567",
        "#a9bd5c",
        "#e08a5c",
        "#666d6b",
        "#f2cc74",
        "#d65a50",
        "#7ba0ff",
        "#8d7058",
        "#c94f9b",
        "#f0a9bb",
        "#c3cbc8",
        "#1fd0de",
        "#d4f25a",
        "#8f7df0",
    ),
    ramp=("#212524", "#5fd6c2"),
)
STATES = ("present", "absent", "unsure")


def get_palette(theme: str | None) -> Palette:
    """Return the palette of a Streamlit theme ("light" or "dark")."""
    return DARK_PALETTE if theme == "dark" else LIGHT_PALETTE


def apply_text_colors(chart: AnyChart, palette: Palette) -> AnyChart:
    """Color the chart's text, because Streamlit's gray is too pale."""
    text_colors: dict[str, Any] = {"labelColor": palette.muted, "titleColor": palette.muted}
    return chart.configure_axis(**text_colors).configure_legend(**text_colors)


def escape_class_names(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with class names that Vega can draw.

    Vega draws nothing for JavaScript names like "constructor". An invisible first character prevents this.
    """
    return table.assign(
        **{column: WORD_JOINER + table[column] for column in ("class", "with", "one", "other") if column in table}
    )


def build_point_mark(colour: str, size: int) -> alt.OverlayMarkDef:
    """Return a filled point mark of `size` square pixels."""
    return alt.OverlayMarkDef(size=size, filled=True, color=colour)


def build_color_scale(field: str, names: list[str], colors: list[str]) -> alt.Color:
    """Return a color scale with its legend on top."""
    scale = alt.Scale(domain=names, range=colors)
    columns = 3 if len(names) <= 3 else 2  # on a phone a row has room for three short names
    legend = alt.Legend(title=None, orient="top", columns=columns, offset=4, padding=0, labelLimit=260)
    return alt.Color(field, scale=scale, legend=legend)
