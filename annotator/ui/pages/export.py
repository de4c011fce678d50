"""Export: choose a format, see what will be in it, download it."""

import io
import json
from collections.abc import Callable

import pandas as pd
import streamlit as st

from annotator.engine import data_card
from annotator.engine.export import build_table
from annotator.store.database import Database
from annotator.store.formats.csv_table import write_provenance, write_values
from annotator.store.formats.json_lines import write_lines
from annotator.store.formats.table import Table
from annotator.ui import context, frame

PREVIEW = 20
UNKNOWN = {
    "keep": "stay empty",
    "absent": "become 0 (marked as assumed)",
    "model": "are filled by the model (marked as the model's)",
}
FILES = {
    "csv": [
        ("labels.csv", "text/csv", write_values, "one row per image, one column per class"),
        ("labels.provenance.csv", "text/csv", write_provenance, "who or what gave each label, and when"),
    ],
    "jsonl": [("labels.jsonl", "application/jsonl", write_lines, "one object per image, provenance inside")],
}


def page() -> None:
    """The page."""
    with frame.errors_shown():
        _export()


def _export() -> None:
    left, right = st.columns([1, 2])
    with left:
        kind = st.segmented_control("Format", list(FILES), default="csv", required=True, key="format")
        unknown = st.radio(
            "Cells that nobody answered", list(UNKNOWN), format_func=lambda key: f"{key}: {UNKNOWN[key]}", key="unknown"
        )
        threshold = None
        if unknown == "model":
            threshold = st.slider("Present from this probability on", 0.0, 1.0, 0.9, 0.01, key="export_threshold")
    table = build_table(context.db(), unknown, threshold)
    with right:
        _counts(table)
    if not table.images:
        st.info("There are no images in this project yet, so there is nothing to export.")
        return
    columns = st.columns(3)
    for column, (name, media_type, write, what) in zip(columns, FILES[kind], strict=False):
        with column:
            st.download_button(
                f"Download {name}",
                data=lambda write=write: _text(table, write),
                file_name=name,
                mime=media_type,
                type="primary" if name == FILES[kind][0][0] else "secondary",
                on_click="ignore",
                key=f"download_{name}",
            )
            st.caption(what)
    card_downloads(context.db(), lambda: table, [name for name, *_ in FILES[kind]])
    st.caption(f"The first {min(PREVIEW, len(table.images)):,} of {len(table.images):,} images:")
    st.dataframe(_preview(table), hide_index=True)


def card_downloads(db: Database, table: Callable[[], Table], files: list[str]) -> None:
    """Buttons that download the data card of a data set: what the command line writes beside an export.

    files    names of the files of the data set
    """
    with st.container(horizontal=True):
        for name, media_type, written in (
            ("labels.card.md", "text/markdown", data_card.markdown),
            ("labels.card.json", "application/json", lambda found: json.dumps(found, indent=2, ensure_ascii=False)),
        ):
            st.download_button(
                f"Download {name}",
                data=lambda written=written: written(data_card.card(db, table(), files)).encode(),
                file_name=name,
                mime=media_type,
                on_click="ignore",
                key=f"download_{name}",
            )


def _text(table: Table, write) -> bytes:
    text = io.StringIO()
    write(table, text)
    return text.getvalue().encode()


def _counts(table: Table) -> None:
    counts: dict[str, int] = {}
    for _, cells in table.rows():
        for cell in cells:
            key = f"{cell.state} ({cell.source})" if cell.source else "unknown"
            counts[key] = counts.get(key, 0) + 1
    st.write(f"{len(table.images):,} images x {len(table.classes):,} classes")
    st.dataframe(
        pd.DataFrame({"cells": counts.keys(), "how many": counts.values()}).sort_values("how many", ascending=False),
        hide_index=True,
    )


def _preview(table: Table) -> pd.DataFrame:
    rows = []
    for image, cells in table.rows():
        values = ["" if cell.value is None else str(cell.value) for cell in cells]
        rows.append([image.name, *values])
        if len(rows) == PREVIEW:
            break
    return pd.DataFrame(rows, columns=["image", *(one.name for one in table.classes)])
