"""How the source of an import is read: each decision with its reason, in a field where a person can overrule it."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from annotator.exchange.imports.importing import Plan
from annotator.exchange.reading.reading import NONE, Decided, Reading
from annotator.exchange.reading.saved import LISTS, SEPARATORS, parsed
from annotator.ui.parts import frame
from annotator.ui.work.importing import Order, for_page

TITLES = {
    "labels": "Labels are in",
    "image_column": "Column of the image",
    "folder_column": "Column of its folder",
    "label_columns": "Columns that name the classes",
    "class_columns": "Columns that are classes",
    "separator": "Between labels of a cell",
    "present": "Words for present",
    "absent": "Words for absent",
    "unsure": "Words for unsure",
    "unknown": "Words for unanswered",
    "empty_label": "Labels for: nothing here",
    "score_column": "Column of a model's score",
    "event_column": "Column of the event",
    "match": "Names of images may differ in",
    "numbers": "Whole numbers are",
}
WORDS = {
    ("labels", "folders"): "the folders: each is a class",
    ("labels", NONE): "nothing: only the images are imported",
    ("separator", NONE): "nothing: a cell is one label",
    ("score_column", NONE): "none: people gave these labels",
    ("empty_label", NONE): "none: they are classes",
    ("folder_column", NONE): "none",
    ("label_columns", NONE): "none",
    ("class_columns", NONE): "none",
    ("numbers", "counts"): "counts: 0 is absent",
    ("numbers", "present-counts"): "counts: 0 is unanswered",
    ("numbers", "ids"): "numbers of classes",
    ("numbers", "facts"): "facts of the images",
}
"""What a value of a field means, where its own words do not say it."""


def reading(order: Order, plan: Plan, given: Reading, since: float) -> Reading:
    """Draw the first rows and the decisions, those that have to be made first, and return the person's reading.

    Args:
        order: The import that the person asked for.
        plan: The import, read but not carried out.
        given: What the person has said until now.
        since: Of the import, for the keys of the fields.
    """
    if plan.samples:
        rows = "\n".join(f"- {frame.escaped(sample)}" for sample in plan.samples)
        st.markdown(f"**Its first rows**\n{rows}")
    questions = [one for one in plan.asked.values() if not one.is_sure]
    if any(getattr(given, one.field) is None for one in questions):
        st.markdown("**Choose what it means**")
    for one in questions:
        given = _field(order, one, given, since)
    sure = [one for one in plan.asked.values() if one.is_sure]
    if sure:
        with st.expander(f"How it is read ({len(sure)})"):
            for one in sure:
                given = _field(order, one, given, since)
    return given


def _field(order: Order, one: Decided, given: Reading, since: float) -> Reading:
    """Draw the field of one decision, and return the reading with what is chosen in it."""
    said = getattr(given, one.field)
    now = _text(one.field, said) if said is not None else one.value if one.is_sure else None
    options: list[str] = list(dict.fromkeys([*([now] if now else []), one.value, *one.others]))
    chosen: str | None = st.selectbox(
        TITLES[one.field],
        options,
        index=options.index(now) if now else None,
        format_func=lambda value: _shown(one.field, value),
        placeholder="Choose, or type another",
        accept_new_options=True,
        key=f"import_reading_{one.field}_{since}",
    )
    st.caption(frame.escaped(for_page(one.why, order)))
    if not chosen or chosen == now:
        return given
    return replace(given, **{one.field: parsed(one.field, chosen)})


def _text(field: str, value: str | Sequence[str]) -> str:
    """Return the value of a field as a person types it."""
    if isinstance(value, str):
        return value
    return ",".join(value) or (NONE if field in LISTS else "")


def _shown(field: str, value: str) -> str:
    names = {text: word for word, text in SEPARATORS.items()} if field == "separator" else {}
    return WORDS.get((field, value)) or names.get(value, value)
