"""One class on the Classes page, with all actions."""

from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.records import Class
from annotator.store.classes import class_changes, classes, name_lists
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import label_cells, project_counts
from annotator.ui.access import served_project
from annotator.ui.shared import class_form, widget_values
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_info
from annotator.ui.shared.page_access import draw_page_link

MAX_EXAMPLE_CANDIDATES = 24  # images to choose examples from
EXAMPLE_PIXELS = 150  # pixels: two beside each other on a phone
DEFAULT_COLOR = "#888888"
SAME_THING = "the same thing"


def draw(db: Database, by: str) -> None:
    known = {class_.id: class_ for class_ in classes.load_ordered_classes(db)}
    names = {class_id: class_.name for class_id, class_ in known.items()}
    key = widget_values.restore_widget("one_class", next(iter(names)), labels=names)
    class_id = st.selectbox("Class", list(names), format_func=names.__getitem__, key=key)
    class_ = known[class_id]
    present, absent, unsure = project_counts.count_labels_by_class(db).get(class_id, (0, 0, 0))
    st.caption(
        escape_markdown(
            f"{format_count(present, 'image')} present, {absent:,} absent, {unsure:,} unsure. {class_.description}"
        )
    )
    look, merge, split, archive = st.tabs(["Examples and color", "Merge", "Split off", "Archive"])
    with look:
        _draw_appearance(db, by, class_)
    with merge:
        _draw_merge(db, by, class_, [other for other in known.values() if other is not class_])
    with split:
        _draw_split(db, by, class_)
    with archive:
        st.write("Archived classes are not asked, trained or exported. Restoring brings their labels back.")
        if st.button(f"Archive {escape_markdown(class_.name)}", key="archive"):
            apply_change(lambda: class_changes.archive(db, by, [class_id]), f"{class_.name} is archived.")


def queue_messages(*sentences: str) -> None:
    """Store sentences for the next page run."""
    st.session_state.setdefault("classes_told", []).extend(sentences)


def show_messages() -> None:
    for text in st.session_state.pop("classes_told", []):
        st.success(escape_markdown(text))


def apply_change(change: Callable[[], object], done: str) -> None:
    """Apply a change and rerun, or show its error."""
    try:
        change()
    except AnnotatorError as error:
        show_error(error)
        return
    queue_messages(done)
    st.rerun()


def _draw_appearance(db: Database, by: str, class_: Class) -> None:
    candidates = list(
        dict.fromkeys([*class_.examples, *label_cells.find_newest_positives(db, class_.id, MAX_EXAMPLE_CANDIDATES)])
    )
    with st.form(f"look_{class_.id}", border=False):
        colored = st.checkbox("Show a color beside its name", value=bool(class_.colour), key=f"coloured_{class_.id}")
        colour = st.color_picker("Color", class_.colour or DEFAULT_COLOR, key=f"colour_{class_.id}")
        st.write("Examples, shown on the card of the class:")
        if not candidates:
            st.caption("No image has this label yet.")
        chosen = _choose_examples(db, class_, candidates)
        if st.form_submit_button("Save examples and color"):
            fields = {"colour": colour if colored else "", "examples": chosen}
            apply_change(
                lambda: class_changes.edit(db, by, {class_.id: fields}), f"Saved examples and color of {class_.name}."
            )


def _choose_examples(db: Database, class_: Class, candidates: Sequence[int]) -> list[int]:
    records, token, chosen = images.load_images(db, candidates), create_token(), []
    row = st.container(horizontal=True)
    for image_id in candidates:
        with row, st.container(width=EXAMPLE_PIXELS, gap="small"):
            name = records[image_id].name
            st.html(
                f'<img src="{served_project.base_path()}/api/thumb/{image_id}?token={escape(token)}" '
                f'alt="{escape(name)}" '
                'style="width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: 6px">'
            )
            key = f"example_{class_.id}_{image_id}"
            if st.checkbox(escape_markdown(name), value=image_id in class_.examples, key=key):
                chosen.append(image_id)
    return chosen


def _draw_merge(db: Database, by: str, class_: Class, others: Sequence[Class]) -> None:
    names, key = {other.id: other.name for other in others}, "merge_into"
    into_id = st.selectbox(
        "Into",
        list(names),
        index=None,
        format_func=names.__getitem__,
        placeholder="Choose a class",
        key=widget_values.restore_widget(key, None, labels=names),
    )
    if into_id is None:
        st.caption("Its labels go to the other class. Its name becomes a synonym.")
        return
    into = names[into_id]
    kind = f"{class_.name} is a kind of {into}"
    means = st.radio("They are", [SAME_THING, kind], format_func=escape_markdown, key="merge_means")
    same = means != kind
    preview = class_changes.preview_merge(db, [class_.id], into_id, same)
    counts = {"present": preview.present, "absent": preview.absent, "unsure": preview.unsure}
    gained = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    lines = [f"New answers for {into}: {gained or 'none'}."]
    if preview.conflicts:
        lines.append(f"{format_count(preview.conflicts, 'image')} labeled absent for {into} will be present.")
    lines.append(f"{class_.name} is archived and becomes a synonym of {into}. Undo is in the history below.")
    for line in lines:
        st.write(escape_markdown(line))
    if st.button(f"Merge {escape_markdown(class_.name)} into {escape_markdown(into)}", key="merge"):
        apply_change(
            lambda: class_changes.merge(db, by, [class_.id], into_id, same=same), f"Merged {class_.name} into {into}."
        )


def _draw_split(db: Database, by: str, class_: Class) -> None:
    st.write(escape_markdown(f"Adds a class. A grid of {class_.name} asks which show it."))
    with st.form("split", border=False):
        name = st.text_input("Name of the new class", key="split_name").strip()
        if st.form_submit_button("Split off"):
            st.session_state["split_wanted"] = (class_.id, name)
    wanted = st.session_state.get("split_wanted")
    if wanted and wanted[0] == class_.id:
        names = _resolve_names(db, wanted[1])
        if names:
            st.session_state.pop("split_wanted")
            _split_off_classes(db, by, class_, names)
    for new_id, name, selection in st.session_state.get("split_off", []):
        draw_page_link("grid", f"Answer {escape_markdown(name)}", **{"class": str(new_id), "selection": selection})


def _resolve_names(db: Database, name: str) -> list[str]:
    """Return the typed names, or [] while asking whether a name with commas is a list."""
    if not name_lists.find_lists([(name, "")], classes.load_classes_by_name(db)):
        return [name]
    parts = name_lists.split_name(name)
    show_info(class_form.format_commas_question([name]))
    with st.container(horizontal=True):
        listed = escape_markdown(" and ".join(parts))
        if st.button(f"Split off {format_count(len(parts), 'class', 'classes')}: {listed}", key="split_apart"):
            return parts
        if st.button(f"Split off one class named {escape_markdown(name)}", key="split_whole"):
            return [name]
    return []


def _split_off_classes(db: Database, by: str, class_: Class, names: Sequence[str]) -> None:
    made: list[tuple[int, str, str]] = []
    try:
        for name in names:
            new_id, selection = class_changes.split_class(db, by, class_.id, name)
            made.append((new_id, name, selection))
    except AnnotatorError as error:
        show_error(error)
    if made:
        st.session_state["split_off"] = made
        queue_messages(f"Added {', '.join(name for _, name, _ in made)}, split off from {class_.name}.")
        st.rerun()
