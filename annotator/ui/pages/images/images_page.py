"""The Images page: folders, skipped files and the worker's log."""

import io
from collections.abc import Callable, Sequence

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.band_selection import change_bands, describe_analysis_time
from annotator.exchange.files.csv_cells import CsvWriter
from annotator.exchange.imports.import_messages import describe_registration
from annotator.humanize import format_count
from annotator.records import BadFile
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import address_cache, images
from annotator.store.images.band_choice import find_waiting_folders, has_multiband_images
from annotator.store.images.band_setting import describe_bands, get_shown_bands
from annotator.store.locations.remote_files import is_remote, parse_stored_folder
from annotator.store.pictures.bands import parse_bands
from annotator.ui.access import served_project
from annotator.ui.pages.images.image_adder import AddProgress, ImageAdder, get_image_adder
from annotator.ui.shared import html_tables, widget_values
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_errors, show_info
from annotator.ui.shared.page_access import build_fragment, draw_download_button
from annotator.ui.shared.work.readable_paths import parse_absolute_path

REFRESH_SECONDS = 1.0  # seconds, while a folder is being added
LOG_REFRESH_SECONDS = 5.0
MAX_LOG_LINES, MAX_LOG_BYTES = 200, 100_000  # lines and bytes on the page
MAX_DOWNLOAD_BYTES = 5_000_000  # bytes of the download
MAX_FILES_COUNTED = 20_000  # files counted by reason; the download has all
MAX_EXAMPLES_SHOWN = 100


def page() -> None:
    with show_errors():
        require_annotator_name()
        db = served_project.db()
        known = _draw_folders(db)
        _draw_cache(db, known)
        _draw_bands(db)
        _draw_add_form(db, known)
        _draw_skipped_files(db)
        _draw_missing_images(db)
        build_fragment(_draw_log, LOG_REFRESH_SECONDS)()


def _draw_folders(db: Database) -> list[images.Folder]:
    st.subheader("Folders")
    # Files of folders change with registrations only, and while one runs the numbers of before will do.
    registered = db.get_setting("registrations", 0)
    known = db.caches.get("folders", (registered, get_image_adder(db).is_at_work), lambda: images.load_folders(db), 1)
    if not known:
        st.info("No images yet. Add a folder below.")
        return []
    rows = [
        {"Folder": folder.path, "Images": f"{folder.images:,}", "Skipped": f"{folder.kept_out:,}"} for folder in known
    ]
    html_tables.show(rows, "Folders of this project")
    return known


def _draw_add_form(db: Database, known: Sequence[images.Folder]) -> None:
    work = get_image_adder(db)
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
            work.start([parse_absolute_path(given)] if add else [parse_stored_folder(folder.path) for folder in known])
            st.session_state["was_adding"] = True
    except AnnotatorError as error:
        show_error(error)
    build_fragment(_draw_progress, REFRESH_SECONDS if work.is_at_work else None)(work)


def _draw_cache(db: Database, known: Sequence[images.Folder]) -> None:
    """Draw the disk limit for remote images, if any."""
    if not any(is_remote(folder.path) for folder in known):
        return
    files, used = address_cache.get_cache(db).measure_usage()
    st.number_input(
        "Disk for images that were read at addresses, in GB",
        address_cache.MIN_CACHE_GB,
        step=1.0,
        help="Beyond it, what was looked at longest ago is deleted first.",
        **widget_values.bind_setting(
            "cache_gb", address_cache.get_cache_gb(db), lambda gigabytes: address_cache.set_cache_gb(db, gigabytes)
        ),
    )
    st.caption(
        f"{used / address_cache.BYTES_PER_GB:,.2f} GB are used, by {files:,} {'file' if files == 1 else 'files'}."
    )


def _draw_bands(db: Database) -> None:
    waiting = find_waiting_folders(db)
    if not waiting and not has_multiband_images(db):
        return
    with st.form("bands", border=False):
        given = st.text_input(
            "Bands shown as red, green and blue",
            placeholder="4,3,2",
            help="For images of many bands; one number is gray. Another choice analyzes them again.",
            key="bands_shown",
        )
        chosen = st.form_submit_button("Show these bands", disabled=get_image_adder(db).is_at_work)
    for sentence in describe_bands(get_shown_bands(db)):
        st.caption(escape_markdown(sentence))
    if chosen:
        try:
            changed = change_bands(db, parse_bands(given))
            show_info(f"{format_count(len(changed), 'image')} to analyze again; {describe_analysis_time(db, changed)}.")
            if waiting:
                get_image_adder(db).start([*map(parse_stored_folder, waiting)])
                st.session_state["was_adding"] = True
        except AnnotatorError as error:
            show_error(error)


