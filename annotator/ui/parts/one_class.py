"""One class on the Classes page: its colour and examples, merging it, splitting a class off, archiving it."""

from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.records import Class
from annotator.shares import counted
from annotator.store.classes import changes as class_changes
from annotator.store.classes import classes, name_lists
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import cells
from annotator.store.labels import counts as overview
from annotator.ui.access import context
from annotator.ui.parts import class_form, frame

CANDIDATES = 24  # images to choose examples from
EXAMPLE = 150  # pixels: two beside each other on a phone
GREY = "#888888"
SAME = "the same thing"


def one_class(db: Database, by: str) -> None:
    """Draw the choice of a class, and what can be done with it."""
    known = {class_.id: class_ for class_ in classes.in_order(db)}
    names = {class_id: class_.name for class_id, class_ in known.items()}
    key = frame.chosen("one_class", names, next(iter(names)))
    class_id = st.selectbox("Class", list(names), format_func=names.__getitem__, key=key)
    class_ = known[class_id]
    present, absent, unsure = overview.class_counts(db).get(class_id, (0, 0, 0))
    st.caption(
        frame.escaped(
            f"{counted(present, 'image')} present, {absent:,} absent, {unsure:,} unsure. {class_.description}"
        )
    )
    look, merge, split, archive = st.tabs(["Examples and color", "Merge", "Split off", "Archive"])
    with look:
        _look(db, by, class_)
    with merge:
        _merge(db, by, class_, [other for other in known.values() if other is not class_])
    with split:
        _split(db, by, class_)
    with archive:
        st.write("Archived classes are not asked, trained or exported. Restoring brings their labels back.")
        if st.button(f"Archive {frame.escaped(class_.name)}", key="archive"):
            act(lambda: class_changes.archive(db, by, [class_id]), f"{class_.name} is archived.")


def tell(*sentences: str) -> None:
    """Keep these sentences for the top of the page, when it is drawn the next time."""
    st.session_state.setdefault("classes_told", []).extend(sentences)


def show_told() -> None:
    """Show the sentences that the last action left."""
    for text in st.session_state.pop("classes_told", []):
        st.success(frame.escaped(text))


def act(change: Callable[[], object], done: str) -> None:
    """Change something and draw the page again; an error is shown where the button is."""
    try:
        change()
    except AnnotatorError as error:
        frame.error(error)
        return
    tell(done)
    st.rerun()


def _look(db: Database, by: str, class_: Class) -> None:
    candidates = list(dict.fromkeys([*class_.examples, *cells.confirmed(db, class_.id, CANDIDATES)]))
    with st.form(f"look_{class_.id}", border=False):
        coloured = st.checkbox("Show a color beside its name", value=bool(class_.colour), key=f"coloured_{class_.id}")
        colour = st.color_picker("Color", class_.colour or GREY, key=f"colour_{class_.id}")
        st.write("Examples, shown on the card of the class:")
        if not candidates:
            st.caption("No image has this label yet.")
        chosen = _choose(db, class_, candidates)
        if st.form_submit_button("Save examples and color"):
            fields = {"colour": colour if coloured else "", "examples": chosen}
            act(lambda: class_changes.edit(db, by, {class_.id: fields}), f"Saved examples and color of {class_.name}.")


def _choose(db: Database, class_: Class, candidates: Sequence[int]) -> list[int]:
    """Draw images to choose examples from, and return those that are ticked, earlier examples first."""
    records, token, chosen = images.images(db, candidates), frame.token(), []
    row = st.container(horizontal=True)
    for image_id in candidates:
        with row, st.container(width=EXAMPLE, gap="small"):
            name = records[image_id].name
            st.html(
                f'<img src="{context.base()}/api/thumb/{image_id}?token={escape(token)}" alt="{escape(name)}" '
                'style="width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: 6px">'
            )
            key = f"example_{class_.id}_{image_id}"
            if st.checkbox(frame.escaped(name), value=image_id in class_.examples, key=key):
                chosen.append(image_id)
    return chosen


def _merge(db: Database, by: str, class_: Class, others: Sequence[Class]) -> None:
    names, key = {other.id: other.name for other in others}, "merge_into"
    into_id = st.selectbox(
        "Into",
        list(names),
        index=None,
        format_func=names.__getitem__,
        placeholder="Choose a class",
        key=frame.chosen(key, names),
    )
    if into_id is None:
        st.caption("Its labels go to the other class. Its name becomes a synonym.")
        return
    into = names[into_id]
    kind = f"{class_.name} is a kind of {into}"
    means = st.radio("They are", [SAME, kind], format_func=frame.escaped, key="merge_means")
    same = means != kind
    preview = class_changes.preview(db, [class_.id], into_id, same)
    counts = {"present": preview.present, "absent": preview.absent, "unsure": preview.unsure}
    gained = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    lines = [f"New answers for {into}: {gained or 'none'}."]
    if preview.conflicts:
        lines.append(f"{counted(preview.conflicts, 'image')} labeled absent for {into} will be present.")
    lines.append(f"{class_.name} is archived and becomes a synonym of {into}. Undo is in the history below.")
    for line in lines:
        st.write(frame.escaped(line))
    if st.button(f"Merge {frame.escaped(class_.name)} into {frame.escaped(into)}", key="merge"):
        act(lambda: class_changes.merge(db, by, [class_.id], into_id, same=same), f"Merged {class_.name} into {into}.")


def _split(db: Database, by: str, class_: Class) -> None:
    st.write(frame.escaped(f"Adds a class. A grid of {class_.name} asks which show it."))
    with st.form("split", border=False):
        name = st.text_input("Name of the new class", key="split_name").strip()
        if st.form_submit_button("Split off"):
            st.session_state["split_wanted"] = (class_.id, name)
    wanted = st.session_state.get("split_wanted")
    if wanted and wanted[0] == class_.id:
        names = _settled(db, wanted[1])
        if names:
            st.session_state.pop("split_wanted")
            _split_off(db, by, class_, names)
    for new_id, name, selection in st.session_state.get("split_off", []):
        frame.link("grid", f"Answer {frame.escaped(name)}", **{"class": str(new_id), "selection": selection})


def _settled(db: Database, name: str) -> list[str]:
    """Return the names that a typed name means; where it looks like a list, [] until the person has answered."""
    if not name_lists.lists_among([(name, "")], classes.by_name(db)):
        return [name]
    parts = name_lists.parts_of(name)
    frame.info(class_form.commas_question([name]))
    with st.container(horizontal=True):
        listed = frame.escaped(" and ".join(parts))
        if st.button(f"Split off {counted(len(parts), 'class', 'classes')}: {listed}", key="split_apart"):
            return parts
        if st.button(f"Split off one class named {frame.escaped(name)}", key="split_whole"):
            return [name]
    return []


def _split_off(db: Database, by: str, class_: Class, names: Sequence[str]) -> None:
    made: list[tuple[int, str, str]] = []
    try:
        for name in names:
            new_id, selection = class_changes.split(db, by, class_.id, name)
            made.append((new_id, name, selection))
    except AnnotatorError as error:
        frame.error(error)
    if made:
        st.session_state["split_off"] = made
        tell(f"Added {', '.join(name for _, name, _ in made)}, split off from {class_.name}.")
        st.rerun()
