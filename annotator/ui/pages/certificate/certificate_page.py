"""The Certificate page: completeness and correctness of the labels, with intervals."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from annotator.exchange.exports.export_writer import build_current_card
from annotator.humanize import format_count, format_percent
from annotator.quality import audit_sampling
from annotator.quality.certificate_records import describe_mistake_allowance, describe_repeats
from annotator.quality.certification import (
    DEFAULT_TARGET_RECALL,
    Certificate,
    CertificateRow,
    compute_certificate,
    get_change_key,
)
from annotator.quality.evidence import (
    IF_ANSWERS_ARE_RIGHT,
    Interval,
    describe_count,
    describe_share,
    format_count_interval,
    format_search_time,
    format_share_interval,
)
from annotator.quality.shortfall import list_shortfalls
from annotator.roles import Right
from annotator.snapshot.project_progress import load_progress
from annotator.store.database.database import Database
from annotator.store.people import blindness
from annotator.ui.access import served_project
from annotator.ui.pages.certificate import auto_accept_card, certificate_charts, certificate_groups_card
from annotator.ui.shared import chart_theme, data_card_section, empty_notice, html_tables
from annotator.ui.shared.annotator_name import get_known_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.page_access import draw_page_link, has_right

TARGET_RECALLS = (0.90, 0.95, 0.98, 0.99)
MAX_AUDIT_CELLS = 100_000


def page() -> None:
    with show_errors():
        _draw_certificate()


def _draw_certificate() -> None:
    db = served_project.db()
    if empty_notice.draw_if_empty(db):
        return
    if not has_right(Right.REVIEW) and blindness.has_hidden_images(db, get_known_name()):
        st.info("Hidden until you have given your blind answers.")
        if has_right(Right.ANSWER):
            draw_page_link("autopilot", "Give your blind answers", ":material/auto_awesome:")
        return
    with st.spinner("Computing the certificate..."):
        certified = db.caches.get("certificate", get_change_key(db), lambda: compute_certificate(db), 4)
    target = _draw_target(certified)
    _draw_overall(certified)
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _draw_advice(certified, target)
    with right:
        _draw_audit(db, certified)
    _draw_by_class(certified, target)
    certificate_groups_card.draw(db, target)
    _draw_table(certified)
    if has_right(Right.REVIEW):
        auto_accept_card.draw(db)
    with st.container(border=True):
        st.markdown("#### Download the data card")
        st.caption("All of this, how it was measured, and its limits. Every export includes it.")
        data_card_section.draw_downloads(
            lambda: build_current_card(db, ["labels.csv"], data_card_section.load_terms(db))
        )


def _draw_target(certified: Certificate) -> float:
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        words = st.container(width="content")
        target = st.segmented_control(
            "Target recall",
            TARGET_RECALLS,
            format_func=lambda share: f"{100 * share:g} %",
            default=DEFAULT_TARGET_RECALL,
            required=True,
            key="target",
        )
    with words:
        st.markdown(f"### {escape_markdown(certified.headline(target))}.")
        if conditions := certified.conditions(target):
            st.caption(f"{escape_markdown(conditions)}.")
    return target


def _draw_overall(certified: Certificate) -> None:
    row = certified.overall
    columns = st.columns(3)
    with columns[0], st.container(border=True, height="stretch"):
        _draw_share(
            f"Recall {row.allowance}",
            row.recall_allowing,
            "Of all pairs where the image shows the class, the share labeled. The target must be reached with this "
            "figure.",
            describe_mistake_allowance(certified),
        )
        _draw_share(
            f"Recall {IF_ANSWERS_ARE_RIGHT}",
            row.recall,
            "Of all pairs where the image shows the class, the share labeled.",
            row.says,
        )
        if row.events:
            st.caption(f"Of events, each counted once: {describe_share(row.events.recall)}.")
    with columns[1], st.container(border=True, height="stretch"):
        _draw_share("Precision", row.precision, "Of all labels, the share where the image shows the class.")
    with columns[2], st.container(border=True, height="stretch"):
        if _draw_metric("Still missing", row.missing, format_count_interval, "Labels that nobody has given yet."):
            st.caption(f"Best estimate: {row.missing.estimate or 0:,.0f}. {IF_ANSWERS_ARE_RIGHT.capitalize()}.")
            st.caption(f"Time to find 95 % of them in grids: {format_search_time(row.seconds)}.")
        labels = format_count(row.people + row.accepted, "label")
        st.caption(
            escape_markdown(f"{labels} so far; {load_progress(served_project.db(), get_known_name()).sentence()}.")
        )


def _draw_share(label: str, share: Interval, help_: str, basis: str = "") -> None:
    """Draw a share with its 95% interval, a bar, the best estimate, and a sentence on its basis."""
    if _draw_metric(label, share, format_share_interval, help_):
        st.html(_render_bar(share))
        estimate = "nothing to find" if share.estimate is None else format_percent(share.estimate, digits=1)
        st.caption(escape_markdown(f"Best estimate: {estimate}. {basis}".strip()))


def _draw_metric(label: str, interval: Interval, format_interval: Callable[[Interval], str], help_: str) -> bool:
    """Draw a figure, or why it was not measured, and return whether it was."""
    if not interval.reason:
        st.metric(label, format_interval(interval), width="content", help=help_)
        return True
    headline, _, why = interval.reason.partition(" (")
    st.metric(label, escape_markdown(headline.capitalize()), width="content", help=help_)
    if why:
        why = why.removesuffix(")")
        words = f"{why} so far" if headline.startswith("too few") else f"{why[:1].upper()}{why[1:]}."
        st.caption(escape_markdown(words))
    return False


def _draw_advice(certified: Certificate, target: float) -> None:
    with st.container(border=True, height="stretch"):
        st.markdown("#### How to improve confidence")
        if not certified.last_decision_id:
            st.info("No answers yet. Start with Autopilot.")
            draw_page_link("autopilot", "Go to Autopilot")
        sentences = list_shortfalls(certified, target)
        for sentence in sentences or ["Nothing is needed."]:
            st.markdown(f"* {escape_markdown(sentence)}")


def _draw_audit(db: Database, certified: Certificate) -> None:
    waiting = certified.overall.waiting
    with st.container(border=True, height="stretch"):
        st.markdown("#### Audit")
        if waiting:
            st.markdown(f"**{format_count(waiting, 'pair')} to check.**")
            draw_page_link("grid", "Answer in the audit grid", ":material/visibility_off:", audit="1")
        elif certified.audits:
            st.markdown("Every audit question has been answered.")
        if more := len(audit_sampling.load_cells_to_repeat(db, None)):
            st.markdown(f"**{format_count(more, 'pair')} to check a second time**, by another person if there is one.")
            draw_page_link("grid", "Answer a second time", ":material/group:", audit="1")
        audited, again = certified.overall.audit_answers, certified.overall.asked_again
        so_far = f"{format_count(audited, 'pair')} answered so far." if audited else "None answered yet."
        st.caption(f"A random sample, answered with predictions hidden. {so_far}")
        if again.total:
            st.caption(escape_markdown(f"{describe_repeats(again)}."))
        if not has_right(Right.REVIEW):
            st.caption("Reviewers and owners start audits.")
            return
        with st.form("audit_form", border=False):
            cells = st.number_input(
                "Pairs in the sample",
                1,
                MAX_AUDIT_CELLS,
                min(audit_sampling.get_default_size(db), MAX_AUDIT_CELLS),
                key="audit_cells",
            )
            people = st.number_input(
                "People who answer each pair",
                1,
                audit_sampling.MAX_PEOPLE_PER_CELL,
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
            drawn = audit_sampling.draw_audit(db, int(cells), people=int(people), by_event=by_event)
        st.toast(f"{format_count(drawn.cells, 'pair')} to check.")
        st.rerun()


def _draw_by_class(certified: Certificate, target: float) -> None:
    with st.container(border=True):
        st.markdown("#### By class, most missing first")
        table = pd.DataFrame(
            [
                {"class": row.name, "kind": kind} | value.as_json()
                for row in _sort_by_missing(certified)
                for kind, value in (
                    (certificate_charts.INTERVAL_KINDS[0], row.recall),
                    (certificate_charts.INTERVAL_KINDS[1], row.recall_allowing),
                    (certificate_charts.INTERVAL_KINDS[2], row.precision),
                )
            ]
        ).astype(dict.fromkeys(("estimate", "low", "high"), float))
        names = table.loc[table["low"].notna(), "class"].unique()
        if not len(names):
            st.caption("No class has enough audit answers yet.")
            return
        if unmeasured := len(certified.classes) - len(names):
            st.caption(f"Not drawn, with too few audit answers: {format_count(unmeasured, 'class', 'classes')}.")
        shown = names[: certificate_charts.MAX_CLASSES_SHOWN]
        if len(shown) < len(names):
            st.caption(f"The first {len(shown)} of {len(names):,} classes; the table below has all.")
        drawn = table.loc[table["class"].isin(shown)]
        how_many = format_count(len(shown), "class", "classes")
        colors = chart_theme.get_palette(st.context.theme.type)
        with st.container(height=640 if len(shown) > certificate_charts.MAX_ROWS_IN_VIEW else "content", border=False):
            st.altair_chart(
                chart_theme.apply_text_colors(
                    certificate_charts.build_interval_chart(pd.DataFrame(drawn), target, colors), colors
                ),
                key="chart_certified",
                alt=f"Recall and precision of {how_many} with 95 % intervals, as in the table below",
            )


def _draw_table(certified: Certificate) -> None:
    with st.container(border=True):
        st.markdown("#### Table")
        assumed, why = ("an assumed ", " (no grid has been answered yet)") if certified.time_is_assumed else ("", "")
        st.caption(
            "Estimates, with 95 % intervals in brackets. Times: until 95 % of the missing labels are found in grids, "
            f"at {assumed}{certified.seconds_a_tile:.1f} s per image{why}."
        )
        if words := certified.in_events():
            st.caption(escape_markdown(words))
        st.caption(escape_markdown(describe_mistake_allowance(certified)))
        for sentence in certified.ruled_out.values():
            st.caption(escape_markdown(sentence))
        if certified.relabels.present:
            st.caption(
                f"Precision rests on {format_count(certified.relabels.present, 'label')} that audits asked again, of "
                "all classes together."
            )
        has_second = certified.relabels.absent > 0
        rows = [_build_row(row, has_second) for row in [certified.overall, *_sort_by_missing(certified)]]
        html_tables.show(rows, "The certificate, class by class")


def _build_row(row: CertificateRow, has_second: bool) -> dict[str, str]:
    accepted = f" ({row.accepted:,} auto-accepted)" if row.accepted else ""
    return {
        "class": row.name,
        "labeled": f"{row.people + row.accepted:,}{accepted}",
        f"recall {IF_ANSWERS_ARE_RIGHT}": describe_share(row.recall),
        f"recall {row.allowance}": describe_share(row.recall_allowing),
        **({"recall of events": describe_share(row.events.recall)} if row.events else {}),
        "precision": describe_share(row.precision),
        "missing": describe_count(row.missing),
        "time to find": format_search_time(row.seconds),
        **({"overlooked": describe_count(row.overlooked)} if has_second else {}),
        "audited": f"{row.audit_answers:,}" + (f" ({row.waiting:,} to check)" if row.waiting else ""),
    }


def _sort_by_missing(certified: Certificate) -> list[CertificateRow]:
    def sort_key(row: CertificateRow) -> tuple[float, float]:
        middle = (row.missing.low + row.missing.high) / 2
        return (-(middle if row.missing.estimate is None else row.missing.estimate), row.recall.low)

    return sorted(certified.classes, key=sort_key)


def _render_bar(interval: Interval) -> str:
    """Return the interval's HTML on a line from 0 to 100%."""
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
