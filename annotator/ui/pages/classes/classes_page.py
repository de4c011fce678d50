"""The Classes page: an editable table, single classes, archive and history.

Saving changes only edited fields, and unsaved entries survive changes by others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.records import Class
from annotator.store.classes import change_descriptions, class_changes, class_history, classes
from annotator.store.database.database import Database
from annotator.ui.access import served_project
from annotator.ui.pages.classes import class_editor, class_relations
from annotator.ui.pages.classes.class_tree_component import mount_class_tree
from annotator.ui.shared import drafts, page_classes, widget_values
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.class_form import FORM_HELP, SEPARATOR, draw_class_form
from annotator.ui.shared.local_time import format_moment, get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_errors, show_info, show_warning

TABLE_COLUMNS = {
    "place": st.column_config.NumberColumn("Place", width="small", min_value=1, step=1, format="%d"),
    "key": st.column_config.TextColumn("Key", width="small", max_chars=1),
    "name": st.column_config.TextColumn("Class", required=True),
    "heading": st.column_config.TextColumn("Heading"),
    "synonyms": st.column_config.TextColumn("Synonyms"),
    "description": st.column_config.TextColumn("Note", width="large"),
}
ROW_PIXELS, MAX_TABLE_PIXELS = 35, 1100  # pixels
MAX_CHANGES_SHOWN = 20  # changes in the history


def page() -> None:
    with show_errors():
        name = require_annotator_name()
        db = served_project.db()
        told = st.container()
        if classes.load_active_classes(db):
            st.subheader("Classes")
            _draw_table(db, name)
            st.subheader("One class")
            class_editor.draw(db, name)
            class_relations.draw(db, name, mount_class_tree)
        draw_class_form("Add classes", FORM_HELP)
        _draw_adding_switch(db)
        _draw_archived(db, name)
        _draw_history(db, name)
        with told:  # last: if the page is drawn again meanwhile, the sentences are kept for then
            class_editor.show_messages()


def find_edits(shown: Sequence[Class], table: Sequence[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return edited fields: class id -> field -> value.

    Args:
        shown: Classes when the table was opened.
        table: Current rows.
    """
    changes: dict[int, dict[str, Any]] = {}
    order = list(shown)
    for place, (class_, row, before) in enumerate(zip(shown, table, build_rows(shown), strict=True), start=1):
        for field in ("name", "key", "heading", "description"):
            if _clean_field(row[field]) != before[field]:
                changes.setdefault(class_.id, {})[field] = _clean_field(row[field])
        if _clean_field(row["synonyms"]) != before["synonyms"]:
            parts = [part.strip() for part in _clean_field(row["synonyms"]).split(SEPARATOR)]
            changes.setdefault(class_.id, {})["synonyms"] = [part for part in parts if part]
        wanted = row["place"]
        if wanted is not None and wanted == wanted and int(wanted) != place:  # an emptied number comes as nan
            order.remove(class_)
            order.insert(int(wanted) - 1, class_)
    if order != list(shown):
        for position, class_ in enumerate(order, start=1):
            if class_.position != position:
                changes.setdefault(class_.id, {})["position"] = position
    return changes


def build_rows(shown: Sequence[Class]) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "key": class_.key,
            "name": class_.name,
            "heading": class_.heading,
            "synonyms": f" {SEPARATOR} ".join(class_.synonyms),
            "description": class_.description,
        }
        for place, class_ in enumerate(shown, start=1)
    ]


