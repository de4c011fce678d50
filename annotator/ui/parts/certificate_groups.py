"""The card of the Certificate page that shows recall and precision by a fact: by place, camera, hour and so on."""

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.quality.certificate_groups import ByFact, Group, certificate_by, stamp
from annotator.quality.evidence import IF_RIGHT, count_in_words, share_in_words
from annotator.shares import counted
from annotator.snapshot import gallery
from annotator.store.database.database import Database
from annotator.ui.charts import certificate as charts
from annotator.ui.charts import theme
from annotator.ui.parts import frame, tables

LOWEST, NAME = "Lowest first", "By name"
KEPT = 8  # facts whose figures are kept


def card(db: Database, target: float) -> None:
    """Draw the card; called for people who may see the certificate."""
    offered = dict(gallery.offered_facts(db))
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
                "Order", (LOWEST, NAME), default=LOWEST, required=True, key="certificate_order", disabled=name is None
            )
        if name is None:
            st.caption("Are labels as complete at every place, by every camera, at night as by day?")
            return
        try:
            with st.spinner("Computing..."):
                found = db.caches.get("certificate by", (*stamp(db), name), lambda: certificate_by(db, name), KEPT)
        except AnnotatorError as problem:
            st.info(frame.escaped(str(problem)))
            return
        _groups(found, order, target)


def _groups(found: ByFact, order: str, target: float) -> None:
    for sentence in found.in_words():
        st.caption(frame.escaped(sentence))
    groups = found.groups if order == LOWEST else sorted(found.groups, key=lambda group: group.place)
    if found.measured:
        _chart(found, [group for group in groups if group.is_measured], target)
    tables.show([_line(found, group) for group in groups], "The certificate by a fact, group by group")


def _chart(found: ByFact, groups: list[Group], target: float) -> None:
    table = pd.DataFrame(
        [
            {"class": group.name, "kind": kind} | value.as_json()
            for group in groups
            for kind, value in ((charts.KINDS[0], group.recall), (charts.KINDS[2], group.precision))
        ]
    ).astype(dict.fromkeys(("estimate", "low", "high"), float))
    colours = theme.palette(st.context.theme.type)
    chart = charts.certified(table, target, colours, title=found.label)
    with st.container(height=640 if len(groups) > charts.IN_SIGHT else "content", border=False):
        st.altair_chart(
            theme.legible(chart, colours),
            key="chart_by_fact",
            alt=f"Recall and precision of {counted(len(groups), 'group')} with 95 % intervals, as in the table below",
        )


def _line(found: ByFact, group: Group) -> dict[str, str]:
    accepted = f" ({group.accepted:,} auto-accepted)" if group.accepted else ""
    return {
        found.label: group.name,
        "images": f"{group.images:,}",
        "audited": f"{group.audited_images:,}",
        "labeled": f"{group.people + group.accepted:,}{accepted}",
        f"recall {IF_RIGHT}": share_in_words(group.recall),
        "precision": share_in_words(group.precision),
        "missing": count_in_words(group.missing),
    }
