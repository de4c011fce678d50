"""The choice, order and names of CSV columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from annotator.exchange.formats.csv_table import available_columns, default_columns
from annotator.exchange.formats.export_view import TableColumns
from annotator.exchange.formats.format import Format
from annotator.ui.shared.widget_values import restore_widget

TABLE_COLUMNS = {
    "write": st.column_config.CheckboxColumn("Write", width="small"),
    "place": st.column_config.NumberColumn("Place", width="small", min_value=1, step=1, format="%d"),
    "column": st.column_config.TextColumn("Column", disabled=True),
    "name": st.column_config.TextColumn("Name in the file", required=True),
}
ROW_PIXELS, MAX_TABLE_PIXELS = 35, 420  # pixels
SHAPE_TITLES = {"wide": "One row an image", "long": "One row an answer"}


def draw_columns(
    format_: Format,
    seconds: bool,
    classes: Sequence[str],
    attributes: Sequence[str],
    has_splits: bool,
    problems: list[str],
) -> TableColumns:
    """Draw the widgets that choose CSV columns, and return the choice."""
    if format_.name != "csv":
        return TableColumns(seconds=seconds)
    shape = st.radio(
        "Rows",
        list(SHAPE_TITLES),
        format_func=SHAPE_TITLES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=restore_widget("shape", "wide", SHAPE_TITLES),
    )
    columns = TableColumns(long=shape == "long", seconds=seconds)
    if not st.checkbox("Choose and rename columns", key=restore_widget("choose_columns", False)):
        return columns
    usual = default_columns(columns, classes, has_splits)
    others = sorted(available_columns(columns, classes, attributes) - set(usual) - ({"split"} - set(usual)))
    rows = build_rows(usual, others)
    st.caption("Double-click a field to edit it, or press Enter. The preview shows the result.")
    edited = st.data_editor(
        pd.DataFrame(rows),
        hide_index=True,
        column_config=TABLE_COLUMNS,
        height=min(ROW_PIXELS * (len(rows) + 1) + 3, MAX_TABLE_PIXELS),
        key=f"columns_{hash(tuple(row['column'] for row in rows))}",  # other columns are another table
    )
    chosen = read_chosen_columns(edited.to_dict("records"))
    written = [name for _, name in chosen]
    if not chosen:
        problems.append("Choose at least one column.")
    if twice := sorted({name for name in written if written.count(name) > 1}):
        problems.append(f"Two columns are called {twice[0]!r} in the file.")
    is_usual = chosen == [(name, name) for name in usual]
    return TableColumns(columns.long, () if is_usual else tuple(chosen), seconds)


def build_rows(usual: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the column editor: default columns (selected), then optional ones."""
    return [
        {"write": place <= len(usual), "place": place, "column": name, "name": name}
        for place, name in enumerate([*usual, *others], start=1)
    ]


def read_chosen_columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (column, name in the file) in the typed order."""
    order = list(rows)
    for before, row in enumerate(rows, start=1):
        wanted = row["place"]
        if wanted is not None and wanted == wanted and int(wanted) != before:  # an emptied number comes as nan
            order.remove(row)
            order.insert(int(wanted) - 1, row)
    return [(row["column"], (row["name"] or "").strip() or row["column"]) for row in order if row["write"]]
