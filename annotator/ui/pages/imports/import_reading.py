"""The interpretation of an import source, each reason shown and changeable."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from annotator.exchange.imports.import_plan import ImportPlan
from annotator.exchange.reading.class_name_checks import ALL_NAMES
from annotator.exchange.reading.field_roles import FieldRole, shorten_roles
from annotator.exchange.reading.reading_file import LIST_FIELDS, SEPARATOR_WORDS, parse_option
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.ui.pages.imports.import_runner import ImportRequest, clean_for_page
from annotator.ui.shared import html_tables
from annotator.ui.shared.markdown_text import escape_markdown

FIELD_TITLES = {
    "labels": "Labels are in",
    "image_column": "Column of the image",
    "folder_column": "Column of its folder",
    "label_columns": "Columns that name the classes",
    "class_columns": "Columns or keywords that are classes",
    "separator": "Between labels of a cell",
    "present": "Words for present",
    "absent": "Words for absent",
    "unsure": "Words for unsure",
    "unknown": "Words for unanswered",
    "empty_label": "Labels for: nothing here",
    "accepted_names": "Unusual names that are classes",
    "score_column": "Column of a model's score",
    "kept_rows": "Rows that hold answers",
    "event_column": "Column of the event",
    "match": "Names of images may differ in",
    "numbers": "Whole numbers are",
}
VALUE_WORDS = {
    ("labels", "folders"): "the folders: each is a class",
    ("labels", NONE_VALUE): "nothing: only the images are imported",
    ("separator", NONE_VALUE): "nothing: a cell is one label",
    ("score_column", NONE_VALUE): "none: people gave these labels",
    ("empty_label", NONE_VALUE): "none: they are classes",
    ("accepted_names", ALL_NAMES): "all of them",
    ("kept_rows", NONE_VALUE): "all rows",
    ("folder_column", NONE_VALUE): "none",
    ("label_columns", NONE_VALUE): "none",
    ("class_columns", NONE_VALUE): "none",
    ("numbers", "counts"): "counts: 0 is absent",
    ("numbers", "present-counts"): "counts: 0 is unanswered",
    ("numbers", "ids"): "numbers of classes",
    ("numbers", "facts"): "facts of the images",
}
"""What a value of a field means, where its own words do not say it."""


def draw_reading(order: ImportRequest, plan: ImportPlan, given: ReadingOptions, since: float) -> ReadingOptions:
    """Draw a source's first rows and how they were interpreted, and return the person's choices.

    Args:
        since: Start of the import, for widget keys.
    """
    questions = [one for one in plan.interpretation_by_field.values() if not one.is_sure]
    if any(getattr(given, one.field) is None for one in questions):
        st.markdown("**Choose what it means**")
    for one in questions:
        given = _draw_field(order, one, given, since)
    _draw_fields_and_rows(plan)
    sure = [one for one in plan.interpretation_by_field.values() if one.is_sure]
    if sure:
        with st.expander(f"How it is read ({len(sure)})"):
            for one in sure:
                given = _draw_field(order, one, given, since)
    return given


def _draw_fields_and_rows(plan: ImportPlan) -> None:
    fields, rows = st.columns([2, 1], gap="medium") if plan.roles else (st.container(), st.container())
    if plan.roles:
        with fields:
            st.markdown("**What each field is read as**")
            html_tables.show([_format_role(one) for one in shorten_roles(plan.roles)], "What each field is read as")
    if plan.samples:
        with rows:
            lines = "\n".join(f"- {escape_markdown(sample)}" for sample in plan.samples)
            st.markdown(f"**Its first rows**\n{lines}")


def _format_role(one: FieldRole) -> dict[str, str]:
    return {"Field": one.field, "Role": one.role, "Examples": ", ".join(one.examples), "Because": one.why}


def _draw_field(order: ImportRequest, one: Interpretation, given: ReadingOptions, since: float) -> ReadingOptions:
    """Draw one interpretation with its reason, and return the choices updated by the person."""
    said = getattr(given, one.field)
    now = _format_value(one.field, said) if said is not None else one.value if one.is_sure else None
    options: list[str] = list(dict.fromkeys([*([now] if now else []), one.value, *one.others]))
    chosen: str | None = st.selectbox(
        FIELD_TITLES[one.field],
        options,
        index=options.index(now) if now else None,
        format_func=lambda value: _describe_value(one.field, value),
        placeholder="Choose, or type another",
        accept_new_options=True,
        key=f"import_reading_{one.field}_{since}",
    )
    st.caption(escape_markdown(clean_for_page(one.why, order)))
    if not chosen or chosen == now:
        return given
    return replace(given, **{one.field: parse_option(one.field, chosen)})


def _format_value(field: str, value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return value
    return ",".join(value) or (NONE_VALUE if field in LIST_FIELDS else "")


def _describe_value(field: str, value: str) -> str:
    names = {text: word for word, text in SEPARATOR_WORDS.items()} if field == "separator" else {}
    return VALUE_WORDS.get((field, value)) or names.get(value, value)
