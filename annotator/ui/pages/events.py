"""Events: the images that belong together, the gap that separates them, and what people split, merge and shift.

Nothing is found until somebody asks. What is shown follows from arrays in memory; of a million images the first look
takes some seconds, in a thread of its own.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from html import escape

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.shares import counted, parse_time, time_in_units
from annotator.store.database.database import Database
from annotator.store.events import capture, events
from annotator.store.events.events import Events
from annotator.store.events.summary import Event, Pair, Summary, doubtful_pairs, listed, summary
from annotator.store.images import images
from annotator.ui.access import context
from annotator.ui.parts import empty, frame
from annotator.ui.work.background import background

REFRESH = 1.0  # seconds, while the images are read
PAIRS = 6  # doubtful pairs that are shown
AT_ONCE = 10  # events of the list
FRAMES = 12  # images of an event that are shown; a longer one is counted
SAID = "events_said"  # what the last press did, in the session state
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
    """Draw the Events page."""
    with frame.errors_shown():
        by, db = frame.annotator_name(), context.db()
        if empty.shown(db, needs_classes=False):
            return
        st.html(STYLE)
        if not events.are_found(db):
            _begin(db)
            return
        found = _read(db)
        if found is None:
            return
        _told(db, by, found)
        _gap(db, by, found)
        _doubtful(db, by, found)
        _shift(db, by, found)
        _list(db, by, found)


def _begin(db: Database) -> None:
    """Say what events are, and offer to find them."""
    st.subheader("Events")
    st.markdown(
        "An event is a set of images that belong together, such as the photos of one trigger of a camera trap. Events "
        "are found from the times and folders of the images. Labels stay as they are."
    )
    if st.button("Find events", type="primary", key="find_events"):
        with st.spinner("Finding events..."):
            events.find(db)
        st.rerun()


def _read(db: Database) -> Events | None:
    """Return the events, or say that they are being read."""
    work = background(db).ask(("events", capture.stamp(db)), 0, lambda note: events.current(db).gap)
    if work.error:
        frame.error(work.error)
        return None
    if work.result is None:
        st.info("Reading the times of all images...")
        frame.refreshed(lambda: st.rerun() if work.ended.is_set() else None, REFRESH)()
        return None
    return events.current(db)


def _act(db: Database, change: Callable[[], object], said: str) -> None:
    """Make a change, and draw the page anew with what was done."""
    try:
        change()
    except AnnotatorError as problem:
        frame.error(problem)
        return
    st.session_state[SAID] = said
    st.rerun()


def _numbers(db: Database, found: Events) -> Summary:
    return db.caches.get("event numbers", (capture.stamp(db), found.edits), lambda: summary(found), 2)


def _told(db: Database, by: str, found: Events) -> None:
    """Draw the numbers, what the last press did, and what can be undone."""
    numbers = _numbers(db, found)
    st.subheader("Events")
    words = f"{counted(numbers.images, 'image')} in {counted(numbers.events, 'event')}."
    if numbers.without_time:
        words += f" {counted(numbers.without_time, 'image')} without a time: each is an event of its own."
    st.markdown(words)
    with st.container(horizontal=True):
        if not events.are_current(db):
            st.markdown("Images or facts have changed.")
            if st.button("Find again", type="primary", key="find_events"):
                _act(db, lambda: events.find(db), "Found again.")
        if found.edits:
            newest = events.in_words(db, found.edits[-1].change)
            if st.button(f"Undo {frame.escaped(newest)}", key="undo_event"):
                _act(db, lambda: events.undo(db, by), f"Undid {newest}.")
    if said := st.session_state.pop(SAID, ""):
        frame.info(said)


def _gap(db: Database, by: str, found: Events) -> None:
    """Draw the gap field and the histogram with the cut on it; another gap is shown before it is used."""
    st.subheader("Gap between events")
    given = st.text_input(
        "Images further apart are of different events",
        value=time_in_units(found.gap),
        help="Such as 60s, 2min or 1h. Press Enter to see what it would do.",
        key=f"event_gap_{found.gap:g}",
        width=340,
    )
    shown = found
    try:
        wanted = parse_time(given)
    except AnnotatorError as problem:
        frame.error(problem)
        wanted = found.gap
    if wanted != found.gap:
        shown = events.preview(db, wanted)
        would, now = int(shown.starts.sum()), int(found.starts.sum())
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Use {time_in_units(wanted)}", type="primary", key="use_gap"):
                _act(db, lambda: events.set_gap(db, wanted, by), f"The gap is {time_in_units(wanted)}.")
            st.markdown(f"{counted(would, 'event')}, now {now:,}.")
    st.caption("Time between neighbouring images. Above the line they are of one event, below it of different ones.")
    st.html(_histogram(_numbers(db, shown)))


def _histogram(numbers: Summary) -> str:
    bars = [bar for bar in numbers.gaps if bar.pairs]
    if not bars:
        return "<p>No two images of one place have a time, so no gap can be measured.</p>"
    most, is_cut, lines = max(bar.pairs for bar in bars), False, []
    for bar in bars:
        is_together = bar.up_to is not None and bar.up_to <= numbers.gap
        marks = "together" if is_together else "" if is_cut else "cut"
        is_cut = is_cut or not is_together
        name = (
            f"more than {time_in_units(bar.above)}"
            if bar.up_to is None
            else f"up to {time_in_units(bar.up_to)}"
            if bar.up_to
            else "same time"
        )
        lines.append(
            f'<tr class="{marks}"><th scope="row">{name}</th><td>{bar.pairs:,}</td>'
            f'<td class="bar"><i style="width: {100 * bar.pairs / most:.1f}%"></i></td></tr>'
        )
    return f'<table class="gaps" aria-label="Gaps between images"><tbody>{"".join(lines)}</tbody></table>'


def _doubtful(db: Database, by: str, found: Events) -> None:
    """Draw the pairs of neighbours nearest to the cut, each with the button that contradicts it."""
    pairs = db.caches.get("doubtful pairs", (capture.stamp(db), found.edits), lambda: doubtful_pairs(found, PAIRS), 1)
    if not pairs:
        return
    st.subheader("Least certain pairs")
    names = _names(db, (image_id for pair in pairs for image_id in (pair.before, pair.after)))
    with st.container(horizontal=True):
        for pair in pairs:
            with st.container(border=True, width=230):
                _pair(db, by, pair, names)


def _pair(db: Database, by: str, pair: Pair, names: dict[int, str]) -> None:
    st.html(_strip([pair.before, pair.after], names))
    st.markdown(f"{time_in_units(round(pair.gap, 1))} apart, {'one event' if pair.is_together else 'two events'}")
    after = names[pair.after]
    if pair.is_together:
        if st.button("Split", key=f"pair_split_{pair.after}"):
            _act(db, lambda: events.split(db, pair.after, by), f"Split before {after}.")
    elif st.button("Merge", key=f"pair_merge_{pair.after}"):
        _act(db, lambda: events.merge(db, pair.after, by), f"Merged before {after}.")


def _shift(db: Database, by: str, found: Events) -> None:
    """Draw the form that puts the clock of a folder right."""
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
        frame.error("Choose the folder whose clock was wrong.")
    elif wanted and folder is not None:
        try:
            seconds = parse_time(given)
        except AnnotatorError as problem:
            frame.error(problem)
            return
        said = f"Shifted {folder or 'all images'} by {time_in_units(seconds)}."
        _act(db, lambda: events.shift(db, folder, seconds, by), said)


def _list(db: Database, by: str, found: Events) -> None:
    """Draw the events, some at a time."""
    st.subheader("All events")
    count = int(found.starts.sum())
    pages = -(-count // AT_ONCE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        largest = st.toggle("Largest first", key="largest_events")
        number = 1
        if pages > 1:
            number = st.number_input(f"Page, of {pages:,}", 1, pages, key=f"events_page_{largest}", width=160)
    shown = listed(found, AT_ONCE * (number - 1), AT_ONCE, largest_first=largest)
    names = _names(db, (image_id for event in shown for image_id in (*event.image_ids[:FRAMES], event.id)))
    for event in shown:
        _event(db, by, event, names)


def _event(db: Database, by: str, event: Event, names: dict[int, str]) -> None:
    first = event.image_ids[0]
    with st.container(border=True):
        when = "" if event.began_at is None else f"{datetime.fromtimestamp(event.began_at, UTC):%Y-%m-%d %H:%M:%S}, "
        long = event.ended_at is not None and event.began_at is not None and event.ended_at - event.began_at
        lasts = f" in {time_in_units(round(long, 1))}" if long else ""
        title = escape(f"{names[first]}: {when}{counted(len(event.image_ids), 'image')}{lasts}")
        shown = event.image_ids[:FRAMES]
        st.html(f"<p>{title}</p>{_strip(shown, names, len(event.image_ids) - len(shown))}")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if event.has_before and st.button("Merge with the one before", key=f"merge_{first}"):
                _act(db, lambda: events.merge(db, first, by), f"Merged before {names[first]}.")
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
                    _act(db, lambda: events.split(db, place, by), f"Split before {names[place]}.")


def _names(db: Database, image_ids: Iterable[int]) -> dict[int, str]:
    return {image_id: image.name for image_id, image in images.images(db, set(image_ids)).items()}


def _strip(image_ids: Iterable[int], names: dict[int, str], more: int = 0) -> str:
    token, base = escape(frame.token()), context.base()
    figures = "".join(
        f'<figure><img src="{base}/api/thumb/{image_id}?token={token}" alt="" loading="lazy">'
        f"<figcaption>{escape(names[image_id])}</figcaption></figure>"
        for image_id in image_ids
    )
    rest = f"<figure>and {more:,} more</figure>" if more > 0 else ""
    return f'<div class="strip">{figures}{rest}</div>'
