"""The Settings section of suggestions from class names: switch, texts and templates."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.predictions.known_sources import load_known_sources
from annotator.records import Class
from annotator.store.classes import classes, name_texts
from annotator.store.database.database import Database
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE
from annotator.ui.shared import drafts, widget_values
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error
from spmll.zero_shot.prompts import build_prompts

SEPARATOR = "|"  # in no name of a class
ROW_PIXELS, MAX_TABLE_PIXELS = 35, 700  # pixels


def draw(db: Database) -> None:
    """Draw the Settings section of suggestions from class names."""
    st.subheader("Class names")
    st.caption("Suggestions before the first training, guessed from the names alone. Your answers soon count more.")
    follows = widget_values.bind_setting("names_on", name_texts.is_on(db), lambda on: name_texts.set_enabled(db, on))
    wanted = st.toggle("Guess classes from their names", **follows)
    st.caption(escape_markdown(name_texts.describe_state(db)))
    if message := st.session_state.pop("names_told", ""):
        st.success(escape_markdown(message))
    known = classes.load_ordered_classes(db)
    if not known or not wanted or not name_texts.get_text_network(db):
        return
    _draw_texts(db, known)
    _draw_templates(db)
    _draw_prompts(db, known)


def find_edits(
    shown: Sequence[Class], before: Mapping[int, str], table: Sequence[Mapping[str, Any]]
) -> dict[int, list[str]]:
    """Return class id -> prompt texts of the edited classes. Empty texts restore the defaults."""
    changed: dict[int, list[str]] = {}
    for class_, row in zip(shown, table, strict=True):
        text: str = row["texts"] or ""
        if text.strip() != before[class_.id]:
            changed[class_.id] = text.split(SEPARATOR)
    return changed


def _draw_texts(db: Database, known: Sequence[Class]) -> None:
    chosen = name_texts.load_texts(db)
    shown = {one.id: f" {SEPARATOR} ".join(chosen.get(one.id) or name_texts.get_default_texts(one)) for one in known}
    weights = next((dict(one.weights) for one in load_known_sources(db) if one.source.name == CLASS_NAMES_SOURCE), {})
    st.caption(
        f"What is to be seen, in a few words, separated by {SEPARATOR}. Empty: the class's name, synonyms and note."
    )
    rows = [
        {"class": one.name, "texts": shown[one.id]}
        | ({"weight": f"{weights[one.name]:+.2f}" if one.name in weights else ""} if weights else {})
        for one in known
    ]
    edited = drafts.draw_editor(
        "names",
        {one.id: row for one, row in zip(known, rows, strict=True)},
        disabled=["class", "weight"],
        height=min(ROW_PIXELS * (len(rows) + 1) + 3, MAX_TABLE_PIXELS),
        column_config={
            "class": st.column_config.TextColumn("Class"),
            "texts": st.column_config.TextColumn("Texts", width="large"),
            "weight": st.column_config.TextColumn("Weight learned", width="small"),
        },
    )
    changes = find_edits(known, shown, list(edited.values()))
    if st.button("Save texts", disabled=not changes, key="names_save"):
        try:
            name_texts.set_texts(db, changes)
        except AnnotatorError as error:
            show_error(error)
        else:
            _show_message("Saved. The worker guesses anew.")


def _draw_templates(db: Database) -> None:
    with st.expander("Templates"), st.form("names_templates_form", border=False):
        text = st.text_area(
            "One a line; {} stands for a text of a class. Empty: the usual ones.",
            "\n".join(name_texts.load_templates(db)),
            height=200,
            key=f"names_templates_{st.session_state.setdefault('names_opened', 0)}",
        )
        if st.form_submit_button("Save templates"):
            try:
                name_texts.set_templates(db, text.split("\n"))
            except AnnotatorError as error:
                show_error(error)
            else:
                _show_message("Saved. The worker guesses anew.")


def _draw_prompts(db: Database, known: Sequence[Class]) -> None:
    with st.expander("What the network reads"):
        names = {one.id: one.name for one in known}
        key = widget_values.restore_widget("names_class", next(iter(names)), labels=names)
        class_id = st.selectbox("Class", list(names), format_func=names.__getitem__, key=key)
        [class_] = [one for one in known if one.id == class_id]
        texts = name_texts.load_texts(db).get(class_id) or name_texts.get_default_texts(class_)
        st.code("\n".join(build_prompts(texts, name_texts.load_templates(db))), language=None)


def _show_message(message: str) -> None:
    st.session_state["names_told"] = message
    drafts.discard("names")
    st.rerun()
