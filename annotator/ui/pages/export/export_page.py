"""The Export page: choose, preview, write and compare exports."""

import streamlit as st

from annotator.ui.access import served_project
from annotator.ui.pages.export import (
    choices_section,
    classifier_section,
    croissant_section,
    preview_section,
    start_section,
    tags_section,
)
from annotator.ui.shared import computation_progress, data_card_section, empty_notice
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.message_boxes import show_error, show_errors


def page() -> None:
    with show_errors():
        by = require_annotator_name()
        _draw_export(by)


def _draw_export(by: str) -> None:
    db = served_project.db()
    if empty_notice.draw_if_empty(db):
        return
    left, right = st.columns([5, 7], gap="large")
    with left:
        chosen = choices_section.draw_choices(db)
        with st.expander("License and how to cite"):
            chosen.choices = data_card_section.edit_terms(db, chosen.choices)
        if chosen.choices.croissant:
            croissant_section.edit_facts(db, chosen.choices)
    with right:
        st.subheader("What it will hold")
        summary = None
        if not chosen.problems:
            work = preview_section.request_summary(db, chosen.choices)
            summary = preview_section.get_newest_summary(work)
            computation_progress.draw_progress(work, "Counting")
            if work.error:
                show_error(work.error)
            if summary:
                preview_section.draw_counts(db, work, summary)
                if summary.fill:
                    preview_section.draw_fill(summary.fill)
        st.subheader("Export")
        start_section.draw(db, chosen, summary, by)
    if summary:
        preview_section.draw_splits(summary)
        preview_section.draw_rows(summary, chosen.choices)
    tags_section.draw(db)
    classifier_section.draw(db)
    st.subheader("Data card")
    st.caption("What the labels are and how complete and correct they are. Every export has it.")
    if not chosen.problems:
        data_card_section.draw_card(db, chosen.choices, [f"{data_card_section.DOWNLOAD_STEM}{chosen.format.ending}"])
