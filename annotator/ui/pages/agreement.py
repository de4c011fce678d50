"""Agreement: how often people who answered the same question gave the same answer, by class, by pair, by week."""

import math

import pandas as pd
import streamlit as st

from annotator.exchange.files.text_cells import as_csv
from annotator.quality.agreement import ALL, Agreement, agreement, as_rows
from annotator.roles import Right
from annotator.shares import counted, percent
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.labels import disagreement as annotator_disagreement
from annotator.ui.access import context
from annotator.ui.charts import agreement as charts
from annotator.ui.charts import theme
from annotator.ui.parts import frame, tables
from models.statistics.agreement import Estimate

PAIRS_SHOWN = 200


def page() -> None:
    """Draw the Agreement page."""
    with frame.errors_shown():
        _agreement(context.db())


def _agreement(db: Database) -> None:
    st.subheader("Agreement")
    stamp = (decisions.newest_decision(db), versions.class_version(db))
    with st.spinner("Comparing answers..."):
        measured: Agreement = db.caches.get("agreement", stamp, lambda: agreement(db), 4)
    if not measured.overall.cells:
        st.info(
            "Nothing to compare yet. Let several people answer the same images blind: an owner chooses how many under "
            "Assignment."
        )
        if frame.may(Right.OWN):
            frame.link("assignment", "Go to Assignment", ":material/assignment_ind:")
        return
    overall = measured.overall
    with st.container(horizontal=True, gap="medium"):
        st.metric("Answered by several", f"{overall.cells:,}", width="content")
        st.metric("Same answer", _percent(overall.raw), width="content", help=_shares(overall.raw))
        st.metric("They differ on", f"{overall.differ:,}", width="content")
        st.metric("Still to settle", f"{annotator_disagreement.count(db):,}", width="content")
    st.caption(
        "First answers count, given before seeing anybody else's. Krippendorff's alpha: 1 is full agreement, 0 is "
        "chance. Bars are 95 % intervals."
    )
    if annotator_disagreement.count(db) and frame.may(Right.REVIEW):
        frame.link("review", "Settle what people disagree on", ":material/balance:", settle="1")
    frame.download(
        "Download as CSV",
        lambda: as_csv(as_rows(measured)),
        file_name="agreement.csv",
        mime="text/csv",
        help="All figures by class, by pair of people, and by week.",
    )
    colours = theme.palette(st.context.theme.type)
    _by_class(measured, colours)
    left, right = st.columns(2, gap="medium")
    with left:
        _by_pair(measured, colours)
    with right:
        _by_week(measured, colours)


def _by_class(measured: Agreement, colours: theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### By class")
        rows = [row for row in measured.classes if not math.isnan(row.alpha.value)]
        worst = sorted(rows, key=lambda row: row.alpha.value)[: charts.CLASSES_SHOWN]
        if worst:
            table = pd.DataFrame(
                [(row.name, row.alpha.value, row.alpha.low, row.alpha.high) for row in worst],
                columns=["class", "alpha", "low", "high"],
            )
            st.altair_chart(theme.legible(charts.by_class(table, colours), colours), width="stretch")
        if left_out := len(measured.classes) - len(rows):
            st.caption(f"Not drawn, with too few answers: {counted(left_out, 'class', 'classes')}.")
        with st.expander("In numbers"):
            tables.show(
                [
                    {
                        "class": row.name,
                        "answered twice": f"{row.cells:,}",
                        "differ": f"{row.differ:,}",
                        "same answer": _percent(row.raw),
                        "alpha": "too few" if math.isnan(row.alpha.value) else f"{row.alpha.value:.2f}",
                        "95 %": _between(row.alpha),
                    }
                    for row in measured.classes
                ],
                "Agreement by class",
            )


def _by_pair(measured: Agreement, colours: theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### Who with whom")
        people = list(dict.fromkeys(name for pair in measured.pairs for name in (pair.first, pair.second)))
        shown = set(people[: charts.PEOPLE_SHOWN])
        pairs = [pair for pair in measured.pairs if {pair.first, pair.second} <= shown]
        if len(people) > 2:
            both = [
                (one, other, pair.raw.value, pair.cells)
                for pair in pairs
                for one, other in ((pair.first, pair.second), (pair.second, pair.first))
            ]
            table = pd.DataFrame(both, columns=["one", "other", "same", "cells"])
            st.altair_chart(theme.legible(charts.by_pair(table, colours), colours), width="stretch")
        names = list(dict.fromkeys(pair.name for pair in measured.pairs_by_class))
        name = st.selectbox("Class", [ALL, *names], format_func=lambda name: "All classes" if name == ALL else name)
        of_class = measured.pairs if name == ALL else [pair for pair in measured.pairs_by_class if pair.name == name]
        tables.show(
            [
                {
                    "people": f"{pair.first}, {pair.second}",
                    "answered both": f"{pair.cells:,}",
                    "same answer": _percent(pair.raw),
                    "kappa": "too few" if math.isnan(pair.kappa.value) else f"{pair.kappa.value:.2f}",
                    "95 %": _between(pair.kappa),
                }
                for pair in of_class[:PAIRS_SHOWN]
            ],
            "Agreement by pair of people",
        )
        if len(of_class) > PAIRS_SHOWN:
            st.caption(f"{counted(len(of_class) - PAIRS_SHOWN, 'more pair')} in the CSV.")


def _by_week(measured: Agreement, colours: theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### By week")
        weeks = [week for week in measured.weeks if not math.isnan(week.raw.value)]
        if len(weeks) > 1:
            table = pd.DataFrame(
                [(week.monday, week.raw.value, week.raw.low, week.raw.high, week.cells) for week in weeks],
                columns=["week", "same", "low", "high", "cells"],
            )
            table["week"] = pd.to_datetime(table["week"])
            st.altair_chart(theme.legible(charts.by_week(table, colours), colours), width="stretch")
        tables.show(
            [
                {
                    "week of": week.monday,
                    "answered twice": f"{week.cells:,}",
                    "same answer": _percent(week.raw),
                    "alpha": "too few" if math.isnan(week.alpha.value) else f"{week.alpha.value:.2f}",
                    "95 %": _between(week.alpha),
                }
                for week in weeks
            ],
            "Agreement by week",
        )
        st.caption("A pair counts in the week of its second answer.")


def _percent(figure: Estimate) -> str:
    return "too few" if math.isnan(figure.value) else percent(figure.value, digits=1)


def _shares(figure: Estimate) -> str:
    return "" if math.isnan(figure.value) else f"{percent(figure.low, digits=1)} to {percent(figure.high, digits=1)}"


def _between(figure: Estimate) -> str:
    return "" if math.isnan(figure.value) else f"{figure.low:.2f} to {figure.high:.2f}"
