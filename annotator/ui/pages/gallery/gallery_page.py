"""The Gallery page: all images, filtered, sorted and labeled in bulk."""

import streamlit as st

from annotator.humanize import format_count, format_duration
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import FILTERS, Filter, FilterKind
from annotator.snapshot.image_facts import COLUMN_PREFIX, FACTS_BY_NAME
from annotator.snapshot.sorts import COLUMN_SORT, SORTS, Sort
from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.images import attributes
from annotator.store.labels import project_counts
from annotator.store.networks import configuration, machine_settings
from annotator.ui.access import served_project
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.components import mount_component
from spmll.backbones import licenses
from spmll.backbones.curated import CURATED_NETWORKS, get_install_command, reads_text

MAX_PROPOSED_VALUES = 200  # of an imported column, which are proposed


def page() -> None:
    require_annotator_name()
    db = served_project.db()
    if not gallery_listing.is_ready(db):
        with st.spinner("Reading the list of images..."):
            gallery_listing.load_columns(db)
    choices = gallery_listing.list_filter_choices(db)
    offered = gallery_listing.list_offered_facts(db)
    columns = [(name, label) for name, label in offered if name.startswith(COLUMN_PREFIX)]
    known = {name for name, _ in offered}
    mount_component(
        "gallery",
        images=project_counts.count_images_by_stage(db)["all"],
        no_texts="" if name_texts.get_text_network(db) else _explain_no_text_search(db),
        facts={label: attributes.load_values(db, label, MAX_PROPOSED_VALUES) for _, label in columns},
        sorts=[
            {"name": one.name, "label": one.label, "changes": _can_change(one)}
            for one in SORTS
            if one.name != COLUMN_SORT and (one.name not in FACTS_BY_NAME or one.name in known)
        ]
        + [{"name": name, "label": label, "changes": False} for name, label in columns],
        filters=[
            {
                "name": one.name,
                "label": one.label,
                "kind": one.kind,
                "front": one.is_in_first_row,
                "fact": one.fact is not None,
                "changes": _can_change(one),
                "fixed": bool(one.allowed_values),
                "unit": one.unit,
                "choices": choices[one.name],
            }
            for one in FILTERS
            if (one.fact is None or one.name in known) and (one.kind != FilterKind.FACTS or choices[one.name])
        ],
    )


def _explain_no_text_search(db: Database) -> str:
    free = [one for one in CURATED_NETWORKS if reads_text(one.name) and not licenses.must_be_accepted(one.licence)]
    smallest = min(free, key=lambda one: one.parameters)
    images, speed = project_counts.count_images_by_stage(db)["all"], machine_settings.load_speeds().get(smallest.name)
    hours = f", about {format_duration(images / speed.images_a_second)}" if speed and speed.images_a_second > 0 else ""
    library = " Its library, open_clip, has to be installed first." if get_install_command(smallest.name) else ""
    return (
        f"{configuration.get_backbone(db)} knows no texts. {smallest.name} does: Settings changes the network, and "
        f"then the worker analyzes {format_count(images, 'image')} anew{hours}. Answers stay, and people can go on "
        f"meanwhile.{library}"
    )


def _can_change(one: Filter | Sort) -> bool:
    """Return whether new answers can change the images that this filter or sort order lists."""
    return (one.reveals_labels and not one.imported) or one.by_worker
