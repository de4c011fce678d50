"""The part of the Settings page about guesses from the names of classes: on or off, texts of classes, templates."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.predictions.in_words import known_sources
from annotator.records import Class
from annotator.store.classes import classes, name_texts
from annotator.store.database.database import Database
from annotator.store.runs.prediction_sources import NAMES
from annotator.ui.parts import drafts, frame
from models.zero_shot.prompts import prompts

SEPARATOR = "|"  # in no name of a class
ROW, MOST_HEIGHT = 35, 700  # pixels


def section(db: Database) -> None:
    """Draw this part of the page."""
    st.subheader("Class names")
    st.caption("Suggestions before the first training, guessed from the names alone. Your answers soon count more.")
    follows = frame.follows("names_on", name_texts.is_on(db), lambda on: name_texts.set_enabled(db, on))
    wanted = st.toggle("Guess classes from their names", **follows)
    st.caption(frame.escaped(name_texts.state_in_words(db)))
    if message := st.session_state.pop("names_told", ""):
        st.success(frame.escaped(message))
    known = classes.in_order(db)
    if not known or not wanted or not name_texts.network(db):
        return
    _texts(db, known)
    _templates(db)
    _read(db, known)


def edits(
    shown: Sequence[Class], before: Mapping[int, str], table: Sequence[Mapping[str, Any]]
) -> dict[int, list[str]]:
    """Return the edited texts of the table: class id -> its texts; an emptied field stands for the usual texts."""
    changed: dict[int, list[str]] = {}
    for class_, row in zip(shown, table, strict=True):
        text: str = row["texts"] or ""
        if text.strip() != before[class_.id]:
            changed[class_.id] = text.split(SEPARATOR)
    return changed


def _texts(db: Database, known: Sequence[Class]) -> None:
    chosen = name_texts.texts(db)
    shown = {one.id: f" {SEPARATOR} ".join(chosen.get(one.id) or name_texts.usual_texts(one)) for one in known}
    weights = next((dict(one.weights) for one in known_sources(db) if one.source.name == NAMES), {})
    st.caption(
        f"What is to be seen, in a few words, separated by {SEPARATOR}. Empty: the class's name, synonyms and note."
    )
    rows = [
        {"class": one.name, "texts": shown[one.id]}
        | ({"weight": f"{weights[one.name]:+.2f}" if one.name in weights else ""} if weights else {})
        for one in known
    ]
    edited = drafts.edited(
        "names",
        {one.id: row for one, row in zip(known, rows, strict=True)},
        disabled=["class", "weight"],
        height=min(ROW * (len(rows) + 1) + 3, MOST_HEIGHT),
        column_config={
            "class": st.column_config.TextColumn("Class"),
            "texts": st.column_config.TextColumn("Texts", width="large"),
            "weight": st.column_config.TextColumn("Weight learned", width="small"),
        },
    )
    changes = edits(known, shown, list(edited.values()))
    if st.button("Save texts", disabled=not changes, key="names_save"):
        try:
            name_texts.choose_texts(db, changes)
        except AnnotatorError as error:
            frame.error(error)
        else:
            _tell("Saved. The worker guesses anew.")


def _templates(db: Database) -> None:
    with st.expander("Templates"), st.form("names_templates_form", border=False):
        text = st.text_area(
            "One a line; {} stands for a text of a class. Empty: the usual ones.",
            "\n".join(name_texts.templates(db)),
            height=200,
            key=f"names_templates_{st.session_state.setdefault('names_opened', 0)}",
        )
        if st.form_submit_button("Save templates"):
            try:
                name_texts.choose_templates(db, text.split("\n"))
            except AnnotatorError as error:
                frame.error(error)
            else:
                _tell("Saved. The worker guesses anew.")


def _read(db: Database, known: Sequence[Class]) -> None:
    with st.expander("What the network reads"):
        names = {one.id: one.name for one in known}
        key = frame.chosen("names_class", names, next(iter(names)))
        class_id = st.selectbox("Class", list(names), format_func=names.__getitem__, key=key)
        [class_] = [one for one in known if one.id == class_id]
        texts = name_texts.texts(db).get(class_id) or name_texts.usual_texts(class_)
        st.code("\n".join(prompts(texts, name_texts.templates(db))), language=None)


def _tell(message: str) -> None:
    st.session_state["names_told"] = message
    drafts.forget("names")
    st.rerun()
