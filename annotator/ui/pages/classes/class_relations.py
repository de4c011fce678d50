"""Class relations on the Classes page: preview, declare, remove, undo."""

from collections.abc import Callable

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.quality import suggested_relations
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import implied_cells
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declaration
from annotator.ui.pages.classes import class_editor
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error

KIND_TITLES = {IS_A: "is a kind of", AT_MOST_ONE: "at most one of", EXACTLY_ONE: "exactly one of"}
MAX_CONTRADICTIONS_SHOWN = 10  # contradictions
MAX_SUGGESTIONS_SHOWN = 12  # suggestions
PREVIEW_KEY = "relations_looked"  # what was looked at, and what would follow, in the session state
DROPPED_KEY = "relations_dropped"  # a class was dragged onto another


def draw(db: Database, by: str, draw_tree: Callable[[Callable[[int, int], None]], None]) -> None:
    """Draw the relations section. `draw_tree` draws the class tree and calls its argument on a drop."""
    st.subheader("Relations")
    st.caption(
        "One answer can imply others: a spaniel is a kind of dog; of day and night exactly one is present. "
        "What is implied is nobody's answer and is taken back with the answer."
    )
    names = classes.load_class_names(db)
    st.caption(
        "Drag a class onto what it is a kind of, or choose both below. Nothing is declared before you press Declare."
    )
    draw_tree(_propose_relation)
    _draw_declaration(db, by)
    _draw_suggestions(db, names, by)
    held = declared_relations.load_relations(db).made
    if not held:
        return
    for relation in held:
        text, button = st.columns([6, 1], vertical_alignment="center")
        words = declared_relations.describe_relation(relation.declared, names)
        text.markdown(escape_markdown(words))
        if button.button("Remove", key=f"relation_{relation.id}", help=f"Remove: {escape_markdown(words)}"):
            class_editor.apply_change(
                lambda id_=relation.id: declared_relations.remove(db, id_, by), f"Removed: {words}."
            )
    counts = implied_cells.count_by_state(db)
    st.markdown(f"Implied by answers: {counts['present']:,} present, {counts['absent']:,} absent.")
    against = declared_relations.find_contradictions(db, MAX_CONTRADICTIONS_SHOWN + 1)
    if against:
        told = (
            f"more than {MAX_CONTRADICTIONS_SHOWN} answers"
            if len(against) > MAX_CONTRADICTIONS_SHOWN
            else format_count(len(against), "answer")
        )
        with st.expander(f"Contradictions: {told}"):
            for image, class_, other, relation in against[:MAX_CONTRADICTIONS_SHOWN]:
                st.markdown(
                    escape_markdown(f"{image}: the answer to {class_} contradicts the one to {other} ({relation}).")
                )
    if st.button("Undo the newest change of relations", key="relations_undo"):
        class_editor.apply_change(lambda: declared_relations.undo(db, by), "Undid the newest change of relations.")


def _propose_relation(child: int, parent: int) -> None:
    """Fill the form from a class that was dragged onto its parent."""
    st.session_state.update(
        {"relation_kind": IS_A, "relation_child": child, "relation_parent": parent, DROPPED_KEY: True}
    )


def _draw_suggestions(db: Database, names: dict[int, str], by: str) -> None:
    """Draw suggested relations on request, because all answers are read."""
    if not st.toggle("Suggest relations from the answers", key="relations_suggest"):
        return
    found = suggested_relations.suggest_relations(db)
    if not found:
        st.caption("None yet: enough images with unbiased answers must speak for a relation, and none against it.")
    for number, one in enumerate(found[:MAX_SUGGESTIONS_SHOWN]):
        text, button = st.columns([6, 1], vertical_alignment="center")
        text.markdown(escape_markdown(suggested_relations.describe_suggestion(one, names)))
        words = declared_relations.describe_relation(one.declared, names)
        if button.button("Declare", key=f"suggested_{number}", help=f"Declare: {escape_markdown(words)}"):
            class_editor.apply_change(
                lambda declared=one.declared: declared_relations.declare(db, [declared], by), f"Declared: {words}."
            )


def _draw_declaration(db: Database, by: str) -> None:
    known = classes.load_ordered_classes(db)
    labels = {class_.id: class_.name for class_ in known}
    kind = st.segmented_control(
        "Kind", list(KIND_TITLES), format_func=KIND_TITLES.__getitem__, default=IS_A, required=True, key="relation_kind"
    )
    if kind == IS_A:
        left, right = st.columns(2)
        shown = labels.__getitem__
        child = left.selectbox("Each", list(labels), index=None, format_func=shown, key="relation_child")
        parent = right.selectbox("is a kind of", list(labels), index=None, format_func=shown, key="relation_parent")
        wanted = None if child is None or parent is None else Declaration(IS_A, (child, parent))
    else:
        left, right = st.columns([1, 2])
        name = left.text_input("Name of the group", key="relation_name", placeholder="time of day", max_chars=100)
        chosen = right.multiselect("Classes", list(labels), format_func=labels.__getitem__, key="relation_classes")
        is_whole = len(chosen) > 1 and name.strip()
        wanted = Declaration(kind or AT_MOST_ONE, tuple(chosen), name.strip()) if is_whole else None
    with st.container(horizontal=True):
        pressed = st.button("Show what follows", disabled=wanted is None, key="relation_look")
        if st.session_state.pop(DROPPED_KEY, False) or pressed:
            try:
                st.session_state[PREVIEW_KEY] = (
                    wanted,
                    declared_relations.preview_declaration(db, [wanted] if wanted else []),
                )
            except AnnotatorError as error:
                show_error(error)
        looked, effect = st.session_state.get(PREVIEW_KEY, (None, None))
        if wanted is not None and looked == wanted and effect is not None:
            st.markdown(escape_markdown(declared_relations.describe_effect(effect, "would be")), width="content")
        declare = st.button("Declare", type="primary", disabled=wanted is None, key="relation_declare")
    if declare and wanted is not None:
        words = declared_relations.describe_relation(wanted, labels)
        class_editor.apply_change(lambda: declared_relations.declare(db, [wanted], by), f"Declared: {words}.")
