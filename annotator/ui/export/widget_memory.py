"""Widgets that show the last choice again when a person returns from another page.

Streamlit forgets widgets that are not drawn.
"""

from collections.abc import Collection
from typing import Any

import streamlit as st


def restore_widget(key: str, default: Any, allowed: Collection[Any] | None = None) -> str:
    """Return the key of a widget, which shows its last value, or `usual`.

    Args:
        key: The key of the widget.
        default: The value that it has at first.
        allowed: Its options; a value that is not among them is dropped.
    """
    state = st.session_state
    store = state.setdefault("export_kept", {})
    value = state[key] if key in state else store.get(key, default)
    if allowed is not None and isinstance(default, list):
        value = [one for one in value if one in allowed]
    elif allowed is not None and value not in allowed:
        value = default
    if key not in state or state[key] != value:
        state[key] = value
    store[key] = value
    return key
