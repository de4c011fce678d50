"""Values of widgets: kept while a person visits another page, or stored as project settings.

Streamlit forgets widgets that a script run does not draw.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError

_KEPT_VALUES_KEY, _PROBLEM_KEY = "kept_values", "change_refused"


def restore_widget(
    key: str, default: Any, options: Collection[Any] | None = None, *, labels: Mapping[Any, str] | None = None
) -> str:
    """Restore a widget's last value, or `default`, and return the widget's key.

    The browser keeps an option's first label until a value is set here.

    Args:
        options: Allowed options. Other values are dropped.
        labels: Option -> label, instead of `options`, if labels may change.
    """
    state = st.session_state
    kept: dict[str, tuple[Any, str]] = state.setdefault(_KEPT_VALUES_KEY, {})
    known, label = kept.get(key, (default, ""))
    value = state.get(key, known)
    options = options if labels is None else labels
    if options is not None and isinstance(default, list):
        value = [one for one in value if one in options]
    elif options is not None and value not in options:
        value = default
    new_label = "" if labels is None else labels.get(value, "")
    if key not in state or state[key] != value or (value == known and new_label != label):
        state[key] = value
    kept[key] = value, new_label
    return key


def bind_setting(key: str, stored: Any, change: Callable[[Any], None]) -> dict[str, Any]:
    """Return widget options that show a stored setting and store changes.

    Otherwise a page would store an outdated value over another page's change.
    """
    st.session_state[key] = stored
    return {"key": key, "on_change": _store_change, "args": [key, change]}


def pop_problem() -> str:
    """Return the error of the last change of a bound setting once, or ""."""
    return st.session_state.pop(_PROBLEM_KEY, "")


def _store_change(key: str, change: Callable[[Any], None]) -> None:
    try:
        change(st.session_state[key])
    except AnnotatorError as problem:  # nothing can be drawn before the script runs
        st.session_state[_PROBLEM_KEY] = str(problem)
