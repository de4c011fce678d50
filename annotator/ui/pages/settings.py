"""Settings: the order of images, the training method with its parameters, the classes."""

from collections.abc import Sequence
from zlib import crc32

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.queues import query_order
from annotator.records import Class
from annotator.store import classes, configuration, jobs
from annotator.store.database import Database
from annotator.ui import context, frame
from annotator.ui.pages.class_form import HOW, class_form
from models import catalogue


def page() -> None:
    """The page."""
    with frame.errors_shown():
        _settings()


def _settings() -> None:
    db = context.db()
    st.subheader("Annotate")
    _order(db)

    st.subheader("Model")
    _method(db)
    if st.button("Train now"):
        jobs.ask_training(db)
        st.toast("Training requested.")
    st.caption(
        frame.escaped(
            f"Images are analyzed with {configuration.backbone(db)}. "
            f"Another network: annotator init {db.paths.project} --backbone NAME"
        )
    )

    st.caption("Auto-accept is on the Certificate page.")

    st.subheader("Classes")
    _classes(db)
    class_form("Add classes", HOW)


def save_classes(db: Database, edited: Sequence[Class]) -> list[str]:
    """Keep changed keys and descriptions; returns what to tell the person. Raises AnnotatorError, keeping nothing."""
    known = {class_.id: class_ for class_ in classes.all_classes(db)}
    keys = {class_.id: class_.key for class_ in edited if class_.key != known[class_.id].key}
    descriptions = {
        class_.id: class_.description for class_ in edited if class_.description != known[class_.id].description
    }
    owners = {key: known[class_id].name for class_id, key in keys.items()}
    lost = classes.set_keys(db, keys)
    classes.describe(db, descriptions)
    messages = [f"Key {key} moved from {known[class_id].name} to {owners[key]}." for class_id, key in lost.items()]
    return messages or (["Saved."] if keys or descriptions else ["Nothing was changed."])


def _classes(db: Database) -> None:
    known = classes.all_classes(db)
    if not known:
        return
    for text in st.session_state.pop("classes_told", []):
        frame.info(text)
    st.caption(
        "A key is one letter or digit that labels its class on the Annotate page. Double-click a field to edit it, or "
        "press Enter on it."
    )
    table = pd.DataFrame(
        {
            "key": [class_.key for class_ in known],
            "class": [class_.name for class_ in known],
            "description": [class_.description for class_ in known],
        }
    )
    with st.form("keys_form", border=False):
        edited = st.data_editor(
            table,
            hide_index=True,
            disabled=["class"],
            column_config={
                "key": st.column_config.TextColumn("Key", width="small", max_chars=1),
                "class": st.column_config.TextColumn("Class"),
                "description": st.column_config.TextColumn("Description", width="large"),
            },
            # Other classes, or keys that somebody else has changed since, are another table: what was typed into the
            # old one must not come to lie over it.
            key=f"classes_{crc32(repr(known).encode())}",
        )
        if not st.form_submit_button("Save"):
            return
    rows = zip(known, edited["key"], edited["description"], strict=True)
    changed = [Class(class_.id, class_.name, _text(description), _text(key)) for class_, key, description in rows]
    try:
        st.session_state["classes_told"] = save_classes(db, changed)
    except AnnotatorError as error:
        frame.error(error)
        return
    st.rerun()


def _text(value: str | None) -> str:
    """An emptied field of the table comes as None."""
    return (value or "").strip()


def _order(db: Database) -> None:
    current = query_order.chosen(db)
    chosen = st.selectbox(
        "Default order of images on the Annotate page",
        list(query_order.QUERY_ORDERS),
        index=list(query_order.QUERY_ORDERS).index(current) if current in query_order.QUERY_ORDERS else 0,
        format_func=lambda name: query_order.QUERY_ORDERS[name].title,
        key="order",
    )
    if chosen != current:
        query_order.choose(db, chosen)
        st.toast(f"Default order: {query_order.QUERY_ORDERS[chosen].title}.")
    order = query_order.QUERY_ORDERS[chosen]
    st.caption(f"{order.about} [{order.paper}]({order.url})" if order.url else order.about)


def _method(db: Database) -> None:
    current = configuration.method(db)
    # One that needs all labels of all images is for comparisons; a project where everything is known needs no model.
    known = {name: method for name, method in catalogue.methods().items() if name == current or not method.full_labels}
    names = list(known)
    chosen = st.selectbox(
        "Training method",
        names,
        index=names.index(current) if current in known else 0,
        format_func=lambda name: f"{name} - {known[name].title} ({known[name].year})",
        key="method",
    )
    if chosen != current:
        configuration.choose_method(db, chosen)
        jobs.ask_training(db)
        st.toast(f"The next training uses {chosen}.")
    method, changed = known[chosen], configuration.parameters(db)
    values = ", ".join(
        f"**{frame.escaped(f'{name} = {configuration.shown(changed[name])}')}**"
        if name in changed
        else frame.escaped(f"{name} = {configuration.shown(default)}")
        for name, default in method.defaults.items()
    )
    st.markdown(f"{method.assumes} [{configuration.source(chosen)}]({method.url})")
    st.caption(
        f"Parameters: {values or 'none'}. To change one: "
        + frame.escaped(f"annotator train {db.paths.project} --set {next(iter(method.defaults), 'name')}=VALUE")
    )
