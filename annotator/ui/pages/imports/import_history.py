"""The history of imports and of predictions, each removable."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.imports.import_messages import describe_undo, describe_undone_import
from annotator.exchange.predictions.known_sources import KnownSource, load_known_sources
from annotator.humanize import format_count, format_percent
from annotator.store.database.database import Database
from annotator.store.imports import past_imports
from annotator.store.imports.past_imports import Import
from annotator.store.runs import prediction_sources
from annotator.ui.shared import html_tables
from annotator.ui.shared.local_time import format_moment, get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_errors

MAX_IMPORTS_SHOWN = 20  # imports that are shown
COUNT_NOUNS = {
    "images": ("new image", ""),
    "classes": ("new class", "new classes"),
    "answers": ("answer", ""),
    "completed": ("completed image", ""),
    "attributes": ("fact about an image", "facts about images"),
    "remarks": ("flag or comment", "flags and comments"),
}


def draw_predictions(db: Database) -> None:
    known = load_known_sources(db)
    if not known:
        return
    st.subheader("Predictions of other models")
    html_tables.show([_build_row(one) for one in known], "Predictions of other models")
    if st.session_state.get("source_gone") not in [one.source.name for one in known]:
        st.session_state.pop("source_gone", None)
    chosen = st.selectbox(
        "Remove predictions", [one.source.name for one in known], index=None, placeholder="Choose", key="source_gone"
    )
    if chosen is None:
        return
    st.caption("Its scores are deleted. The next training does without them.")
    if st.button(f"Remove {escape_markdown(chosen)}", key="source_remove"):
        with show_errors():
            prediction_sources.remove_source(db, chosen)
            st.toast(escape_markdown(f"Removed the predictions {chosen}."))
            st.rerun()


def _build_row(known: KnownSource) -> dict[str, str]:
    source = known.source
    return {
        "Model": source.name,
        "Images": f"{source.images:,} ({format_percent(known.covered)})",
        "Classes": f"{len(source.class_ids):,}",
        "Numbers": source.scale,
        "Added": format_moment(source.added_at, get_time_zone()),
        "By": source.annotator,
        "Believed": known.describe_weights(),
    }


def draw_imports(db: Database, by: str) -> None:
    st.subheader("History")
    if undone := st.session_state.pop("import_undone", None):
        st.success(escape_markdown("\n".join(undone)))
    known = past_imports.load_imports(db)
    if not known:
        st.caption("Nothing imported yet.")
        return
    for one in known[:MAX_IMPORTS_SHOWN]:
        text, button = st.columns([6, 1], vertical_alignment="center")
        text.markdown(escape_markdown(_describe_import(one)))
        if one.undone_at is None and button.button(f"Undo {one.id:d}", key=f"import_undo_{one.id}"):
            st.session_state["import_undoing"] = one.id
        if st.session_state.get("import_undoing") == one.id:
            _confirm_undo(db, by, one)
    if len(known) > MAX_IMPORTS_SHOWN:
        st.caption(f"{len(known) - MAX_IMPORTS_SHOWN:,} older ones: annotator imports PROJECT")


def _describe_import(one: Import) -> str:
    brought = [format_count(count, *words) for key, words in COUNT_NOUNS.items() if (count := one.counts.get(key, 0))]
    zone = get_time_zone()
    undone = f" Undone by {one.undone_by}, {format_moment(one.undone_at, zone)}." if one.undone_at else ""
    what = ", ".join(brought) or "nothing new"
    when = format_moment(one.imported_at, zone)
    return f"{one.id} · {when} · {one.annotator}: {one.source} ({one.format}): {what}.{undone}"


def _confirm_undo(db: Database, by: str, one: Import) -> None:
    with st.container(border=True):
        try:
            with st.spinner("Counting what would be undone..."):
                would = past_imports.preview_undo(db, one.id)
        except AnnotatorError as error:
            show_error(error)
            st.session_state.pop("import_undoing", None)
            return
        st.markdown(f"**{escape_markdown(f'Undo import {one.id}?')}**")
        for sentence in describe_undo(would):
            st.markdown(f"* {escape_markdown(sentence)}")
        st.caption("Answers given since are kept. Importing it again brings it back.")
        with st.container(horizontal=True):
            if st.button(f"Undo import {one.id:d}", type="primary", key="import_undo_sure"):
                with show_errors(), st.spinner("Undoing..."):
                    st.session_state["import_undone"] = describe_undone_import(past_imports.undo(db, one.id, by))
                    st.session_state.pop("import_undoing", None)
                    st.rerun()
            if st.button("Keep it", key="import_undo_no"):
                st.session_state.pop("import_undoing", None)
                st.rerun()
