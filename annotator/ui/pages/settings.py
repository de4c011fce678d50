"""Settings: who is at work, the training method with its parameters, the classes."""

import pandas as pd
import streamlit as st

from annotator.engine import recipe
from annotator.store import classes, jobs
from annotator.store.database import Database
from annotator.ui import context, frame
from annotator.ui.pages.annotate import class_form
from models import catalogue


def page() -> None:
    """The page."""
    with frame.errors_shown():
        _settings()


def _settings() -> None:
    db = context.db()
    name = frame.annotator_name()
    st.subheader("You")
    st.write(f"You are labeling as **{frame.escaped(name)}**.")
    if st.button("I am somebody else"):
        frame.forget_name()
        st.rerun()

    st.subheader("Model")
    _method(db)
    if st.button("Train now"):
        jobs.ask_training(db)
        st.toast("Asked the worker for a run.")
    st.caption(
        f"Features come from {recipe.backbone(db)}. Another network: annotator init {db.paths.project} --backbone NAME"
    )

    st.subheader("Classes")
    known = classes.all_classes(db)
    if known:
        st.dataframe(
            pd.DataFrame([{"class": one.name, "description": one.description} for one in known]), hide_index=True
        )
    class_form(
        "Add classes",
        "One class a line; a tab and a description may follow. Classes are never removed, so that no decision loses "
        "its meaning.",
    )


def _method(db: Database) -> None:
    now = recipe.method(db)
    # One that needs all labels of all images is for comparisons; a project where everything is known needs no model.
    known = {name: one for name, one in catalogue.methods().items() if name == now or not one.full_labels}
    names = list(known)
    chosen = st.selectbox(
        "Training method",
        names,
        index=names.index(now) if now in known else 0,
        format_func=lambda name: f"{name} - {known[name].title} ({known[name].year})",
        key="method",
    )
    if chosen != now:
        recipe.choose_method(db, chosen)
        jobs.ask_training(db)
        st.toast(f"The next run uses {chosen}.")
    one, changed = known[chosen], recipe.parameters(db)
    values = ", ".join(
        f"**{name} = {recipe.shown(changed[name])}**" if name in changed else f"{name} = {recipe.shown(default)}"
        for name, default in one.defaults.items()
    )
    st.markdown(f"{one.assumes} [{recipe.source(chosen)}]({one.url})")
    st.caption(
        f"Parameters: {values or 'none'}. Change one: "
        f"annotator train {db.paths.project} --set {next(iter(one.defaults), 'name')}=VALUE"
    )
