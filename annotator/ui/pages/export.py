"""Export: choose a format, see what will be in it, download it."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from annotator.exchange.exports import data_card
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet, data_set
from annotator.exchange.exports.export import archive, card_of
from annotator.exchange.exports.losses import losses
from annotator.exchange.exports.thresholds import EXPECTED_ERROR, Fill, Limits
from annotator.exchange.formats import all_formats
from annotator.exchange.formats.shared.cell_columns import VALUES
from annotator.exchange.formats.view import View
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
    formats = {name: format_ for name, format_ in all_formats().items() if format_.write and format_.ending}
    with left:
        kind = st.selectbox("Format", list(formats), key="format")
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
    choices = Choices(unknown=unknown, limits=limits, raw=raw)
    with data_set(context.db(), choices) as data:
        view, preview = data.view, _preview(data.view)
    with right:
        _counts(data)
    if not view.images:
        st.info("There are no images yet, so there is nothing to export.")
        return
    if data.fill:
        _expected(data.fill)
    for sentence in losses(formats[kind], data.tallies):
        st.warning(f"{sentence}.")
    name, db = f"{STEM}{formats[kind].ending}", context.db()
    st.download_button(
        f"Download {name}.zip",
        data=lambda: archive(db, name, kind, choices),
        file_name=f"{name}.zip",
        mime="application/zip",
        type="primary",
        on_click="ignore",
        key="download_export",
    )
    card_downloads(lambda: card_of(db, [name], choices))
    st.caption(f"{name}, {formats[kind].about}; with its data card, all of the moment of the download.")
    st.caption(f"Preview: the first {min(PREVIEW, view.images):,} of {counted(view.images, 'image')}")
    st.dataframe(preview, hide_index=True)


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


def _counts(data: DataSet) -> None:
    counts: Counter[str] = Counter()
    for column in range(len(data.view.classes)):
        for state, source, cells in data.tallies.counts_of_class(column):
            counts[f"{state} ({source})" if source else "unanswered"] += cells
    st.write(f"{counted(data.view.images, 'image')} × {counted(len(data.view.classes), 'class', 'classes')}")
    st.dataframe(
        pd.DataFrame({"image-class pairs": counts.keys(), "count": counts.values()}).sort_values(
            "count", ascending=False
        ),
        hide_index=True,
    )


def _preview(view: View) -> pd.DataFrame:
    rows: list[list[str]] = []
    for block in view.blocks():
        for image, values in zip(block.images[:PREVIEW], block.values[:PREVIEW].tolist(), strict=True):
            rows.append([image.name, *(VALUES[value] for value in values)])
        break
    return pd.DataFrame(rows, columns=["image", *(class_.name for class_ in view.classes)])
