"""Grid: many images and one class, decided together. Everything quick happens in components/grid/grid.js."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.images import selections
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import frame
from annotator.ui.parts.class_form import first_form


def page() -> None:
    """Draw the page; without classes, a form to name them.

    An address with ?selection= shows what was picked on the map, one with ?class= a class by its id, one with ?audit=1
    the cells that were drawn for an audit.
    """
    frame.annotator_name()
    if not classes.all_classes(context.db()):
        first_form()
        return
    wanted = st.query_params.get("class", "")
    address = {
        "class": int(wanted) if wanted.isdecimal() else None,
        "selection": _selection(),
        "audit": st.query_params.get("audit") == "1",
    }
    mount("grid", styles=["grid/tiles.css"], **address)


def _selection() -> dict | None:
    """Return the selection that the address names, with its number of images; None without one.

    A selection that was deleted is reported and left out.
    """
    wanted = st.query_params.get("selection")
    if not wanted:
        return None
    try:
        return {"id": wanted, "count": len(selections.load(context.db(), wanted))}
    except AnnotatorError as error:
        st.toast(frame.escaped(str(error)))
        return None
