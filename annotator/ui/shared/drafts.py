"""Editable tables whose unsaved entries survive visits to other pages."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

Row = Mapping[str, Any]


def draw_editor(name: str, rows: Mapping[int, Row], **options: Any) -> dict[int, Row]:
    """Draw an editable table, returning its current rows by id.

    Args:
        rows: Id -> saved row.
        options: Options of st.data_editor.
    """
    state = st.session_state
    key = f"{name}_table_{state.setdefault(f'{name}_opened', 0)}"
    if key not in state:  # drawn for the first time, or after a visit to another page
        state[f"{name}_begun"] = get_unsaved_rows(name)
    begun: dict[int, Row] = state[f"{name}_begun"]
    shown = pd.DataFrame([dict(begun.get(id_, row)) for id_, row in rows.items()])
    edited_rows = st.data_editor(shown, hide_index=True, key=key, **options).to_dict("records")
    table: dict[int, Row] = dict(zip(rows, edited_rows, strict=True))
    state[f"{name}_typed"] = {id_: row for id_, row in table.items() if row != rows[id_]}
    return table


def get_unsaved_rows(name: str) -> dict[int, Row]:
    return st.session_state.get(f"{name}_typed", {})


def discard(name: str) -> None:
    """Discard the unsaved rows of an editable table by giving it a new key."""
    state = st.session_state
    state.pop(f"{name}_typed", None)
    state[f"{name}_opened"] = state.get(f"{name}_opened", 0) + 1
