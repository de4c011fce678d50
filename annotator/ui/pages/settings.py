"""Settings: who is at work, the training method, the classes."""

import pandas as pd
import streamlit as st

from annotator.engine import recipe
from annotator.settings import METHODS
from annotator.store import classes, jobs
from annotator.ui import context, frame
from annotator.ui.pages.annotate import class_form

METHOD_TITLES = {
    "an": "an - assume negative: what nobody marked is absent (the baseline)",
    "em_apl": "em_apl - entropy maximization with asymmetric pseudo-labels",
    "gr": "gr - generalized robust loss (the default)",
}


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
    now = recipe.method(db)
    chosen = st.selectbox(
        "Training method",
        METHODS,
        index=METHODS.index(now) if now in METHODS else 0,
        format_func=lambda key: METHOD_TITLES.get(key, key),
        key="method",
    )
    if chosen != now:
        recipe.choose_method(db, chosen)
        jobs.ask_training(db)
        st.toast(f"The next run uses {chosen}.")
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
