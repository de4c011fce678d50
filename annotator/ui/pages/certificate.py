"""Certificate: how complete and how correct the labels are, how sure that is, and what would make it surer.

Computing it takes seconds with many cells, so it is kept until something it depends on has changed.
"""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from annotator.exchange.exports.export import card_of
from annotator.quality import audit
from annotator.quality.certificate import TARGET, Certificate, Row, certificate, stamp
from annotator.quality.certificate_records import in_words
from annotator.quality.evidence import (
    IF_RIGHT,
    NOT_COMPARED,
    Interval,
    count_ends,
    count_in_words,
    duration,
    ends,
    share_in_words,
)
from annotator.quality.shortfall import lacks
from annotator.roles import Right
from annotator.shares import counted, percent
from annotator.snapshot.progress import progress_of
from annotator.store.database.database import Database
from annotator.store.people import blindness
from annotator.ui.access import context
from annotator.ui.charts import certificate as charts
from annotator.ui.charts import theme
from annotator.ui.export import card
from annotator.ui.pages import auto_accept as auto_accept_card
from annotator.ui.parts import certificate_groups, empty, frame, tables

TARGETS = (0.90, 0.95, 0.98, 0.99)
LARGEST_AUDIT = 100_000


def page() -> None:
    """Draw the Certificate page."""
    with frame.errors_shown():
        _certificate()


def _certificate() -> None:
    db = context.db()
    if empty.shown(db):
        return
    if not frame.may(Right.REVIEW) and blindness.waits_for(db, frame.known_name()):
        st.info("Hidden until you have given your blind answers.")
        if frame.may(Right.ANSWER):
            frame.link("autopilot", "Give your blind answers", ":material/auto_awesome:")
        return
    with st.spinner("Computing the certificate..."):
        certified = db.caches.get("certificate", stamp(db), lambda: certificate(db), 4)
    target = _stopping_rule(certified)
    _overall(certified.overall)
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _surer(certified, target)
    with right:
        _audit(db, certified)
    _by_class(certified, target)
    certificate_groups.card(db, target)
    _numbers(certified)
    if frame.may(Right.REVIEW):
        auto_accept_card.card(db)
    with st.container(border=True):
        st.markdown("#### Download the data card")
        st.caption("All of this, how it was measured, and its limits. Every export includes it.")
        card.downloads_of(lambda: card_of(db, ["labels.csv"], card.terms(db)))


def _stopping_rule(certified: Certificate) -> float:
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        words = st.container(width="content")
        target = st.segmented_control(
            "Target recall",
            TARGETS,
            format_func=lambda share: f"{100 * share:g} %",
            default=TARGET,
            required=True,
            key="target",
        )
    with words:
        st.markdown(f"### {frame.escaped(certified.headline(target))}.")
        if conditions := certified.conditions(target):
            st.caption(f"{frame.escaped(conditions)}.")
    return target


def _overall(row: Row) -> None:
    columns = st.columns(3)
    for column, label, interval, help_ in (
        (
            columns[0],
            "Recall",
            row.recall,
            "Of all pairs where the image shows the class, the share labeled.",
        ),
        (
            columns[1],
            "Precision",
            row.precision,
            "Of all labels, the share where the image shows the class.",
        ),
    ):
        with column, st.container(border=True, height="stretch"):
            is_recall = interval is row.recall
            # Where every pair is answered, nothing was sampled: there is no interval to be confident of.
            confidence = "" if is_recall and not row.unknown else ", with 95 % confidence"
            if _metric(f"{label}{confidence}", interval, ends, help_):
                st.html(_bar(interval))
                estimate = "nothing to find" if interval.estimate is None else percent(interval.estimate, digits=1)
                st.caption(f"Best estimate: {estimate}")
                if is_recall:
                    st.caption(frame.escaped(row.says))
                if is_recall and row.events:
                    st.caption(f"Of events, each counted once: {share_in_words(row.events.recall)}.")
                if is_recall and row.recall_allowing.reason != NOT_COMPARED:
                    st.caption(f"Allowing for people's mistakes: {share_in_words(row.recall_allowing)}.")
                    if not row.recall_allowing.reason:
                        st.html(_bar(row.recall_allowing))
    with columns[2], st.container(border=True, height="stretch"):
        if _metric("Still missing", row.missing, count_ends, "Labels that nobody has given yet."):
            st.caption(f"Best estimate: {row.missing.estimate or 0:,.0f}. {IF_RIGHT.capitalize()}.")
            st.caption(f"Time to find 95 % of them in grids: {duration(row.seconds)}.")
        labels = counted(row.people + row.accepted, "label")
        st.caption(frame.escaped(f"{labels} so far; {progress_of(context.db(), frame.known_name()).sentence()}."))


