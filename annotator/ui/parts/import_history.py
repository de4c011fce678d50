"""The history of imports: the predictions of other models and what became of each, and the imports, each undoable."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.imports.in_words import undo_in_words, undone_in_words
from annotator.exchange.predictions.in_words import KnownSource, known_sources
from annotator.shares import counted, percent
from annotator.store.database.database import Database
from annotator.store.imports import imports as store
from annotator.store.imports.imports import Import
from annotator.store.runs import prediction_sources
from annotator.ui.parts import frame, note_list, tables

NEWEST = 20  # imports that are shown
BROUGHT = {
    "images": ("new image", ""),
    "classes": ("new class", "new classes"),
    "answers": ("answer", ""),
    "completed": ("completed image", ""),
    "attributes": ("fact about an image", "facts about images"),
    "remarks": ("flag or comment", "flags and comments"),
}


def predictions(db: Database) -> None:
    """Draw the sources of predictions, and a way to remove one."""
    known = known_sources(db)
    if not known:
        return
    st.subheader("Predictions of other models")
    tables.show([_row(one) for one in known], "Predictions of other models")
    if st.session_state.get("source_gone") not in [one.source.name for one in known]:
        st.session_state.pop("source_gone", None)
    chosen = st.selectbox(
        "Remove predictions", [one.source.name for one in known], index=None, placeholder="Choose", key="source_gone"
    )
    if chosen is None:
        return
    st.caption("Its scores are deleted. The next training does without them.")
    if st.button(f"Remove {frame.escaped(chosen)}", key="source_remove"):
        with frame.errors_shown():
            prediction_sources.remove(db, chosen)
            st.toast(frame.escaped(f"Removed the predictions {chosen}."))
            st.rerun()


def _row(known: KnownSource) -> dict[str, str]:
    source = known.source
    return {
        "Model": source.name,
        "Images": f"{source.images:,} ({percent(known.covered)})",
        "Classes": f"{len(source.class_ids):,}",
        "Numbers": source.scale,
        "Added": note_list.moment_in_words(source.added_at, frame.zone()),
        "By": source.annotator,
        "Believed": known.weights_in_words(),
    }


def imports(db: Database, by: str) -> None:
    """Draw the newest imports, with a button that undoes each."""
    st.subheader("History")
    if undone := st.session_state.pop("import_undone", None):
        st.success(frame.escaped("\n".join(undone)))
    known = store.imports(db)
    if not known:
        st.caption("Nothing imported yet.")
        return
    for one in known[:NEWEST]:
        text, button = st.columns([6, 1], vertical_alignment="center")
        text.markdown(frame.escaped(_in_words(one)))
        if one.undone_at is None and button.button(f"Undo {one.id:d}", key=f"import_undo_{one.id}"):
            st.session_state["import_undoing"] = one.id
        if st.session_state.get("import_undoing") == one.id:
            _ask(db, by, one)
    if len(known) > NEWEST:
        st.caption(f"{len(known) - NEWEST:,} older ones: annotator imports PROJECT")


def _in_words(one: Import) -> str:
    brought = [counted(count, *words) for key, words in BROUGHT.items() if (count := one.counts.get(key, 0))]
    zone = frame.zone()
    undone = f" Undone by {one.undone_by}, {note_list.moment_in_words(one.undone_at, zone)}." if one.undone_at else ""
    what = ", ".join(brought) or "nothing new"
    when = note_list.moment_in_words(one.imported_at, zone)
    return f"{one.id} · {when} · {one.annotator}: {one.source} ({one.format}): {what}.{undone}"


def _ask(db: Database, by: str, one: Import) -> None:
    """Show what an undo of this import would take back, and ask before it does."""
    with st.container(border=True):
        try:
            with st.spinner("Counting what would be undone..."):
                would = store.preview_undo(db, one.id)
        except AnnotatorError as error:
            frame.error(error)
            st.session_state.pop("import_undoing", None)
            return
        st.markdown(f"**{frame.escaped(f'Undo import {one.id}?')}**")
        for sentence in undo_in_words(would):
            st.markdown(f"* {frame.escaped(sentence)}")
        st.caption("Answers given since are kept. Importing it again brings it back.")
        with st.container(horizontal=True):
            if st.button(f"Undo import {one.id:d}", type="primary", key="import_undo_sure"):
                with frame.errors_shown(), st.spinner("Undoing..."):
                    st.session_state["import_undone"] = undone_in_words(store.undo(db, one.id, by))
                    st.session_state.pop("import_undoing", None)
                    st.rerun()
            if st.button("Keep it", key="import_undo_no"):
                st.session_state.pop("import_undoing", None)
                st.rerun()