def save_changes(db: Database, by: str, changes: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Apply all changes or none, and return sentences about them. Raises AnnotatorError listing all problems."""
    before = {class_.id: class_ for class_ in classes.load_active_classes(db)}
    if class_changes.edit(db, by, changes) is None:
        return ["Nothing was changed."]
    after = classes.load_active_classes(db)
    owners = {class_.key: class_.name for class_ in after if class_.key}
    moved = [
        f"Key {before[class_.id].key} moved from {class_.name} to {owners[before[class_.id].key]}."
        for class_ in after
        if class_.id in before
        and "key" not in changes.get(class_.id, {})
        and before[class_.id].key not in ("", class_.key)
    ]
    return ["Saved.", *moved]


def _draw_table(db: Database, by: str) -> None:
    state, newest = st.session_state, classes.load_ordered_classes(db)
    st.caption(
        "Double-click a field to edit it, or press Enter. A key is one letter or digit. Synonyms, separated by "
        f"{SEPARATOR}, are other names it is found by. Classes with the same heading stand together."
    )
    shown: list[Class] = state.setdefault("classes_shown", newest)
    now = state.get(f"classes_table_{state.get('classes_opened', 0)}", {}).get("edited_rows")
    if shown != newest and not now and not drafts.get_unsaved_rows("classes"):
        shown = state["classes_shown"] = newest
        drafts.discard("classes")
    said = st.container()  # above the table, which may be longer than the screen
    buttons = st.container(horizontal=True)
    rows = {class_.id: row for class_, row in zip(shown, build_rows(shown), strict=True)}
    height = min(ROW_PIXELS * (len(shown) + 1) + 3, MAX_TABLE_PIXELS)
    edited = drafts.draw_editor("classes", rows, column_config=TABLE_COLUMNS, height=height)
    changes = find_edits(shown, list(edited.values()))
    with buttons:
        if changes:
            st.markdown(f"**{format_count(_count_edits(changes), 'unsaved change')}**", width="content")
        wanted = st.button("Save", type="primary", disabled=not changes, key="classes_save")
        if st.button("Discard changes", disabled=not changes, key="classes_discard"):
            _reload_table()
    with said:
        if changes and shown != newest:
            show_info("Classes were changed elsewhere. Saving changes only what you edited.")
        if _is_save_confirmed(_find_name_warnings(newest, changes), changes, wanted):
            _save_edits(db, by, changes)


def _is_save_confirmed(warnings: Sequence[str], changes: Mapping[int, Mapping[str, Any]], wanted: bool) -> bool:
    """Return whether to save now, asking again about similar names."""
    state = st.session_state
    if wanted:
        state["classes_warned"] = changes
    if not warnings or state.get("classes_warned") != changes:
        return wanted
    for text in warnings:
        show_warning(text)
    return st.button("Save anyway", key="classes_save_sure")


def _save_edits(db: Database, by: str, changes: Mapping[int, Mapping[str, Any]]) -> None:
    try:
        class_editor.queue_messages(*save_changes(db, by, changes))
    except AnnotatorError as error:
        show_error(error)
    else:
        _reload_table()


def _find_name_warnings(known: Sequence[Class], changes: Mapping[int, Mapping[str, Any]]) -> list[str]:
    names = {class_.id: class_.name for class_ in known}
    renamed = {class_id: fields["name"] for class_id, fields in changes.items() if "name" in fields}
    others = [name for class_id, name in names.items() if class_id not in renamed]
    return classes.find_name_warnings(renamed.values(), others)


def _reload_table() -> None:
    """Show the current classes, discarding edits."""
    state = st.session_state
    for name in ("classes_shown", "classes_warned"):
        state.pop(name, None)
    drafts.discard("classes")
    st.rerun()


def _count_edits(changes: Mapping[int, Mapping[str, Any]]) -> int:
    """Count edited fields. Reordering classes counts as one."""
    fields = [field for edited in changes.values() for field in edited]
    return len(fields) - max(0, fields.count("position") - 1)


def _clean_field(value: str | None) -> str:
    return (value or "").strip()


def _draw_adding_switch(db: Database) -> None:
    st.toggle(
        "Allow adding classes while labeling",
        help="On the Annotate page, press / and type: the last line adds a class of that name.",
        **widget_values.bind_setting(
            "classes_allowed", page_classes.is_adding_allowed(db), lambda on: page_classes.set_adding_allowed(db, on)
        ),
    )


def _draw_archived(db: Database, by: str) -> None:
    archived = classes.load_archived_classes(db)
    if not archived:
        return
    st.subheader("Archived")
    st.caption("Not asked about any more. Restoring brings their labels back.")
    with st.container(horizontal=True):
        for class_ in archived:
            if st.button(f"Restore {escape_markdown(class_.name)}", key=f"restore_{class_.id}"):
                class_editor.apply_change(
                    lambda id_=class_.id: class_changes.restore(db, by, [id_]), f"{class_.name} is in use again."
                )


def _draw_history(db: Database, by: str) -> None:
    changes = list(change_descriptions.describe_history(db, MAX_CHANGES_SHOWN + 1))
    if not changes:
        return
    st.subheader("History")
    zone = get_time_zone()
    for change, words in changes[:MAX_CHANGES_SHOWN]:
        text, button = st.columns([6, 1], vertical_alignment="center")
        when = format_moment(change.changed_at, zone)
        undone = f" (undone by change {change.undone_by})" if change.undone_by else ""
        who = change.annotator or "the command line"
        text.markdown(escape_markdown(f"{change.id} · {when} · {who}: {words}{undone}"))
        if change.can_be_undone and button.button(f"Undo {change.id:d}", key=f"undo_{change.id}"):
            class_editor.apply_change(
                lambda id_=change.id: class_history.undo_change(db, by, id_), f"Undid change {change.id}: {words}."
            )
    if len(changes) > MAX_CHANGES_SHOWN:
        st.caption("All changes: annotator classes history PROJECT")