def _metric(label: str, interval: Interval, in_words: Callable[[Interval], str], help_: str) -> bool:
    """Draw the figure in large, or why it is not shown; return whether it is."""
    if not interval.reason:
        st.metric(label, in_words(interval), width="content", help=help_)
        return True
    headline, _, why = interval.reason.partition(" (")
    st.metric(label, frame.escaped(headline.capitalize()), width="content", help=help_)
    if why:
        why = why.removesuffix(")")
        words = f"{why} so far" if headline.startswith("too few") else f"{why[:1].upper()}{why[1:]}."
        st.caption(frame.escaped(words))
    return False


def _surer(certified: Certificate, target: float) -> None:
    with st.container(border=True, height="stretch"):
        st.markdown("#### How to improve confidence")
        if not certified.last_decision_id:
            st.info("No answers yet. Start with Autopilot.")
            frame.link("autopilot", "Go to Autopilot")
        sentences = lacks(certified, target)
        for sentence in sentences or ["Nothing is needed."]:
            st.markdown(f"* {frame.escaped(sentence)}")


def _audit(db: Database, certified: Certificate) -> None:
    waiting = certified.overall.waiting
    with st.container(border=True, height="stretch"):
        st.markdown("#### Audit")
        if waiting:
            st.markdown(f"**{counted(waiting, 'pair')} to check.**")
            frame.link("grid", "Answer in the audit grid", ":material/visibility_off:", audit="1")
        elif certified.audits:
            st.markdown("Every audit question has been answered.")
        if more := len(audit.cells_to_repeat(db, None)):
            st.markdown(f"**{counted(more, 'pair')} for a second person to check**, or a third.")
            frame.link("grid", "Answer as another person", ":material/group:", audit="1")
        audited = certified.overall.audited
        so_far = f"{counted(audited, 'pair')} answered so far." if audited else "None answered yet."
        st.caption(f"A random sample, answered with predictions hidden. {so_far}")
        if not frame.may(Right.REVIEW):
            st.caption("Reviewers and owners start audits.")
            return
        with st.form("audit_form", border=False):
            cells = st.number_input(
                "Pairs in the sample", 1, LARGEST_AUDIT, min(audit.default_size(db), LARGEST_AUDIT), key="audit_cells"
            )
            people = st.number_input(
                "People who answer each pair",
                1,
                audit.MOST_PEOPLE,
                1,
                key="audit_people",
                help="Blind to each other. The Agreement page shows how far they agree.",
            )
            by_event = certified.events is not None and st.checkbox(
                "Draw events", key="audit_events", help="So many events, all of whose images are asked."
            )
            if not st.form_submit_button("Start an audit", type="secondary" if waiting else "primary"):
                return
        with st.spinner("Sampling..."):
            drawn = audit.draw(db, int(cells), people=int(people), by_event=by_event)
        st.toast(f"{counted(drawn.cells, 'pair')} to check.")
        st.rerun()


