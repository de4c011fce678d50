"""Relations of classes on the Classes page: declared after a look at what follows, listed, removed, undone."""

from collections.abc import Callable

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.quality import suggested_relations
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import implied
from annotator.store.relations import relations as store
from annotator.store.relations.edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declared
from annotator.ui.parts import frame, one_class

KINDS = {IS_A: "is a kind of", AT_MOST_ONE: "at most one of", EXACTLY_ONE: "exactly one of"}
SHOWN = 10  # contradictions
SUGGESTED = 12  # suggestions
LOOKED = "relations_looked"  # what was looked at, and what would follow, in the session state
DROPPED = "relations_dropped"  # a class was dragged onto another


def class_relations(db: Database, by: str, draw_tree: Callable[[Callable[[int, int], None]], None]) -> None:
    """Draw the section about relations.

    Args:
        db: The project's database.
        by: The person who declares.
        draw_tree: Draws the classes, and calls what it is given with a class and the one onto which it was dragged.
    """
    st.subheader("Relations")
    st.caption(
        "One answer can imply others: a spaniel is a kind of dog; of day and night exactly one is present. "
        "What is implied is nobody's answer and is taken back with the answer."
    )
    names = classes.names(db)
    st.caption(
        "Drag a class onto what it is a kind of, or choose both below. Nothing is declared before you press Declare."
    )
    draw_tree(_propose)
    _declare(db, by)
    _suggested(db, names, by)
    held = store.relations(db).made
    if not held:
        return
    for relation in held:
        text, button = st.columns([6, 1], vertical_alignment="center")
        words = store.in_words(relation.declared, names)
        text.markdown(frame.escaped(words))
        if button.button("Remove", key=f"relation_{relation.id}", help=f"Remove: {frame.escaped(words)}"):
            one_class.act(lambda id_=relation.id: store.remove(db, id_, by), f"Removed: {words}.")
    counts = implied.counts(db)
    st.markdown(f"Implied by answers: {counts['present']:,} present, {counts['absent']:,} absent.")
    against = store.contradictions(db, SHOWN + 1)
    if against:
        told = f"more than {SHOWN} answers" if len(against) > SHOWN else counted(len(against), "answer")
        with st.expander(f"Contradictions: {told}"):
            for image, class_, other, relation in against[:SHOWN]:
                st.markdown(
                    frame.escaped(f"{image}: the answer to {class_} contradicts the one to {other} ({relation}).")
                )
    if st.button("Undo the newest change of relations", key="relations_undo"):
        one_class.act(lambda: store.undo(db, by), "Undid the newest change of relations.")


def _propose(child: int, parent: int) -> None:
    """Choose a class that was dragged, and the one onto which it was; what follows is shown."""
    st.session_state.update({"relation_kind": IS_A, "relation_child": child, "relation_parent": parent, DROPPED: True})


def _suggested(db: Database, names: dict[int, str], by: str) -> None:
    """Offer the relations that answers suggest, once somebody asks for them: all answers are read."""
    if not st.toggle("Suggest relations from the answers", key="relations_suggest"):
        return
    found = suggested_relations.suggested(db)
    if not found:
        st.caption("None yet: enough images with unbiased answers must speak for a relation, and none against it.")
    for number, one in enumerate(found[:SUGGESTED]):
        text, button = st.columns([6, 1], vertical_alignment="center")
        text.markdown(frame.escaped(suggested_relations.in_words(one, names)))
        words = store.in_words(one.declared, names)
        if button.button("Declare", key=f"suggested_{number}", help=f"Declare: {frame.escaped(words)}"):
            one_class.act(lambda declared=one.declared: store.declare(db, [declared], by), f"Declared: {words}.")


def _declare(db: Database, by: str) -> None:
    known = classes.in_order(db)
    labels = {class_.id: class_.name for class_ in known}
    kind = st.segmented_control(
        "Kind", list(KINDS), format_func=KINDS.__getitem__, default=IS_A, required=True, key="relation_kind"
    )
    if kind == IS_A:
        left, right = st.columns(2)
        shown = labels.__getitem__
        child = left.selectbox("Each", list(labels), index=None, format_func=shown, key="relation_child")
        parent = right.selectbox("is a kind of", list(labels), index=None, format_func=shown, key="relation_parent")
        wanted = None if child is None or parent is None else Declared(IS_A, (child, parent))
    else:
        left, right = st.columns([1, 2])
        name = left.text_input("Name of the group", key="relation_name", placeholder="time of day", max_chars=100)
        chosen = right.multiselect("Classes", list(labels), format_func=labels.__getitem__, key="relation_classes")
        is_whole = len(chosen) > 1 and name.strip()
        wanted = Declared(kind or AT_MOST_ONE, tuple(chosen), name.strip()) if is_whole else None
    with st.container(horizontal=True):
        pressed = st.button("Show what follows", disabled=wanted is None, key="relation_look")
        if st.session_state.pop(DROPPED, False) or pressed:
            try:
                st.session_state[LOOKED] = wanted, store.preview(db, [wanted] if wanted else [])
            except AnnotatorError as error:
                frame.error(error)
        looked, effect = st.session_state.get(LOOKED, (None, None))
        if wanted is not None and looked == wanted and effect is not None:
            st.markdown(frame.escaped(store.effect_in_words(effect, "would be")), width="content")
        declare = st.button("Declare", type="primary", disabled=wanted is None, key="relation_declare")
    if declare and wanted is not None:
        words = store.in_words(wanted, labels)
        one_class.act(lambda: store.declare(db, [wanted], by), f"Declared: {words}.")
