"""Grid: many images and one class, decided together. Everything quick happens in components/grid/grid.js."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.images import selections
from annotator.ui.access import served_project
from annotator.ui.components import mount_component
from annotator.ui.parts import frame
from annotator.ui.parts.class_form import draw_first_form


def page() -> None:
    """Draw the page; without classes, a form to name them.

    An address with ?selection= shows what was picked on the map, one with ?class= a class by its id, one with ?audit=1
    the cells that were drawn for an audit.
    """
    frame.require_annotator_name()
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
    """Return the selection that the address names, with its number of images; None without one.

    A selection that was deleted is reported and left out.
    """
    wanted = st.query_params.get("selection")
    if not wanted:
        return None
    try:
        return {"id": wanted, "count": len(selections.load(served_project.db(), wanted))}
    except AnnotatorError as error:
        st.toast(frame.escape_markdown(str(error)))
        return None
