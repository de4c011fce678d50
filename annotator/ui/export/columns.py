"""The columns of a CSV: which, in which order, under which names."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from annotator.exchange.formats.csv_table import possible_columns, usual_columns
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.view import Columns
from annotator.ui.export.kept import kept

TABLE = {
    "write": st.column_config.CheckboxColumn("Write", width="small"),
    "place": st.column_config.NumberColumn("Place", width="small", min_value=1, step=1, format="%d"),
    "column": st.column_config.TextColumn("Column", disabled=True),
    "name": st.column_config.TextColumn("Name in the file", required=True),
}
ROW, MOST_HEIGHT = 35, 420  # pixels
SHAPES = {"wide": "One row an image", "long": "One row an answer"}


def choose(
    format_: Format,
    seconds: bool,
    classes: Sequence[str],
    attributes: Sequence[str],
    has_splits: bool,
    problems: list[str],
) -> Columns:
    """Draw the widgets and return the columns; only CSV has columns that can be chosen."""
    if format_.name != "csv":
        return Columns(seconds=seconds)
    shape = st.radio(
        "Rows",
        list(SHAPES),
        format_func=SHAPES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=kept("shape", "wide", SHAPES),
    )
    columns = Columns(long=shape == "long", seconds=seconds)
    if not st.checkbox("Choose and rename columns", key=kept("choose_columns", False)):
        return columns
    usual = usual_columns(columns, classes, has_splits)
    others = sorted(possible_columns(columns, classes, attributes) - set(usual) - ({"split"} - set(usual)))
    rows = rows_of(usual, others)
    st.caption("Double-click a field to edit it, or press Enter. The preview shows the result.")
    edited = st.data_editor(
        pd.DataFrame(rows),
        hide_index=True,
        column_config=TABLE,
        height=min(ROW * (len(rows) + 1) + 3, MOST_HEIGHT),
        key=f"columns_{hash(tuple(row['column'] for row in rows))}",  # other columns are another table
    )
    chosen = chosen_columns(edited.to_dict("records"))
    written = [name for _, name in chosen]
    if not chosen:
        problems.append("Choose at least one column.")
    if twice := sorted({name for name in written if written.count(name) > 1}):
        problems.append(f"Two columns are called {twice[0]!r} in the file.")
    is_usual = chosen == [(name, name) for name in usual]
    return Columns(columns.long, () if is_usual else tuple(chosen), seconds)


def rows_of(usual: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the table: the columns that are written by default, then those that could be."""
    return [
        {"write": place <= len(usual), "place": place, "column": name, "name": name}
        for place, name in enumerate([*usual, *others], start=1)
    ]


def chosen_columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (column, its name in the file) of the edited table, in the order of the places that were typed."""
    order = list(rows)
    for before, row in enumerate(rows, start=1):
        wanted = row["place"]
        if wanted is not None and wanted == wanted and int(wanted) != before:  # an emptied number comes as nan
            order.remove(row)
            order.insert(int(wanted) - 1, row)
    return [(row["column"], (row["name"] or "").strip() or row["column"]) for row in order if row["write"]]
