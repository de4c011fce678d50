"""Gallery: all images with their labels, filtered and sorted; many are changed at once.

Everything quick happens in components/gallery/gallery.js, which reads the filter in the address.
"""

import streamlit as st

from annotator.snapshot import gallery
from annotator.snapshot.filters import FILTERS, Kind
from annotator.snapshot.sorts import SORTS
from annotator.store.images import attributes
from annotator.store.labels import counts as overview
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import frame

MOST_FACTS, MOST_VALUES = 50, 200  # imported facts whose values are proposed, and values of each


def page() -> None:
    """Draw the Gallery page."""
    frame.annotator_name()
    db = context.db()
    if not gallery.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery.prepare(db)
    choices = gallery.choices(db)
    mount(
        "gallery",
        images=overview.image_counts(db)["all"],
        facts={name: attributes.values(db, name, MOST_VALUES) for name, _ in choices["facts"][:MOST_FACTS]},
        sorts=[{"name": one.name, "label": one.label, "changes": one.reveals_labels or one.by_worker} for one in SORTS],
        filters=[
            {
                "name": one.name,
                "label": one.label,
                "kind": one.kind,
                "front": one.in_front,
                "changes": one.reveals_labels or one.by_worker,
                "fixed": bool(one.allowed),
                "choices": choices[one.name],
            }
            for one in FILTERS
            if one.kind != Kind.FACTS or choices[one.name]
        ],
    )
