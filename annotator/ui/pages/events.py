"""The Events page: groups of images, found on request, their time gap, and manual corrections."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from html import escape

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_exact_duration, parse_duration
from annotator.store.database.database import Database
from annotator.store.events import capture, project_events
from annotator.store.events.event_summary import (
    Event,
    EventSummary,
    NeighborPair,
    find_doubtful_pairs,
    list_events,
    summarize_events,
)
from annotator.store.events.project_events import Events
from annotator.store.images import images
from annotator.ui.access import served_project
from annotator.ui.shared import empty_notice
from annotator.ui.shared.annotator_name import create_token, require_annotator_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_errors, show_info
from annotator.ui.shared.page_access import build_fragment
from annotator.ui.shared.work.computations import get_computations

REFRESH_SECONDS = 1.0  # seconds, while the images are read
MAX_PAIRS_SHOWN = 6  # doubtful pairs that are shown
EVENTS_PER_PAGE = 10  # events of the list
MAX_IMAGES_SHOWN = 12  # images of an event that are shown; a longer one is counted
MESSAGE_KEY = "events_said"  # what the last press did, in the session state
STYLE = """<style>
.gaps {border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; width: 100%; max-width: 44rem;}
.gaps th {text-align: left; font-weight: inherit; white-space: nowrap; padding: 2px 1rem 2px 0; width: 9rem;}
.gaps td {padding: 2px 0; white-space: nowrap;}
.gaps td.bar {width: 100%; padding-left: 0.6rem;}
.gaps i {display: block; height: 0.8rem; border-radius: 2px; min-width: 2px; background: light-dark(#8a9391, #8a9391);}
.gaps .together i {background: light-dark(#0f7b6c, #43b5a2);}
.gaps .cut > * {border-top: 2px solid light-dark(#8a1f18, #f0938a);}
.strip {display: flex; gap: 4px; flex-wrap: wrap;}
.strip figure {margin: 0; width: 6rem; font-size: 0.75rem; overflow-wrap: anywhere;}
.strip img {width: 100%; aspect-ratio: 4 / 3; object-fit: cover; border-radius: 4px;}
</style>"""


def page() -> None:
    with show_errors():
        by, db = require_annotator_name(), served_project.db()
        if empty_notice.draw_if_empty(db, needs_classes=False):
            return
        st.html(STYLE)
        if not project_events.have_been_found(db):
            _draw_start(db)
            return
        found = _load_events(db)
        if found is None:
            return
        _draw_summary(db, by, found)
        _draw_gap(db, by, found)
        _draw_doubtful_pairs(db, by, found)
        _draw_shift_form(db, by, found)
        _draw_events(db, by, found)


def _draw_start(db: Database) -> None:
    st.subheader("Events")
    st.markdown(
        "An event is a set of images that belong together, such as the photos of one trigger of a camera trap. Events "
        "are found from the times and folders of the images. Labels stay as they are."
    )
    if st.button("Find events", type="primary", key="find_events"):
        with st.spinner("Finding events..."):
            project_events.find_and_save(db)
        st.rerun()


def _load_events(db: Database) -> Events | None:
    """Return the events, or draw progress and return None while they are loaded."""
    work = get_computations(db).request(
        ("events", capture.get_change_key(db)), 0, lambda note: project_events.derive_current(db).gap
    )
    if work.error:
        show_error(work.error)
        return None
    if work.result is None:
        st.info("Reading the times of all images...")
        build_fragment(lambda: st.rerun() if work.ended.is_set() else None, REFRESH_SECONDS)()
        return None
    return project_events.derive_current(db)


def _apply_change(db: Database, change: Callable[[], object], message: str) -> None:
    try:
        change()
    except AnnotatorError as problem:
        show_error(problem)
        return
    st.session_state[MESSAGE_KEY] = message
    st.rerun()


def _load_summary(db: Database, found: Events) -> EventSummary:
    return db.caches.get("event numbers", (capture.get_change_key(db), found.edits), lambda: summarize_events(found), 2)


def _draw_summary(db: Database, by: str, found: Events) -> None:
    numbers = _load_summary(db, found)
    st.subheader("Events")
    words = f"{format_count(numbers.images, 'image')} in {format_count(numbers.events, 'event')}."
    if numbers.without_time:
        words += f" {format_count(numbers.without_time, 'image')} without a time: each is an event of its own."
    st.markdown(words)
    with st.container(horizontal=True):
        if not project_events.are_current(db):
            st.markdown("Images or facts have changed.")
            if st.button("Find again", type="primary", key="find_events"):
                _apply_change(db, lambda: project_events.find_and_save(db), "Found again.")
        if found.edits:
            newest = project_events.describe_change(db, found.edits[-1].change)
            if st.button(f"Undo {escape_markdown(newest)}", key="undo_event"):
                _apply_change(db, lambda: project_events.undo(db, by), f"Undid {newest}.")
    if said := st.session_state.pop(MESSAGE_KEY, ""):
        show_info(said)


def _draw_gap(db: Database, by: str, found: Events) -> None:
    """Draw the gap field with its histogram, previewing other gaps."""
    st.subheader("Gap between events")
    given = st.text_input(
        "Images further apart are of different events",
        value=format_exact_duration(found.gap),
        help="Such as 60s, 2min or 1h. Press Enter to see what it would do.",
        key=f"event_gap_{found.gap:g}",
        width=340,
    )
    shown = found
    try:
        wanted = parse_duration(given)
    except AnnotatorError as problem:
        show_error(problem)
        wanted = found.gap
    if wanted != found.gap:
        shown = project_events.preview_gap(db, wanted)
        would, now = int(shown.starts.sum()), int(found.starts.sum())
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Use {format_exact_duration(wanted)}", type="primary", key="use_gap"):
                _apply_change(
                    db, lambda: project_events.set_gap(db, wanted, by), f"The gap is {format_exact_duration(wanted)}."
                )
            st.markdown(f"{format_count(would, 'event')}, now {now:,}.")
    st.caption("Time between neighbouring images. Above the line they are of one event, below it of different ones.")
    st.html(_render_histogram(_load_summary(db, shown)))


def _render_histogram(numbers: EventSummary) -> str:
    bars = [bar for bar in numbers.gaps if bar.pairs]
    if not bars:
        return "<p>No two images of one place have a time, so no gap can be measured.</p>"
    most, is_cut, lines = max(bar.pairs for bar in bars), False, []
    for bar in bars:
        is_together = bar.up_to is not None and bar.up_to <= numbers.gap
        marks = "together" if is_together else "" if is_cut else "cut"
        is_cut = is_cut or not is_together
        name = (
            f"more than {format_exact_duration(bar.above)}"
            if bar.up_to is None
            else f"up to {format_exact_duration(bar.up_to)}"
            if bar.up_to
            else "same time"
        )
        lines.append(
            f'<tr class="{marks}"><th scope="row">{name}</th><td>{bar.pairs:,}</td>'
            f'<td class="bar"><i style="width: {100 * bar.pairs / most:.1f}%"></i></td></tr>'
        )
    return f'<table class="gaps" aria-label="Gaps between images"><tbody>{"".join(lines)}</tbody></table>'


def _draw_doubtful_pairs(db: Database, by: str, found: Events) -> None:
    """Draw the least certain pairs, each with a correction button."""
    pairs = db.caches.get(
        "doubtful pairs",
        (capture.get_change_key(db), found.edits),
        lambda: find_doubtful_pairs(found, MAX_PAIRS_SHOWN),
        1,
    )
    if not pairs:
        return
    st.subheader("Least certain pairs")
    names = _load_image_names(db, (image_id for pair in pairs for image_id in (pair.before, pair.after)))
    with st.container(horizontal=True):
        for pair in pairs:
            with st.container(border=True, width=230):
                _draw_pair(db, by, pair, names)


def _draw_pair(db: Database, by: str, pair: NeighborPair, names: dict[int, str]) -> None:
    st.html(_render_strip([pair.before, pair.after], names))
    st.markdown(
        f"{format_exact_duration(round(pair.gap, 1))} apart, {'one event' if pair.is_together else 'two events'}"
    )
    after = names[pair.after]
    if pair.is_together:
        if st.button("Split", key=f"pair_split_{pair.after}"):
            _apply_change(db, lambda: project_events.split_event(db, pair.after, by), f"Split before {after}.")
    elif st.button("Merge", key=f"pair_merge_{pair.after}"):
        _apply_change(db, lambda: project_events.merge(db, pair.after, by), f"Merged before {after}.")


def _draw_shift_form(db: Database, by: str, found: Events) -> None:
    st.subheader("A clock was wrong")
    folders = ["", *sorted(name for name in found.captures.folder_names if name)]
    with st.form("event_shift", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        folder = st.selectbox(
            "Folder",
            folders,
            index=None,
            format_func=lambda name: name or "All images",
            placeholder="Choose a folder",
            width=320,
        )
        given = st.text_input("Add to its times", placeholder="+1h, or -20min", width=200)
        wanted = st.form_submit_button("Shift")
    if wanted and folder is None:
        show_error("Choose the folder whose clock was wrong.")
    elif wanted and folder is not None:
        try:
            seconds = parse_duration(given)
        except AnnotatorError as problem:
            show_error(problem)
            return
        said = f"Shifted {folder or 'all images'} by {format_exact_duration(seconds)}."
        _apply_change(db, lambda: project_events.shift_clock(db, folder, seconds, by), said)


def _draw_events(db: Database, by: str, found: Events) -> None:
    st.subheader("All events")
    count = int(found.starts.sum())
    pages = -(-count // EVENTS_PER_PAGE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        largest = st.toggle("Largest first", key="largest_events")
        number = 1
        if pages > 1:
            number = st.number_input(f"Page, of {pages:,}", 1, pages, key=f"events_page_{largest}", width=160)
    shown = list_events(found, EVENTS_PER_PAGE * (number - 1), EVENTS_PER_PAGE, largest_first=largest)
    names = _load_image_names(
        db, (image_id for event in shown for image_id in (*event.image_ids[:MAX_IMAGES_SHOWN], event.id))
    )
    for event in shown:
        _draw_event(db, by, event, names)


def _draw_event(db: Database, by: str, event: Event, names: dict[int, str]) -> None:
    first = event.image_ids[0]
    with st.container(border=True):
        when = "" if event.began_at is None else f"{datetime.fromtimestamp(event.began_at, UTC):%Y-%m-%d %H:%M:%S}, "
        long = event.ended_at is not None and event.began_at is not None and event.ended_at - event.began_at
        lasts = f" in {format_exact_duration(round(long, 1))}" if long else ""
        title = escape(f"{names[first]}: {when}{format_count(len(event.image_ids), 'image')}{lasts}")
        shown = event.image_ids[:MAX_IMAGES_SHOWN]
        st.html(f"<p>{title}</p>{_render_strip(shown, names, len(event.image_ids) - len(shown))}")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if event.has_before and st.button("Merge with the one before", key=f"merge_{first}"):
                _apply_change(db, lambda: project_events.merge(db, first, by), f"Merged before {names[first]}.")
            if len(shown) > 1:
                place = st.selectbox(
                    "Split before",
                    shown[1:],
                    index=None,
                    format_func=lambda image_id: names[image_id],
                    placeholder="an image",
                    key=f"split_{first}_{len(event.image_ids)}",
                    width=260,
                )
                if place is not None:
                    _apply_change(
                        db, lambda: project_events.split_event(db, place, by), f"Split before {names[place]}."
                    )


def _load_image_names(db: Database, image_ids: Iterable[int]) -> dict[int, str]:
    return {image_id: image.name for image_id, image in images.load_images(db, set(image_ids)).items()}


def _render_strip(image_ids: Iterable[int], names: dict[int, str], remaining: int = 0) -> str:
    token, base = escape(create_token()), served_project.base_path()
    figures = "".join(
        f'<figure><img src="{base}/api/thumb/{image_id}?token={token}" alt="" loading="lazy">'
        f'<figcaption dir="auto">{escape(names[image_id])}</figcaption></figure>'
        for image_id in image_ids
    )
    rest = f"<figure>and {remaining:,} more</figure>" if remaining > 0 else ""
    return f'<div class="strip">{figures}{rest}</div>'
