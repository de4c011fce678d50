"""The Grid page: many images of one class."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.images import selections
from annotator.ui.access import served_project
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.class_form import draw_first_form
from annotator.ui.shared.components import mount_component
from annotator.ui.shared.markdown_text import escape_markdown


def page() -> None:
    """Draw the Grid page, or the form that adds classes if there are none.

    URL parameters: ?selection= (from the map), ?class= (id) and ?audit=1.
    """
    require_annotator_name()
    if not classes.load_active_classes(served_project.db()):
        draw_first_form()
        return
    wanted = st.query_params.get("class", "")
    address = {
        "class": int(wanted) if wanted.isdecimal() else None,
        "selection": _load_selection(),
        "audit": st.query_params.get("audit") == "1",
    }
    mount_component("grid", styles=["grid/tiles.css"], **address)


def _load_selection() -> dict | None:
    """Return the URL's selection with its size, or None if absent or deleted."""
    wanted = st.query_params.get("selection")
    if not wanted:
        return None
    try:
        return {"id": wanted, "count": len(selections.load(served_project.db(), wanted))}
    except AnnotatorError as error:
        st.toast(escape_markdown(str(error)))
        return None
