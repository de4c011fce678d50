"""The People page: answers per annotator, compared."""

import math

import pandas as pd
import streamlit as st

from annotator.exchange.files.csv_cells import format_csv
from annotator.humanize import format_count, format_percent
from annotator.quality.annotator_figures import AnnotatorFigures, AnswerFigures, as_rows, compute_annotator_figures
from annotator.roles import Right
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.people import reference_answers
from annotator.ui.access import served_project
from annotator.ui.shared import chart_theme, html_tables, week_chart
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.page_access import draw_download_button, draw_page_link, has_right
from spmll.statistics.agreement_coefficients import Estimate
from spmll.statistics.intervals import wilson_interval


def page() -> None:
    with show_errors():
        own, db = require_annotator_name(), served_project.db()
        st.subheader("People")
        stamp = (decisions.get_newest_decision_id(db), versions.get_class_version(db))
        with st.spinner("Comparing answers..."):
            measured: list[AnnotatorFigures] = db.caches.get("people", stamp, lambda: compute_annotator_figures(db), 4)
        sees_all = has_right(Right.REVIEW)
        shown = measured if sees_all else [person for person in measured if person.name == own]
        if not shown:
            st.info("Nobody has answered yet." if sees_all else "You have answered nothing yet.")
            draw_page_link("autopilot", "Go to Autopilot", ":material/auto_awesome:")
            return
        st.caption(
            "Estimates, not judgments. First answers count. Either of two who differ may be right. Hard images differ "
            "more often. In brackets: 95 % intervals. Seconds are medians."
        )
        if sees_all:
            _draw_overview(shown)
        person = _choose_person(shown, own)
        _draw_person(db, person)


def _draw_overview(measured: list[AnnotatorFigures]) -> None:
    html_tables.show(
        [{"person": person.name, "answers": f"{person.answers:,}", **_build_figures(person)} for person in measured],
        "Everybody",
    )
    draw_download_button(
        "Download as CSV",
        lambda: format_csv(as_rows(measured)),
        file_name="people.csv",
        mime="text/csv",
        help="All figures of everybody, by class and by week.",
    )


def _choose_person(measured: list[AnnotatorFigures], own: str) -> AnnotatorFigures:
    by_name = {person.name: person for person in measured}
    if len(by_name) == 1:
        return measured[0]
    name = st.selectbox(
        "Person",
        list(by_name),
        index=list(by_name).index(own) if own in by_name else 0,
        format_func=lambda name: f"{name} (you)" if name == own else name,
    )
    return by_name[name]


def _draw_person(db: Database, person: AnnotatorFigures) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.metric("Answers", f"{person.answers:,}", width="content")
        seconds = f"{person.seconds.value:.1f}" if person.timed else "-"
        st.metric("Seconds a click", seconds, width="content", help=_format_seconds(person))
        st.metric(
            "Same answer as others", _format_percent(person.same), width="content", help=_format_interval(person.same)
        )
        between = _format_interval(person.changed_share)
        st.metric("Changed by others", person.changes_description, width="content", help=between)
    if not person.compared:
        st.info(
            "Nothing to compare yet. Let several people answer the same images blind: an owner chooses how many under "
            "Assignment."
        )
        if has_right(Right.OWN):
            draw_page_link("assignment", "Go to Assignment", ":material/assignment_ind:")
    _draw_by_week(person, chart_theme.get_palette(st.context.theme.type))
    _draw_by_class(person)
    _draw_reference_answers(db, person.name)


def _draw_by_week(person: AnnotatorFigures, colors: chart_theme.Palette) -> None:
    if not person.weeks:
        return
    with st.container(border=True):
        st.markdown("#### By week")
        weeks = [week for week in person.weeks if not math.isnan(week.same.value)]
        if len(weeks) > 1:
            st.caption("Same answer as others")
            table = pd.DataFrame(
                [(week.monday, week.same.value, week.same.low, week.same.high, week.compared) for week in weeks],
                columns=["week", "same", "low", "high", "cells"],
            )
            table["week"] = pd.to_datetime(table["week"])
            st.altair_chart(
                chart_theme.apply_text_colors(week_chart.build_week_chart(table, colors), colors), width="stretch"
            )
        html_tables.show([{"week of": week.monday, **_build_figures(week)} for week in person.weeks], "By week")


def _draw_by_class(person: AnnotatorFigures) -> None:
    with st.container(border=True):
        st.markdown("#### By class")
        if not person.classes:
            st.caption("No class was answered by two people, and none in grids.")
            return
        html_tables.show(
            [
                {
                    "class": row.name,
                    "finds of what is there": _format_share(row.sensitivity, round(row.present)),
                    "rejects of what is not": _format_share(row.specificity, round(row.absent)),
                    **_build_figures(row, "seconds an image in grids"),
                }
                for row in person.classes
            ],
            "Estimates by class",
        )
        st.caption(
            "Found and rejected are estimated from everybody's answers, without knowing the truth. What everybody "
            "overlooks makes them too high. Two people alone cannot show which of them errs."
        )


def _draw_reference_answers(db: Database, name: str) -> None:
    known = next((one for one in reference_answers.load_results(db) if one.annotator == name), None)
    if known is None:
        return
    with st.container(border=True):
        st.markdown("#### Known answers")
        found, rejected = (
            _format_reference_share(known.found, known.present),
            _format_reference_share(known.rejected, known.absent),
        )
        words = f"Found of what is there: {found}. Rejected of what is not: {rejected}."
        st.caption(escape_markdown(f"{format_count(known.images, 'image')} with known answers. {words}"))


def _format_reference_share(right: int, total: int) -> str:
    if not total:
        return "none asked"
    low, high = wilson_interval(right, total)
    return f"{right:,} of {total:,} ({format_percent(low)} to {format_percent(high)})"


def _build_figures(figures: AnswerFigures, seconds: str = "seconds a click") -> dict[str, str]:
    changed = figures.changes_description + (f" ({_format_interval(figures.changed_share)})" if figures.shared else "")
    return {
        "same answer as others": _format_share(figures.same, figures.compared),
        "changed by others": changed,
        seconds: _format_seconds(figures),
    }


def _format_seconds(figures: AnswerFigures) -> str:
    if not figures.timed:
        return "-"
    if math.isnan(figures.seconds.low):
        return f"too few ({figures.timed:,})"
    return f"{figures.seconds.value:.1f} ({figures.seconds.low:.1f} to {figures.seconds.high:.1f})"


def _format_share(figure: Estimate, total: int) -> str:
    if not total:
        return "-"
    return (
        f"too few ({total:,})"
        if math.isnan(figure.value)
        else f"{format_percent(figure.value)} ({_format_interval(figure)})"
    )


def _format_percent(figure: Estimate) -> str:
    return "-" if math.isnan(figure.value) else format_percent(figure.value, digits=1)


def _format_interval(figure: Estimate) -> str:
    return "" if math.isnan(figure.value) else f"{format_percent(figure.low)} to {format_percent(figure.high)}"
