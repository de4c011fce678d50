"""Gallery: all images with their labels, filtered and sorted; many are changed at once.

Everything quick happens in components/gallery/gallery.js, which reads the filter in the address.
"""

import streamlit as st

from annotator.shares import counted, seconds_in_words
from annotator.snapshot import gallery
from annotator.snapshot.facts import BY_NAME as FACTS_BY_NAME
from annotator.snapshot.facts import COLUMN
from annotator.snapshot.filters import FILTERS, Filter, Kind
from annotator.snapshot.sorts import BY_COLUMN, SORTS, Sort
from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.images import attributes
from annotator.store.labels import counts as overview
from annotator.store.networks import configuration
from annotator.store.networks import machine_settings as machine
from annotator.ui.access import context
from annotator.ui.components import mount
from annotator.ui.parts import frame
from models.backbones import licences
from models.backbones.curated import CURATED, install_command, reads_text

MOST_VALUES = 200  # of an imported column, which are proposed


def page() -> None:
    """Draw the Gallery page."""
    frame.annotator_name()
    db = context.db()
    if not gallery.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery.prepare(db)
    choices = gallery.choices(db)
    offered = gallery.offered_facts(db)
    columns = [(name, label) for name, label in offered if name.startswith(COLUMN)]
    known = {name for name, _ in offered}
    mount(
        "gallery",
        images=overview.image_counts(db)["all"],
        no_texts="" if name_texts.network(db) else _why_no_words(db),
        facts={label: attributes.values(db, label, MOST_VALUES) for _, label in columns},
        sorts=[
            {"name": one.name, "label": one.label, "changes": _changes(one)}
            for one in SORTS
            if one.name != BY_COLUMN and (one.name not in FACTS_BY_NAME or one.name in known)
        ]
        + [{"name": name, "label": label, "changes": False} for name, label in columns],
        filters=[
            {
                "name": one.name,
                "label": one.label,
                "kind": one.kind,
                "front": one.in_front,
                "fact": one.fact is not None,
                "changes": _changes(one),
                "fixed": bool(one.allowed),
                "unit": one.unit,
                "choices": choices[one.name],
            }
            for one in FILTERS
            if (one.fact is None or one.name in known) and (one.kind != Kind.FACTS or choices[one.name])
        ],
    )


def _why_no_words(db: Database) -> str:
    """Return which network would search by words, and what changing to it costs."""
    free = [one for one in CURATED if reads_text(one.name) and not licences.must_be_accepted(one.licence)]
    smallest = min(free, key=lambda one: one.parameters)
    images, speed = overview.image_counts(db)["all"], machine.speeds().get(smallest.name)
    hours = f", about {seconds_in_words(images / speed.images_a_second)}" if speed and speed.images_a_second > 0 else ""
    library = " Its library, open_clip, has to be installed first." if install_command(smallest.name) else ""
    return (
        f"{configuration.backbone(db)} knows no texts. {smallest.name} does: Settings changes the network, and then "
        f"the worker analyzes {counted(images, 'image')} anew{hours}. Answers stay, and people can go on meanwhile."
        f"{library}"
    )


def _changes(one: Filter | Sort) -> bool:
    """Return whether answers, or the worker, change what is shown; people import seldom."""
    return (one.reveals_labels and not one.imported) or one.by_worker
