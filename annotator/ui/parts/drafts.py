"""Tables that people edit: unsaved entries are shown again when a person returns from another page.

Streamlit forgets a widget that is not drawn, and with it what was typed into it.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

Row = Mapping[str, Any]


def draw_editor(name: str, rows: Mapping[int, Row], **options: Any) -> dict[int, Row]:
    """Show a table that can be edited, and return its rows by the ids of `rows`, as they are typed now.

    Args:
        name: Of the table; `typed` and `forget` take the same.
        rows: Id -> row as it is saved.
        options: Of st.data_editor.
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
    """Return the rows of a table that were typed and not saved, when it was drawn last."""
    return st.session_state.get(f"{name}_typed", {})


def discard(name: str) -> None:
    """Forget what was typed: the next time the table is drawn it shows what is saved.

    It is then a table of another number, which is another one for Streamlit.
    """
    state = st.session_state
    state.pop(f"{name}_typed", None)
    state[f"{name}_opened"] = state.get(f"{name}_opened", 0) + 1
