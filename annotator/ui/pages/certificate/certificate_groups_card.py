"""The Certificate page card of recall and precision by field."""

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.quality.certificate_groups import CertifiedGroup, FactCertificate, compute_certificate_by, get_change_key
from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, describe_count, describe_share
from annotator.snapshot import gallery_listing
from annotator.store.database.database import Database
from annotator.ui.pages.certificate import certificate_charts
from annotator.ui.shared import chart_theme, html_tables
from annotator.ui.shared.markdown_text import escape_markdown

LOWEST_FIRST, BY_NAME = "Lowest first", "By name"
MAX_KEPT_FIELDS = 8  # facts whose figures are kept


def draw(db: Database, target: float) -> None:
    """Draw the card of recall and precision per value of a chosen metadata field."""
    offered = dict(gallery_listing.list_offered_facts(db))
    if not offered:
        return
    with st.container(border=True):
        st.markdown("#### By a fact of the images")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox(
                "Fact",
                list(offered),
                index=None,
                format_func=lambda one: offered[one],
                placeholder="Place, camera, hour...",
                key="certificate_fact",
                width=320,
            )
            order = st.segmented_control(
                "Order",
                (LOWEST_FIRST, BY_NAME),
                default=LOWEST_FIRST,
                required=True,
                key="certificate_order",
                disabled=name is None,
            )
        if name is None:
            st.caption("Are labels as complete at every place, by every camera, at night as by day?")
            return
        try:
            with st.spinner("Computing..."):
                found = db.caches.get(
                    "certificate by",
                    (*get_change_key(db), name),
                    lambda: compute_certificate_by(db, name),
                    MAX_KEPT_FIELDS,
                )
        except AnnotatorError as problem:
            st.info(escape_markdown(str(problem)))
            return
        _draw_groups(found, order, target)


def _draw_groups(found: FactCertificate, order: str, target: float) -> None:
    for sentence in found.format_sentences():
        st.caption(escape_markdown(sentence))
    groups = found.groups if order == LOWEST_FIRST else sorted(found.groups, key=lambda group: group.place)
    if found.measured_groups:
        _draw_chart(found, [group for group in groups if group.is_measured], target)
    html_tables.show([_build_row(found, group) for group in groups], "The certificate by a fact, group by group")


def _draw_chart(found: FactCertificate, groups: list[CertifiedGroup], target: float) -> None:
    table = pd.DataFrame(
        [
            {"class": group.name, "kind": kind} | value.as_json()
            for group in groups
            for kind, value in (
                (certificate_charts.INTERVAL_KINDS[0], group.recall),
                (certificate_charts.INTERVAL_KINDS[1], group.recall_allowing),
                (certificate_charts.INTERVAL_KINDS[2], group.precision),
            )
        ]
    ).astype(dict.fromkeys(("estimate", "low", "high"), float))
    colors = chart_theme.get_palette(st.context.theme.type)
    chart = certificate_charts.build_interval_chart(table, target, colors, title=found.label)
    with st.container(height=640 if len(groups) > certificate_charts.MAX_ROWS_IN_VIEW else "content", border=False):
        st.altair_chart(
            chart_theme.apply_text_colors(chart, colors),
            key="chart_by_fact",
            alt=f"Recall and precision of {format_count(len(groups), 'group')} with 95 % intervals, as in the table "
            "below",
        )


def _build_row(found: FactCertificate, group: CertifiedGroup) -> dict[str, str]:
    accepted = f" ({group.accepted:,} auto-accepted)" if group.accepted else ""
    return {
        found.label: group.name,
        "images": f"{group.images:,}",
        "audited": f"{group.audited_images:,}",
        "labeled": f"{group.people + group.accepted:,}{accepted}",
        f"recall {IF_ANSWERS_ARE_RIGHT}": describe_share(group.recall),
        f"recall {found.allowance}": describe_share(group.recall_allowing),
        "precision": describe_share(group.precision),
        "missing": describe_count(group.missing),
    }
