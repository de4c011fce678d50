"""People: how each person answers, compared with others. Everybody sees themselves; reviewers and owners see all."""

import math

import pandas as pd
import streamlit as st

from annotator.exchange.files.text_cells import as_csv
from annotator.quality.people import Figures, Person, as_rows, people
from annotator.roles import Right
from annotator.shares import counted, percent
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.people import known_answers
from annotator.ui.access import context
from annotator.ui.charts import agreement as charts
from annotator.ui.charts import theme
from annotator.ui.parts import frame, tables
from models.statistics.agreement import Estimate
from models.statistics.intervals import wilson


def page() -> None:
    """Draw the People page."""
    with frame.errors_shown():
        own, db = frame.annotator_name(), context.db()
        st.subheader("People")
        stamp = (decisions.newest_decision(db), versions.class_version(db))
        with st.spinner("Comparing answers..."):
            measured: list[Person] = db.caches.get("people", stamp, lambda: people(db), 4)
        sees_all = frame.may(Right.REVIEW)
        shown = measured if sees_all else [person for person in measured if person.name == own]
        if not shown:
            st.info("Nobody has answered yet." if sees_all else "You have answered nothing yet.")
            frame.link("autopilot", "Go to Autopilot", ":material/auto_awesome:")
            return
        st.caption(
            "Estimates, not judgments. First answers count. Either of two who differ may be right. Hard images differ "
            "more often. In brackets: 95 % intervals. Seconds are medians."
        )
        if sees_all:
            _overview(shown)
        person = _chosen(shown, own)
        _of(db, person)


def _overview(measured: list[Person]) -> None:
    tables.show(
        [{"person": person.name, "answers": f"{person.answers:,}", **_figures(person)} for person in measured],
        "Everybody",
    )
    frame.download(
        "Download as CSV",
        lambda: as_csv(as_rows(measured)),
        file_name="people.csv",
        mime="text/csv",
        help="All figures of everybody, by class and by week.",
    )


def _chosen(measured: list[Person], own: str) -> Person:
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


def _of(db: Database, person: Person) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.metric("Answers", f"{person.answers:,}", width="content")
        seconds = f"{person.seconds.value:.1f}" if person.timed else "-"
        st.metric("Seconds a click", seconds, width="content", help=_seconds(person))
        st.metric("Same answer as others", _percent(person.same), width="content", help=_between(person.same))
        between = _between(person.changed_share)
        st.metric("Changed by others", person.changes_in_words, width="content", help=between)
    if not person.compared:
        st.info(
            "Nothing to compare yet. Let several people answer the same images blind: an owner chooses how many under "
            "Assignment."
        )
        if frame.may(Right.OWN):
            frame.link("assignment", "Go to Assignment", ":material/assignment_ind:")
    _by_week(person, theme.palette(st.context.theme.type))
    _by_class(person)
    _known(db, person.name)


def _by_week(person: Person, colours: theme.Palette) -> None:
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
            st.altair_chart(theme.legible(charts.by_week(table, colours), colours), width="stretch")
        tables.show([{"week of": week.monday, **_figures(week)} for week in person.weeks], "By week")


def _by_class(person: Person) -> None:
    with st.container(border=True):
        st.markdown("#### By class")
        if not person.classes:
            st.caption("No class was answered by two people, and none in grids.")
            return
        tables.show(
            [
                {
                    "class": row.name,
                    "finds of what is there": _share(row.sensitivity, round(row.present)),
                    "rejects of what is not": _share(row.specificity, round(row.absent)),
                    **_figures(row, "seconds an image in grids"),
                }
                for row in person.classes
            ],
            "Estimates by class",
        )
        st.caption(
            "Found and rejected are estimated from everybody's answers, without knowing the truth. What everybody "
            "overlooks makes them too high. Two people alone cannot show which of them errs."
        )


def _known(db: Database, name: str) -> None:
    known = next((one for one in known_answers.results(db) if one.annotator == name), None)
    if known is None:
        return
    with st.container(border=True):
        st.markdown("#### Known answers")
        found, rejected = _of_known(known.found, known.present), _of_known(known.rejected, known.absent)
        words = f"Found of what is there: {found}. Rejected of what is not: {rejected}."
        st.caption(frame.escaped(f"{counted(known.images, 'image')} with known answers. {words}"))


def _of_known(right: int, of: int) -> str:
    if not of:
        return "none asked"
    low, high = wilson(right, of)
    return f"{right:,} of {of:,} ({percent(low)} to {percent(high)})"


def _figures(of: Figures, seconds: str = "seconds a click") -> dict[str, str]:
    changed = of.changes_in_words + (f" ({_between(of.changed_share)})" if of.shared else "")
    return {
        "same answer as others": _share(of.same, of.compared),
        "changed by others": changed,
        seconds: _seconds(of),
    }


def _seconds(of: Figures) -> str:
    """Return the median time with its interval, in words."""
    if not of.timed:
        return "-"
    if math.isnan(of.seconds.low):
        return f"too few ({of.timed:,})"
    return f"{of.seconds.value:.1f} ({of.seconds.low:.1f} to {of.seconds.high:.1f})"


def _share(figure: Estimate, of: int) -> str:
    if not of:
        return "-"
    return f"too few ({of:,})" if math.isnan(figure.value) else f"{percent(figure.value)} ({_between(figure)})"


def _percent(figure: Estimate) -> str:
    return "-" if math.isnan(figure.value) else percent(figure.value, digits=1)


def _between(figure: Estimate) -> str:
    return "" if math.isnan(figure.value) else f"{percent(figure.low)} to {percent(figure.high)}"
