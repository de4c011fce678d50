"""Images: the folders of the project, adding one, what was skipped and why, and the worker's log."""

import io
from collections.abc import Callable, Sequence

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.band_choice import change_bands, seconds_to_analyze
from annotator.exchange.files.text_cells import Rows
from annotator.exchange.imports.in_words import registered_in_words
from annotator.records import BadFile
from annotator.shares import counted
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import address_cache as fetched
from annotator.store.images import images
from annotator.store.images.band_choice import has_many_bands, waiting_folders
from annotator.store.images.band_setting import bands_in_words, shown_bands
from annotator.store.locations.objects import is_remote, stored_folder
from annotator.store.pictures.bands import parsed
from annotator.ui.access import context
from annotator.ui.parts import frame, tables
from annotator.ui.work.adding import Adding, Progress, adding
from annotator.ui.work.paths import whole_path

REFRESH = 1.0  # seconds, while a folder is being added
LOG_REFRESH = 5.0
LOG_LINES, LOG_SHOWN = 200, 100_000  # lines and bytes on the page
LOG_MOST = 5_000_000  # bytes of the download
SUMMED_UP = 20_000  # files counted by reason; the download has all
EXAMPLES = 100


def page() -> None:
    """Draw the Images page."""
    with frame.errors_shown():
        frame.annotator_name()
        db = context.db()
        known = _folders(db)
        _cache(db, known)
        _bands(db)
        _add(db, known)
        _kept_out(db)
        _missing(db)
        frame.refreshed(_log, LOG_REFRESH)()


def _folders(db: Database) -> list[images.Folder]:
    st.subheader("Folders")
    # Files of folders change with registrations only, and while one runs the numbers of before will do.
    registered = db.setting("registrations", 0)
    known = db.caches.get("folders", (registered, adding(db).is_at_work), lambda: images.folders(db), 1)
    if not known:
        st.info("No images yet. Add a folder below.")
        return []
    rows = [
        {"Folder": folder.path, "Images": f"{folder.images:,}", "Skipped": f"{folder.kept_out:,}"} for folder in known
    ]
    tables.show(rows, "Folders of this project")
    return known


def _add(db: Database, known: Sequence[images.Folder]) -> None:
    work = adding(db)
    at_work = work.is_at_work
    with st.form("add_folder", border=False):
        given = st.text_input(
            "Add a folder of images",
            placeholder="/home/ann/photos",
            help="On the machine that runs Annotator, subfolders included. Files are never changed or moved.",
            key="folder",
        )
        with st.container(horizontal=True):
            add = st.form_submit_button("Add folder", type="primary", disabled=at_work)
            again = st.form_submit_button(
                "Look for changes",
                disabled=at_work or not known,
                help="Finds new, moved and deleted files in the folders above.",
            )
    try:
        if add or again:
            work.start([whole_path(given)] if add else [stored_folder(folder.path) for folder in known])
            st.session_state["was_adding"] = True
    except AnnotatorError as error:
        frame.error(error)
    frame.refreshed(_progress, REFRESH if work.is_at_work else None)(work)


def _cache(db: Database, known: Sequence[images.Folder]) -> None:
    """Draw the disk space for images read at addresses, where the project has any."""
    if not any(is_remote(folder.path) for folder in known):
        return
    files, used = fetched.cache(db).used()
    st.number_input(
        "Disk for images that were read at addresses, in GB",
        fetched.LEAST_GB,
        step=1.0,
        help="Beyond it, what was looked at longest ago is deleted first.",
        **frame.follows("cache_gb", fetched.cache_gb(db), lambda gigabytes: fetched.set_cache_gb(db, gigabytes)),
    )
    st.caption(f"{used / fetched.GB:,.2f} GB are used, by {files:,} {'file' if files == 1 else 'files'}.")


