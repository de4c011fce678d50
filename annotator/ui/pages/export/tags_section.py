"""The Export page section of tagged exports and comparisons."""

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
from annotator.exchange.exports.diff import Diff, compare_exports
from annotator.exchange.exports.tagged_cells import open_current_cells, open_tagged_cells
from annotator.exchange.files.csv_cells import CsvWriter
from annotator.exchange.files.safe_names import safe_name
from annotator.humanize import format_count
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports
from annotator.ui.access import served_project
from annotator.ui.pages.export.start_section import draw_download_link, format_size
from annotator.ui.shared import html_tables
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.computation_progress import compute_stamp, draw_progress
from annotator.ui.shared.local_time import format_moment, get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error
from annotator.ui.shared.work.computations import get_computations
from annotator.ui.shared.work.downloads import OfferedFile, get_downloads

CURRENT_LABELS = "the current labels"
MAX_PAIRS_SHOWN = 100  # changed pairs
REPORT_EVERY_PAIRS = 2000  # changed pairs
CSV_HEADER = ("image", "class", "before", "after")


@dataclass(frozen=True)
class TagRow:
    """The data of one tagged export in the table of tags, without its data card."""

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
class Comparison:
    """The difference between two tagged exports, with a file of all changed labels."""

    diff: Diff
    first: list[tuple[str, ...]]
    file: OfferedFile


def draw(db: Database) -> None:
    """Draw the tagged exports and the comparison of two of them."""
    st.subheader("Tagged exports")
    rows = db.caches.get("tagged exports", tagged_exports.get_newest_tag_id(db), lambda: _load_rows(db), 1)
    if not rows:
        st.info("No tagged export yet. Tag the next one to compare later.")
        return
    html_tables.show([_format_row(row) for row in reversed(rows)], "Tagged exports, the newest first")
    _draw_comparison_form(db, rows)


def _load_rows(db: Database) -> list[TagRow]:
    rows = []
    for tag in tagged_exports.load_tags(db):
        states: Counter[str] = Counter()
        for class_ in tag.card["classes"]:
            for cell in class_["cells"]:
                states[cell["state"]] += cell["cells"]
        images, classes = tag.card["images"], len(tag.card["classes"])
        facts = (tag.name, tag.annotator, tag.tagged_at, tag.format, tag.target, images, classes)
        rows.append(TagRow(*facts, dict(states), tag.choices))
    return rows


def _format_row(row: TagRow) -> dict[str, str]:
    states = {state.capitalize(): f"{row.states.get(state, 0):,}" for state in ("present", "absent", "unsure")}
    return {
        "Tag": row.name,
        "When": format_moment(row.tagged_at, get_time_zone()),
        "Who": row.annotator,
        "Format": row.format,
        "Images": f"{row.images:,}",
        "Classes": f"{row.classes:,}",
        **states,
        "Where": row.target,
    }


def _draw_comparison_form(db: Database, rows: list[TagRow]) -> None:
    names = [row.name for row in rows]
    left, right, button = st.columns([2, 2, 1], vertical_alignment="bottom")
    with left:
        first = st.selectbox("What changed since", names, index=len(names) - 1, key="compare_from")
    later = names[names.index(first) + 1 :]
    with right:
        second = st.selectbox("until", [CURRENT_LABELS, *later], key="compare_to")
    with button:
        if st.button("Compare", key="compare"):
            st.session_state["compared"], st.session_state["compare_again"] = (first, second), True
    if st.session_state.get("compared") != (first, second):
        return
    choices = Choices.from_json(next(row for row in rows if row.name == first).choices)
    key = ("diff", first, second)
    stamp = compute_stamp(db) if second == CURRENT_LABELS else ""
    again = st.session_state.pop("compare_again", False)
    work = get_computations(db).request(key, stamp, _build_comparison(db, first, second, choices), force=again)
    if work.error:
        show_error(work.error)
    if work.result:
        _draw_comparison(db, work.result, first, second)
    draw_progress(work, "Comparing")


def _build_comparison(
    db: Database, first: str, second: str, choices: Choices
) -> Callable[[ProgressCallback], Comparison]:
    def comparing(note: ProgressCallback) -> Comparison:
        folder = get_downloads(db).create_folder()
        try:
            until = "now" if second == CURRENT_LABELS else second
            path = folder / f"{safe_name(f'{first} to {until}')}.csv"
            diff, rows = _write_changes(db, path, first, second, choices, note)
            return Comparison(diff, rows, get_downloads(db).offer(path, "text/csv"))
        except OSError as error:
            get_downloads(db).remove(folder.name)
            raise DiskFull(f"The changes could not be written: {error.strerror or error}. Is the disk full?") from error
        except BaseException:
            get_downloads(db).remove(folder.name)
            raise

    return comparing


def _write_changes(
    db: Database, path: Path, first: str, second: str, choices: Choices, note: ProgressCallback
) -> tuple[Diff, list[tuple[str, ...]]]:
    shown: list[tuple[str, ...]] = []
    written = 0
    with ExitStack() as stack:
        before = stack.enter_context(open_tagged_cells(db, first))
        after = stack.enter_context(
            open_current_cells(db, choices, note) if second == CURRENT_LABELS else open_tagged_cells(db, second)
        )
        rows = CsvWriter(stack.enter_context(path.open("x", newline="", encoding="utf-8")))
        rows.write_row(CSV_HEADER)

        def keep(*change: str) -> None:
            nonlocal written
            rows.write_row(change)
            written += 1
            if len(shown) < MAX_PAIRS_SHOWN:
                shown.append(change)
            if written % REPORT_EVERY_PAIRS == 0:
                note(written, 0)

        return compare_exports(db, before, after, keep), shown


def _draw_comparison(db: Database, compared: Comparison, first: str, second: str) -> None:
    diff = compared.diff
    pairs = sum(change.pairs for change in diff.changes)
    st.markdown(
        escape_markdown(
            f"From {first} to {second}: {format_count(pairs, 'pair')} of {format_count(diff.images_changed, 'image')} "
            f"changed; {format_count(diff.images_added, 'image')} added, {diff.images_removed:,} removed, "
            f"{diff.images_in_both:,} in both."
        )
    )
    for what, names in (("added", diff.classes_added), ("removed", diff.classes_removed)):
        if names:
            st.markdown(escape_markdown(f"{format_count(len(names), 'class', 'classes')} {what}: {', '.join(names)}."))
    for before, after in diff.renamed:
        st.markdown(escape_markdown(f"Class {before!r} is called {after!r} now."))
    if not pairs:
        return
    html_tables.show(
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
        html_tables.show([dict(zip(CSV_HEADER, row, strict=True)) for row in compared.first], "Changed pairs")
    if get_downloads(db).find(compared.file.id):
        address = f"{served_project.base_path()}/api/download/{quote(compared.file.id)}?token={quote(create_token())}"
        draw_download_link(address, compared.file.path, format_size(compared.file.bytes), compared.file.expires_at)
    else:
        st.caption("The list of all changes has expired. Compare again.")