def _draw_progress(work: ImageAdder) -> None:
    progress: AddProgress = work.progress
    if work.is_at_work and progress.folder:
        name = escape_markdown(progress.folder)
        words = f"{progress.done:,} of {progress.of:,} files of {name}" if progress.of else f"Listing {name}"
        st.progress(progress.done / progress.of if progress.of else 0.0, text=words)
        st.button("Stop", on_click=work.stop, key="stop_adding")
        st.session_state["was_adding"] = True
    elif st.session_state.pop("was_adding", False):
        st.rerun()  # the whole page: it shows new numbers and refreshes no more
    for outcome in progress.outcomes:
        if outcome.registered:
            show_info(f"{outcome.folder}: {describe_registration(outcome.registered)}.")
            for sentence in outcome.registered.format_sentences():
                st.caption(escape_markdown(sentence))
        else:
            show_error(outcome.error)


def _draw_skipped_files(db: Database) -> None:
    st.subheader("Skipped files")
    if not (count := images.count_rejected_files(db)):
        st.caption("No files were skipped.")
        return
    st.caption(f"{count:,} {'file' if count == 1 else 'files'} in these folders cannot be used as images.")
    rows = images.count_rejected_by_reason(db, MAX_FILES_COUNTED)
    _draw_reasons([(row["reason"], row["files"], row["example"]) for row in rows], "files", "Skipped files, by reason")
    _draw_files("kept_out", ("file", "reason"), lambda limit: images.load_rejected_files(db, limit))


def _draw_missing_images(db: Database) -> None:
    st.subheader("Missing images")
    if not (count := images.count_missing(db)):
        st.caption("Every image can be shown.")
        return
    st.caption(
        f"{count:,} {'image' if count == 1 else 'images'} cannot be shown any more. Their labels are kept, and they "
        "come back with their files."
    )
    rows = images.count_missing_by_reason(db, MAX_FILES_COUNTED)
    reasons = [(row["reason"], row["images"], row["example"]) for row in rows]
    _draw_reasons(reasons, "images", "Images that cannot be shown, by reason")
    _draw_files("missing", ("image", "reason"), lambda limit: images.load_missing_images(db, limit))


def _draw_reasons(rows: Sequence[tuple[str, int, str]], noun: str, label: str) -> None:
    html_tables.show(
        [{"Reason": reason, noun.capitalize(): f"{count:,}", "For example": name} for reason, count, name in rows],
        label,
    )


def _draw_files(name: str, titles: tuple[str, str], read: Callable[[int | None], list[BadFile]]) -> None:
    """Draw the first unusable files with reasons, and a download of all."""
    with st.expander(f"The first {MAX_EXAMPLES_SHOWN}", key=f"first_{name}"):
        rows = [{titles[0].capitalize(): bad.path, "Reason": bad.reason} for bad in read(MAX_EXAMPLES_SHOWN)]
        html_tables.show(rows, f"The first of them, with what is wrong: {name}")
    draw_download_button(
        "Download all as CSV",
        lambda: _build_csv(titles, read(None)),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download_{name}",
    )


def _build_csv(titles: Sequence[str], rows: Sequence[BadFile]) -> bytes:
    text = io.StringIO()
    out = CsvWriter(text)
    out.write_row(titles)
    for bad in rows:
        out.write_row([bad.path, bad.reason])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _draw_log() -> None:
    st.subheader("The worker's log")
    db = served_project.db()
    text = heartbeat.read_log_tail(db, MAX_LOG_BYTES).decode(errors="replace")
    lines = text.splitlines()[-MAX_LOG_LINES:]
    if not lines:
        st.caption("Nothing to report since the worker was started.")
        return
    st.caption("Newest lines last. A restart of the worker begins it anew.")
    with st.container(height=320):
        st.code("\n".join(lines), language=None)
    draw_download_button(
        "Download the log",
        lambda: heartbeat.read_log_tail(db, MAX_DOWNLOAD_BYTES),
        file_name="worker.log",
        mime="text/plain",
        key="download_log",
    )
