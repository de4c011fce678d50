"""The Export page form of the facts about a data set that only people know, for its Croissant description."""

import json
from typing import Any

import pandas as pd
import streamlit as st

from annotator.exchange.croissant.croissant_facts import (
    CREATOR_KEYS,
    CREATOR_TYPES,
    FACT_FIELDS,
    MAX_TEXT_CHARACTERS,
    REQUIRED_FACTS,
    FactField,
    list_fact_problems,
    load_facts,
    store_facts,
)
from annotator.exchange.exports.choices import Choices
from annotator.store.database.database import Database
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.page_access import draw_download_button

_SHORT_FACTS = ("name", "url", "version", "datePublished")


def edit_facts(db: Database, choices: Choices) -> None:
    """Draw the form, and store the facts when all of them are valid."""
    known = load_facts(db)
    # They are edited as terms of the data card. Those of a file stay.
    terms = {"license": choices.license, "citeAs": choices.cite}
    missing = [FACT_FIELDS[key].label for key in REQUIRED_FACTS if not (known.get(key) or terms.get(key))]
    title = f"Facts for Croissant: missing {', '.join(missing)}" if missing else "Facts for Croissant"
    with st.expander(title), st.form("croissant_facts", border=False):
        st.caption("What the program cannot measure. Filled in once; every export with a description has it.")
        fields = [field for field in FACT_FIELDS.values() if field.key not in terms]
        facts = known | {field.key: _edit_fact(field, known.get(field.key)) for field in fields}
        if st.form_submit_button("Save the facts", key="save_croissant_facts"):
            facts = {key: value for key, value in facts.items() if value}
            if problems := list_fact_problems(facts):
                st.error("  \n".join(["Not saved:", *(escape_markdown(problem) for problem in problems)]))
            else:
                store_facts(db, facts)
                st.toast("Saved for every Croissant description.")
                st.rerun()
    if known:
        draw_download_button(
            "Download the facts",
            lambda: json.dumps(known, indent=2, ensure_ascii=False).encode(),
            file_name="facts.json",
            mime="application/json",
            key="download_croissant_facts",
        )


def _edit_fact(field: FactField, known: Any) -> Any:
    key = f"croissant_{field.key}"
    if field.key == "creator":
        return _edit_creators(known, key)
    if field.key in _SHORT_FACTS:
        return st.text_input(field.label, known or "", MAX_TEXT_CHARACTERS, key, help=field.about).strip()
    if not field.has_many:
        return st.text_area(
            field.label, known or "", max_chars=MAX_TEXT_CHARACTERS, key=key, help=field.about, height=68
        ).strip()
    before = "\n".join([known] if isinstance(known, str) else known or [])
    text = st.text_area(field.label, before, key=key, help=f"{field.about}, one per line", height=68)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _edit_creators(known: Any, key: str) -> list[dict[str, str]]:
    creators = [known] if isinstance(known, dict) else known or []
    table = pd.DataFrame(creators, columns=list(CREATOR_KEYS), dtype="object")
    st.markdown("Creators")
    edited = st.data_editor(
        table,
        num_rows="dynamic",
        hide_index=True,
        width="stretch",
        key=key,
        column_config={
            "type": st.column_config.SelectboxColumn("Type", options=CREATOR_TYPES, default=CREATOR_TYPES[0]),
            "name": st.column_config.TextColumn("Name"),
            "url": st.column_config.TextColumn("Web page"),
            "email": st.column_config.TextColumn("E-mail"),
        },
    )
    rows = [
        {str(name): str(cell).strip() for name, cell in row.items() if isinstance(cell, str) and cell.strip()}
        for row in edited.to_dict("records")
    ]
    return [row for row in rows if row.keys() - {"type"}]
