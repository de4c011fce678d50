"""The Agreement page: agreement by class, pair and week."""

import math

import pandas as pd
import streamlit as st

from annotator.exchange.files.csv_cells import format_csv
from annotator.humanize import format_count, format_percent
from annotator.quality.annotator_agreement import ALL_CLASSES, Agreement, as_rows, compute_agreement
from annotator.roles import Right
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import decisions, disagreed_cells
from annotator.ui.access import served_project
from annotator.ui.pages.agreement import agreement_charts
from annotator.ui.shared import chart_theme, html_tables, week_chart
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.page_access import draw_download_button, draw_page_link, has_right
from spmll.statistics.agreement_coefficients import Estimate

MAX_PAIRS_SHOWN = 200


def page() -> None:
    with show_errors():
        _draw_agreement(served_project.db())


def _draw_agreement(db: Database) -> None:
    st.subheader("Agreement")
    stamp = (decisions.get_newest_decision_id(db), versions.get_class_version(db))
    with st.spinner("Comparing answers..."):
        measured: Agreement = db.caches.get("agreement", stamp, lambda: compute_agreement(db), 4)
    if not measured.overall.cells:
        st.info(
            "Nothing to compare yet. Let several people answer the same images blind: an owner chooses how many under "
            "Assignment."
        )
        if has_right(Right.OWN):
            draw_page_link("assignment", "Go to Assignment", ":material/assignment_ind:")
        return
    overall = measured.overall
    with st.container(horizontal=True, gap="medium"):
        st.metric("Answered by several", f"{overall.cells:,}", width="content")
        st.metric(
            "Same answer", _format_percent(overall.raw), width="content", help=_format_percent_interval(overall.raw)
        )
        st.metric("They differ on", f"{overall.differ:,}", width="content")
        st.metric("Still to settle", f"{disagreed_cells.count(db):,}", width="content")
    st.caption(
        "First answers count, given before seeing anybody else's. Krippendorff's alpha: 1 is full agreement, 0 is "
        "chance. Bars are 95 % intervals."
    )
    if disagreed_cells.count(db) and has_right(Right.REVIEW):
        draw_page_link("review", "Settle what people disagree on", ":material/balance:", settle="1")
    draw_download_button(
        "Download as CSV",
        lambda: format_csv(as_rows(measured)),
        file_name="agreement.csv",
        mime="text/csv",
        help="All figures by class, by pair of people, and by week.",
    )
    colors = chart_theme.get_palette(st.context.theme.type)
    _draw_by_class(measured, colors)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_by_pair(measured, colors)
    with right:
        _draw_by_week(measured, colors)


def _draw_by_class(measured: Agreement, colors: chart_theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### By class")
        rows = [row for row in measured.classes if not math.isnan(row.alpha.value)]
        worst = sorted(rows, key=lambda row: row.alpha.value)[: agreement_charts.MAX_CLASSES_SHOWN]
        if worst:
            table = pd.DataFrame(
                [(row.name, row.alpha.value, row.alpha.low, row.alpha.high) for row in worst],
                columns=["class", "alpha", "low", "high"],
            )
            st.altair_chart(
                chart_theme.apply_text_colors(agreement_charts.build_class_chart(table, colors), colors),
                width="stretch",
            )
        if left_out := len(measured.classes) - len(rows):
            st.caption(f"Not drawn, with too few answers: {format_count(left_out, 'class', 'classes')}.")
        with st.expander("In numbers"):
            html_tables.show(
                [
                    {
                        "class": row.name,
                        "answered twice": f"{row.cells:,}",
                        "differ": f"{row.differ:,}",
                        "same answer": _format_percent(row.raw),
                        "alpha": "too few" if math.isnan(row.alpha.value) else f"{row.alpha.value:.2f}",
                        "95 %": _format_interval(row.alpha),
                    }
                    for row in measured.classes
                ],
                "Agreement by class",
            )


def _draw_by_pair(measured: Agreement, colors: chart_theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### Who with whom")
        people = list(dict.fromkeys(name for pair in measured.pairs for name in (pair.first, pair.second)))
        shown = set(people[: agreement_charts.MAX_PEOPLE_SHOWN])
        pairs = [pair for pair in measured.pairs if {pair.first, pair.second} <= shown]
        if len(people) > 2:
            both = [
                (one, other, pair.raw.value, pair.cells)
                for pair in pairs
                for one, other in ((pair.first, pair.second), (pair.second, pair.first))
            ]
            table = pd.DataFrame(both, columns=["one", "other", "same", "cells"])
            st.altair_chart(
                chart_theme.apply_text_colors(agreement_charts.build_pair_chart(table, colors), colors), width="stretch"
            )
        names = list(dict.fromkeys(pair.name for pair in measured.pairs_by_class))
        name = st.selectbox(
            "Class", [ALL_CLASSES, *names], format_func=lambda name: "All classes" if name == ALL_CLASSES else name
        )
        of_class = (
            measured.pairs if name == ALL_CLASSES else [pair for pair in measured.pairs_by_class if pair.name == name]
        )
        html_tables.show(
            [
                {
                    "people": f"{pair.first}, {pair.second}",
                    "answered both": f"{pair.cells:,}",
                    "same answer": _format_percent(pair.raw),
                    "kappa": "too few" if math.isnan(pair.kappa.value) else f"{pair.kappa.value:.2f}",
                    "95 %": _format_interval(pair.kappa),
                }
                for pair in of_class[:MAX_PAIRS_SHOWN]
            ],
            "Agreement by pair of people",
        )
        if len(of_class) > MAX_PAIRS_SHOWN:
            st.caption(f"{format_count(len(of_class) - MAX_PAIRS_SHOWN, 'more pair')} in the CSV.")


def _draw_by_week(measured: Agreement, colors: chart_theme.Palette) -> None:
    with st.container(border=True):
        st.markdown("#### By week")
        weeks = [week for week in measured.weeks if not math.isnan(week.raw.value)]
        if len(weeks) > 1:
            table = pd.DataFrame(
                [(week.monday, week.raw.value, week.raw.low, week.raw.high, week.cells) for week in weeks],
                columns=["week", "same", "low", "high", "cells"],
            )
            table["week"] = pd.to_datetime(table["week"])
            st.altair_chart(
                chart_theme.apply_text_colors(week_chart.build_week_chart(table, colors), colors), width="stretch"
            )
        html_tables.show(
            [
                {
                    "week of": week.monday,
                    "answered twice": f"{week.cells:,}",
                    "same answer": _format_percent(week.raw),
                    "alpha": "too few" if math.isnan(week.alpha.value) else f"{week.alpha.value:.2f}",
                    "95 %": _format_interval(week.alpha),
                }
                for week in weeks
            ],
            "Agreement by week",
        )
        st.caption("A pair counts in the week of its second answer.")


def _format_percent(figure: Estimate) -> str:
    return "too few" if math.isnan(figure.value) else format_percent(figure.value, digits=1)


def _format_percent_interval(figure: Estimate) -> str:
    return (
        ""
        if math.isnan(figure.value)
        else f"{format_percent(figure.low, digits=1)} to {format_percent(figure.high, digits=1)}"
    )


def _format_interval(figure: Estimate) -> str:
    return "" if math.isnan(figure.value) else f"{figure.low:.2f} to {figure.high:.2f}"
