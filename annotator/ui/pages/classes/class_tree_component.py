"""The class tree of the Classes page (class_tree.js)."""

from collections.abc import Callable

import streamlit as st

from annotator.ui.access import served_project
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.components import call_component, get_component
from annotator.ui.shared.page_classes import build_classes_json


def mount_class_tree(on_drop: Callable[[int, int], None]) -> None:
    """Put the class tree on the page. `on_drop` is called with the ids of the dragged and the target class."""
    key = "class_tree"

    def handle_drop() -> None:
        pair = st.session_state[key].dropped
        if isinstance(pair, list) and len(pair) == 2 and all(type(one) is int for one in pair):
            on_drop(*pair)

    data = build_classes_json(served_project.db()) | {"token": create_token(), "base": served_project.base_path()}
    call_component(get_component(key, (), "tree", "classes"), data, key=key, on_dropped_change=handle_drop)
