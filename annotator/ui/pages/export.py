"""Export: choose what to write and how, see what it will hold, write it, and compare it with earlier ones."""

import streamlit as st

from annotator.ui.access import context
from annotator.ui.export import card, choosing, ordering, outlook, tags, taking_home
from annotator.ui.parts import empty, frame


def page() -> None:
    """Draw the Export page."""
    with frame.errors_shown():
        by = frame.annotator_name()
        _export(by)


def _export(by: str) -> None:
    db = context.db()
    if empty.shown(db):
        return
    left, right = st.columns([5, 7], gap="large")
    with left:
        chosen = choosing.choose(db)
        with st.expander("License and how to cite"):
            chosen.choices = card.edit_terms(db, chosen.choices)
    with right:
        st.subheader("What it will hold")
        summary = None
        if not chosen.problems:
            work = outlook.count(db, chosen.choices)
            summary = outlook.summary_of(work)
            outlook.wait_for(work, "Counting")
            if work.error:
                frame.error(work.error)
            if summary:
                outlook.counts(db, work, summary)
                if summary.fill:
                    outlook.fill(summary.fill)
        st.subheader("Export")
        ordering.section(db, chosen, summary, by)
    if summary:
        outlook.splits(summary)
        outlook.preview(summary, chosen.choices)
    tags.section(db)
    taking_home.section(db)
    st.subheader("Data card")
    st.caption("What the labels are and how complete and correct they are. Every export has it.")
    if not chosen.problems:
        card.show(db, chosen.choices, [f"{card.STEM}{chosen.format.ending}"])
