"""Export: choose a format, see what will be in it, download it."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from annotator.exchange import data_card
from annotator.exchange.export import content, read
from annotator.exchange.formats import EXPORTS
from annotator.exchange.formats.table import Table
from annotator.exchange.thresholds import EXPECTED_ERROR, Fill, Limits
from annotator.shares import counted
from annotator.ui import context, frame, tables

PREVIEW = 20
STEM = "labels"  # of the names of downloads
UNKNOWN = {
    "keep": "Leave empty",
    "absent": "Fill in 0 (marked as assumed)",
    "model": "Let the model fill in where it is confident (marked as the model's)",
}


def page() -> None:
    """The page."""
    with frame.errors_shown():
        _export()


def _export() -> None:
    left, right = st.columns([1, 2])
    with left:
        kind = st.segmented_control("Format", list(EXPORTS), default="csv", required=True, key="format")
        unknown = st.radio(
            "Unanswered image-class pairs",
            list(UNKNOWN),
            format_func=UNKNOWN.__getitem__,
            key="unknown",
        )
        limits = _limits() if unknown == "model" else Limits()
        raw = kind == "csv" and st.checkbox(
            "Keep = + - @ at the start of names",
            key="export_raw",
            help="Spreadsheets run such names as formulas. Unless you tick this, an apostrophe is put before them.",
        )
    data, quality = read(context.db(), unknown, limits, raw)
    with right:
        _counts(data.table)
    if not data.table.images:
        st.info("There are no images yet, so there is nothing to export.")
        return
    if data.fill:
        _expected(data.fill)
    files = {f"{STEM}{download.ending or '.' + kind}": download for download in EXPORTS[kind]}
    columns = st.columns(3)
    for column, (name, download) in zip(columns, files.items(), strict=False):
        with column:
            st.download_button(
                f"Download {name}",
                data=lambda download=download: content(download, data.table),
                file_name=name,
                mime=download.media_type,
                type="secondary" if download.ending else "primary",
                on_click="ignore",
                key=f"download_{name}",
            )
            st.caption(download.about)
    card_downloads(lambda: data_card.card(data, quality, list(files)))
    st.caption(
        f"Preview: the first {min(PREVIEW, len(data.table.images)):,} of {counted(len(data.table.images), 'image')}"
    )
    st.dataframe(_preview(data.table), hide_index=True)


def _limits() -> Limits:
    """How sure the model must be: by the share of wrong ones that is put up with, or by thresholds for all classes."""
    percent = st.number_input(
        "Accepted error rate, in %", 0.1, 20.0, 100 * EXPECTED_ERROR, 0.1, key="expected_error", format="%.1f"
    )
    if not st.checkbox("Set the thresholds by hand", key="export_own"):
        return Limits(round(percent / 100, 5))
    low, high = st.slider("Absent up to, present from", 0.0, 1.0, (0.05, 0.95), 0.01, key="export_thresholds")
    return Limits(round(percent / 100, 5), high, low)


def _expected(fill: Fill) -> None:
    """What the model fills in and how much of it is expected to be wrong, before anything is downloaded."""
    headline, basis, rule = fill.sentences()
    (st.info if fill.calibrated else st.warning)(f"{headline}\n\n{basis}")
    st.caption(rule)
    with st.expander("Class by class"):
        rows = [
            {
                "class": class_.name,
                "present from": "never" if class_.present_from is None else f"{class_.present_from:g}",
                "present": f"{class_.present:,}",
                "present, expected wrong": f"{class_.wrong_present:,.1f}",
                "absent up to": "never" if class_.absent_to is None else f"{class_.absent_to:g}",
                "absent": f"{class_.absent:,}",
                "absent, expected wrong": f"{class_.wrong_absent:,.1f}",
                "left empty": f"{class_.unknown:,}",
            }
            for class_ in fill.classes
        ]
        tables.show(rows, "What the model fills in, class by class")


def card_downloads(card: Callable[[], dict[str, Any]]) -> None:
    """Buttons that download the data card of a data set: what the command line writes beside an export."""
    with st.container(horizontal=True):
        for name, media_type, written in (
            (f"{STEM}.card.md", "text/markdown", data_card.markdown),
            (f"{STEM}.card.json", "application/json", lambda facts: json.dumps(facts, indent=2, ensure_ascii=False)),
        ):
            st.download_button(
                f"Download {name}",
                data=lambda written=written: written(card()).encode(),
                file_name=name,
                mime=media_type,
                on_click="ignore",
                key=f"download_{name}",
            )


def _counts(table: Table) -> None:
    counts: dict[str, int] = {}
    for _, cells in table.rows():
        for cell in cells:
            key = f"{cell.state} ({cell.source})" if cell.source else "unanswered"
            counts[key] = counts.get(key, 0) + 1
    st.write(f"{counted(len(table.images), 'image')} × {counted(len(table.classes), 'class', 'classes')}")
    st.dataframe(
        pd.DataFrame({"image-class pairs": counts.keys(), "count": counts.values()}).sort_values(
            "count", ascending=False
        ),
        hide_index=True,
    )


def _preview(table: Table) -> pd.DataFrame:
    rows = []
    for image, cells in table.rows():
        values = ["" if cell.value is None else str(cell.value) for cell in cells]
        rows.append([image.name, *values])
        if len(rows) == PREVIEW:
            break
    return pd.DataFrame(rows, columns=["image", *(class_.name for class_ in table.classes)])