def _by_class(certified: Certificate, target: float) -> None:
    with st.container(border=True):
        st.markdown("#### By class, most missing first")
        table = pd.DataFrame(
            [
                {"class": row.name, "kind": kind} | value.as_json()
                for row in _missing_first(certified)
                for kind, value in (
                    (charts.KINDS[0], row.recall),
                    (charts.KINDS[1], row.recall_allowing),
                    (charts.KINDS[2], row.precision),
                )
            ]
        ).astype(dict.fromkeys(("estimate", "low", "high"), float))
        names = table.loc[table["low"].notna(), "class"].unique()
        if not len(names):
            st.caption("No class has enough audit answers yet.")
            return
        if unmeasured := len(certified.classes) - len(names):
            st.caption(f"Not drawn, with too few audit answers: {counted(unmeasured, 'class', 'classes')}.")
        shown = names[: charts.CLASSES_SHOWN]
        if len(shown) < len(names):
            st.caption(f"The first {len(shown)} of {len(names):,} classes; the table below has all.")
        drawn = table.loc[table["class"].isin(shown)]
        how_many = counted(len(shown), "class", "classes")
        colours = theme.palette(st.context.theme.type)
        with st.container(height=640 if len(shown) > charts.IN_SIGHT else "content", border=False):
            st.altair_chart(
                theme.legible(charts.certified(pd.DataFrame(drawn), target, colours), colours),
                key="chart_certified",
                alt=f"Recall and precision of {how_many} with 95 % intervals, as in the table below",
            )


def _numbers(certified: Certificate) -> None:
    with st.container(border=True):
        st.markdown("#### Table")
        assumed, why = ("an assumed ", " (no grid has been answered yet)") if certified.time_is_assumed else ("", "")
        st.caption(
            "Estimates, with 95 % intervals in brackets. Times: until 95 % of the missing labels are found in grids, "
            f"at {assumed}{certified.seconds_a_tile:.1f} s per image{why}."
        )
        if words := certified.in_events():
            st.caption(frame.escaped(words))
        if certified.compared:
            st.caption(frame.escaped(in_words(certified)))
        for sentence in certified.ruled_out.values():
            st.caption(frame.escaped(sentence))
        if certified.relabels.present:
            st.caption(
                f"Precision rests on {counted(certified.relabels.present, 'label')} that audits asked again, of all "
                "classes together."
            )
        rows = [_line(row, certified.compared > 0) for row in [certified.overall, *_missing_first(certified)]]
        tables.show(rows, "The certificate, class by class")


def _line(row: Row, compared: bool) -> dict[str, str]:
    accepted = f" ({row.accepted:,} auto-accepted)" if row.accepted else ""
    return {
        "class": row.name,
        "labeled": f"{row.people + row.accepted:,}{accepted}",
        f"recall {IF_RIGHT}": share_in_words(row.recall),
        **({"recall of events": share_in_words(row.events.recall)} if row.events else {}),
        **({"allowing for mistakes": share_in_words(row.recall_allowing)} if compared else {}),
        "precision": share_in_words(row.precision),
        "missing": count_in_words(row.missing),
        "time to find": duration(row.seconds),
        "audited": f"{row.audited:,}" + (f" ({row.waiting:,} to check)" if row.waiting else ""),
    }


def _missing_first(certified: Certificate) -> list[Row]:
    def sort_key(row: Row) -> tuple[float, float]:
        middle = (row.missing.low + row.missing.high) / 2
        return (-(middle if row.missing.estimate is None else row.missing.estimate), row.recall.low)

    return sorted(certified.classes, key=sort_key)


def _bar(interval: Interval) -> str:
    """Return the HTML of the interval on a line from 0 to 100 %, with a mark at the estimate."""
    low, high = 100 * interval.low, 100 * interval.high
    mark = ""
    if interval.estimate is not None:
        mark = (
            f'<i style="position:absolute;left:calc({100 * interval.estimate:.2f}% - 1.5px);top:-3px;width:3px;'
            'height:14px;border-radius:2px;background:light-dark(#1c2221,#e9ecea)"></i>'
        )
    return (
        '<div aria-hidden="true" style="position:relative;height:8px;margin:3px 0;border-radius:4px;'
        'background:light-dark(#e3e7e5,#333937)"><b style="position:absolute;height:8px;border-radius:4px;'
        f"left:{low:.2f}%;width:max(4px,{high - low:.2f}%);max-width:{100 - low:.2f}%;"
        f'background:light-dark(#0f7b6c,#43b5a2)"></b>{mark}</div>'
    )