def _bands(db: Database) -> None:
    """Draw the choice of bands, where the project has images of many, or files that wait for the choice."""
    waiting = waiting_folders(db)
    if not waiting and not has_many_bands(db):
        return
    with st.form("bands", border=False):
        given = st.text_input(
            "Bands shown as red, green and blue",
            placeholder="4,3,2",
            help="For images of many bands; one number is gray. Another choice analyzes them again.",
            key="bands_shown",
        )
        chosen = st.form_submit_button("Show these bands", disabled=adding(db).is_at_work)
    for sentence in bands_in_words(shown_bands(db)):
        st.caption(frame.escaped(sentence))
    if chosen:
        try:
            changed = change_bands(db, parsed(given))
            frame.info(f"{counted(len(changed), 'image')} to analyze again; {seconds_to_analyze(db, changed)}.")
            if waiting:
                adding(db).start([*map(stored_folder, waiting)])
                st.session_state["was_adding"] = True
        except AnnotatorError as error:
            frame.error(error)


def _progress(work: Adding) -> None:
    progress: Progress = work.progress
    if work.is_at_work and progress.folder:
        name = frame.escaped(progress.folder)
        words = f"{progress.done:,} of {progress.of:,} files of {name}" if progress.of else f"Listing {name}"
        st.progress(progress.done / progress.of if progress.of else 0.0, text=words)
        st.button("Stop", on_click=work.stop, key="stop_adding")
        st.session_state["was_adding"] = True
    elif st.session_state.pop("was_adding", False):
        st.rerun()  # the whole page: it shows new numbers and refreshes no more
    for outcome in progress.outcomes:
        if outcome.registered:
            frame.info(f"{outcome.folder}: {registered_in_words(outcome.registered)}.")
            for sentence in outcome.registered.said():
                st.caption(frame.escaped(sentence))
        else:
            frame.error(outcome.error)


def _kept_out(db: Database) -> None:
    st.subheader("Skipped files")
    if not (count := images.count_kept_out(db)):
        st.caption("No files were skipped.")
        return
    st.caption(f"{count:,} {'file' if count == 1 else 'files'} in these folders cannot be used as images.")
    rows = images.kept_out_by_reason(db, SUMMED_UP)
    _reasons([(row["reason"], row["files"], row["example"]) for row in rows], "files", "Skipped files, by reason")
    _list("kept_out", ("file", "reason"), lambda limit: images.kept_out(db, limit))


def _missing(db: Database) -> None:
    st.subheader("Missing images")
    if not (count := images.count_missing(db)):
        st.caption("Every image can be shown.")
        return
    st.caption(
        f"{count:,} {'image' if count == 1 else 'images'} cannot be shown any more. Their labels are kept, and they "
        "come back with their files."
    )
    rows = images.missing_by_reason(db, SUMMED_UP)
    reasons = [(row["reason"], row["images"], row["example"]) for row in rows]
    _reasons(reasons, "images", "Images that cannot be shown, by reason")
    _list("missing", ("image", "reason"), lambda limit: images.missing(db, limit))


def _reasons(rows: Sequence[tuple[str, int, str]], what: str, label: str) -> None:
    tables.show(
        [{"Reason": reason, what.capitalize(): f"{count:,}", "For example": name} for reason, count, name in rows],
        label,
    )


def _list(name: str, titles: tuple[str, str], read: Callable[[int | None], list[BadFile]]) -> None:
    """Draw the first files of a list, and a download of all of them."""
    with st.expander(f"The first {EXAMPLES}", key=f"first_{name}"):
        rows = [{titles[0].capitalize(): bad.path, "Reason": bad.reason} for bad in read(EXAMPLES)]
        tables.show(rows, f"The first of them, with what is wrong: {name}")
    frame.download(
        "Download all as CSV",
        lambda: _csv(titles, read(None)),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download_{name}",
    )


def _csv(titles: Sequence[str], rows: Sequence[BadFile]) -> bytes:
    text = io.StringIO()
    out = Rows(text)
    out.row(titles)
    for bad in rows:
        out.row([bad.path, bad.reason])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _log() -> None:
    st.subheader("The worker's log")
    db = context.db()
    text = heartbeat.log_end(db, LOG_SHOWN).decode(errors="replace")
    lines = text.splitlines()[-LOG_LINES:]
    if not lines:
        st.caption("Nothing to report since the worker was started.")
        return
    st.caption("Newest lines last. A restart of the worker begins it anew.")
    with st.container(height=320):
        st.code("\n".join(lines), language=None)
    frame.download(
        "Download the log",
        lambda: heartbeat.log_end(db, LOG_MOST),
        file_name="worker.log",
        mime="text/plain",
        key="download_log",
    )
