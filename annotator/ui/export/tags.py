"""Tagged exports on the Export page: the list, and the changes between two of them or since one."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import streamlit as st

from annotator.errors import DiskFull
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.diff import Diff, compare
from annotator.exchange.exports.tags import cells_now, cells_of
from annotator.exchange.files.safe_names import safe_name
from annotator.exchange.files.text_cells import Rows
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports as tags
from annotator.ui.access import context
from annotator.ui.export.ordering import link_to, size_in_words
from annotator.ui.export.outlook import stamp_of, wait_for
from annotator.ui.parts import frame, note_list, tables
from annotator.ui.work.background import Note, background
from annotator.ui.work.downloads import Offered, downloads

NOW = "the current labels"
SHOWN = 100  # changed pairs
CHECK_EVERY = 2000  # changed pairs
HEAD = ("image", "class", "before", "after")


@dataclass(frozen=True)
class Row:
    """A tag, without its card."""

    name: str
    annotator: str
    tagged_at: float
    format: str
    target: str
    images: int
    classes: int
    states: dict[str, int]
    choices: dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """A comparison: what changed, the first changed pairs as in the CSV, and the file with all of them."""

    diff: Diff
    first: list[tuple[str, ...]]
    file: Offered


def section(db: Database) -> None:
    """Draw the list of tags, and the comparison of two."""
    st.subheader("Tagged exports")
    rows = db.caches.get("tagged exports", tags.newest_tag(db), lambda: _rows(db), 1)
    if not rows:
        st.info("No tagged export yet. Tag the next one to compare later.")
        return
    tables.show([_shown(row) for row in reversed(rows)], "Tagged exports, the newest first")
    _compare(db, rows)


def _rows(db: Database) -> list[Row]:
    """Return all tags, the oldest first."""
    rows = []
    for tag in tags.all_tags(db):
        states: Counter[str] = Counter()
        for class_ in tag.card["classes"]:
            for cell in class_["cells"]:
                states[cell["state"]] += cell["cells"]
        images, classes = tag.card["images"], len(tag.card["classes"])
        facts = (tag.name, tag.annotator, tag.tagged_at, tag.format, tag.target, images, classes)
        rows.append(Row(*facts, dict(states), tag.choices))
    return rows


def _shown(row: Row) -> dict[str, str]:
    states = {state.capitalize(): f"{row.states.get(state, 0):,}" for state in ("present", "absent", "unsure")}
    return {
        "Tag": row.name,
        "When": note_list.moment_in_words(row.tagged_at, frame.zone()),
        "Who": row.annotator,
        "Format": row.format,
        "Images": f"{row.images:,}",
        "Classes": f"{row.classes:,}",
        **states,
        "Where": row.target,
    }


def _compare(db: Database, rows: list[Row]) -> None:
    names = [row.name for row in rows]
    left, right, button = st.columns([2, 2, 1], vertical_alignment="bottom")
    with left:
        first = st.selectbox("What changed since", names, index=len(names) - 1, key="compare_from")
    later = names[names.index(first) + 1 :]
    with right:
        second = st.selectbox("until", [NOW, *later], key="compare_to")
    with button:
        if st.button("Compare", key="compare"):
            st.session_state["compared"], st.session_state["compare_again"] = (first, second), True
    if st.session_state.get("compared") != (first, second):
        return
    choices = Choices.from_json(next(row for row in rows if row.name == first).choices)
    key = ("diff", first, second)
    stamp = stamp_of(db) if second == NOW else ""
    again = st.session_state.pop("compare_again", False)
    work = background(db).ask(key, stamp, _comparing(db, first, second, choices), again=again)
    if work.error:
        frame.error(work.error)
    if work.result:
        _show(db, work.result, first, second)
    wait_for(work, "Comparing")


def _comparing(db: Database, first: str, second: str, choices: Choices) -> Callable[[Note], Compared]:
    def comparing(note: Note) -> Compared:
        folder = downloads(db).new_folder()
        try:
            until = "now" if second == NOW else second
            path = folder / f"{safe_name(f'{first} to {until}')}.csv"
            diff, rows = _written(db, path, first, second, choices, note)
            return Compared(diff, rows, downloads(db).offer(path, "text/csv"))
        except OSError as error:
            downloads(db).remove(folder.name)
            raise DiskFull(f"The changes could not be written: {error.strerror or error}. Is the disk full?") from error
        except BaseException:
            downloads(db).remove(folder.name)
            raise

    return comparing


def _written(
    db: Database, path: Path, first: str, second: str, choices: Choices, note: Note
) -> tuple[Diff, list[tuple[str, ...]]]:
    """Compare two exports and write all changed pairs to a new file; return the difference and the first pairs."""
    shown: list[tuple[str, ...]] = []
    written = 0
    with ExitStack() as stack:
        before = stack.enter_context(cells_of(db, first))
        after = stack.enter_context(cells_now(db, choices, note) if second == NOW else cells_of(db, second))
        rows = Rows(stack.enter_context(path.open("x", newline="", encoding="utf-8")))
        rows.row(HEAD)

        def keep(*change: str) -> None:
            nonlocal written
            rows.row(change)
            written += 1
            if len(shown) < SHOWN:
                shown.append(change)
            if written % CHECK_EVERY == 0:
                note(written, 0)

        return compare(db, before, after, keep), shown


def _show(db: Database, compared: Compared, first: str, second: str) -> None:
    diff = compared.diff
    pairs = sum(change.pairs for change in diff.changes)
    st.markdown(
        frame.escaped(
            f"From {first} to {second}: {counted(pairs, 'pair')} of {counted(diff.images_changed, 'image')} changed; "
            f"{counted(diff.images_added, 'image')} added, {diff.images_removed:,} removed, "
            f"{diff.images_in_both:,} in both."
        )
    )
    for what, names in (("added", diff.classes_added), ("removed", diff.classes_removed)):
        if names:
            st.markdown(frame.escaped(f"{counted(len(names), 'class', 'classes')} {what}: {', '.join(names)}."))
    for before, after in diff.renamed:
        st.markdown(frame.escaped(f"Class {before!r} is called {after!r} now."))
    if not pairs:
        return
    tables.show(
        [
            {
                "Class": change.name,
                "Before": change.before,
                "After": change.after,
                "Pairs": f"{change.pairs:,}",
                "Such as": ", ".join(change.examples),
            }
            for change in diff.changes
        ],
        "Changes by class",
    )
    with st.expander(f"The first {len(compared.first)} changed pairs"):
        tables.show([dict(zip(HEAD, row, strict=True)) for row in compared.first], "Changed pairs")
    if downloads(db).find(compared.file.id):
        address = f"{context.base()}/api/download/{quote(compared.file.id)}?token={quote(frame.token())}"
        link_to(address, compared.file.path, size_in_words(compared.file.bytes), compared.file.expires_at)
    else:
        st.caption("The list of all changes has expired. Compare again.")
