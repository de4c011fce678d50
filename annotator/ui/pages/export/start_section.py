"""The Export page section that starts an export."""

from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.export_command import format_export_command
from annotator.exchange.exports.export_summary import Summary
from annotator.exchange.exports.losses import Loss, can_lose_labels, find_losses
from annotator.humanize import format_count
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports
from annotator.ui.access import served_project
from annotator.ui.pages.export.choices_section import PageChoices
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.local_time import format_moment, get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_warning
from annotator.ui.shared.page_access import build_fragment
from annotator.ui.shared.widget_values import restore_widget
from annotator.ui.shared.work import last_export
from annotator.ui.shared.work.downloads import get_downloads
from annotator.ui.shared.work.export_runner import (
    ExportOutcome,
    ExportProgress,
    ExportRequest,
    ExportRunner,
    find_name_problem,
    get_export_folder,
    get_export_runner,
)

REFRESH_SECONDS = 0.7  # seconds, while an export is written
DEFAULT_STEM = "labels"
PLACE_TITLES = {"zip": "Download as a zip", "server": "Folder on the server"}
STYLE = """<style>
.download {display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; align-items: center; line-height: 1.35;}
.download a {display: inline-block; padding: 0.55rem 1rem; min-height: 2.75rem; border-radius: 9px; font-weight: 600;}
.download a, .download a:visited {color: light-dark(#fff, #06211c); background: light-dark(#0b7265, #4cc2ae);}
.download a {text-decoration: none; overflow-wrap: anywhere; box-sizing: border-box;}
.download a:hover {text-decoration: underline;}
.download a:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 2px;}
.download small {color: light-dark(#55605c, #a9b3ae); font-size: 0.85rem;}
</style>"""


def draw(db: Database, chosen: PageChoices, summary: Summary | None, by: str) -> None:
    """Draw the Export page section that starts an export (`summary`: None while it is being counted)."""
    work = get_export_runner(db)
    found = find_losses(chosen.format, summary.tallies) if summary else []
    order = _draw_destination(db, chosen, by)
    order = replace(order, lossy=_ask_about_losses(found))
    problems = [*chosen.problems, *_find_problems(db, order)]
    for sentence in problems:
        show_error(sentence)
    is_counted = summary is not None or not can_lose_labels(chosen.format)
    ready = is_counted and not problems and (order.lossy or not found)
    if st.button("Export", type="primary", disabled=not ready or work.is_at_work, key="export_start"):
        try:
            last_export.start_and_save(db, order)
            st.session_state["was_exporting"] = True
        except AnnotatorError as error:
            show_error(error)
    if not is_counted and not problems:
        st.caption("Counting what this format would lose first.")
    elif found and not order.lossy:
        st.caption("Tick above what may be lost, or choose otherwise.")
    build_fragment(_draw_progress, REFRESH_SECONDS if work.is_at_work else None)(work)
    _draw_outcomes(db, work)
    _draw_command(db, chosen, order)


def _draw_destination(db: Database, chosen: PageChoices, by: str) -> ExportRequest:
    name = st.text_input(
        "Name", max_chars=100, help="Of the files, without ending.", key=restore_widget("export_name", DEFAULT_STEM)
    ).strip()
    where = st.radio(
        "Where to",
        list(PLACE_TITLES),
        format_func=PLACE_TITLES.__getitem__,
        horizontal=True,
        key=restore_widget("export_where", "zip", PLACE_TITLES),
    )
    on_server = where == "server"
    images = {"none": "none", "keep": "copy", "resize": "resize", "": ""}[chosen.images]
    if on_server and chosen.images == "keep":
        linked = st.checkbox(
            "Link the images instead of copying them",
            help="Links take no space. Do not change images in such a folder.",
            key=restore_widget("export_linked", True),
        )
        images = "link" if linked else "copy"
    if on_server:
        place = get_export_folder(db, ExportRequest("", chosen.choices, name or "..."))
        st.caption(escape_markdown(f"It will be {place}. Existing files are never replaced."))
    tag = st.text_input(
        "Tag (optional)",
        max_chars=tagged_exports.MAX_NAME_CHARACTERS,
        placeholder="v1",
        help="Tagged exports can be compared with later ones and with the current labels.",
        key="export_tag",
    ).strip()
    choices = replace(chosen.choices, images=images)
    return ExportRequest(chosen.format.name, choices, name, on_server, tag, by)


def _find_problems(db: Database, order: ExportRequest) -> list[str]:
    problems = [find_name_problem(db, order), tagged_exports.find_name_problem(db, order.tag) if order.tag else ""]
    return [problem for problem in problems if problem and not _was_written(db, order)]


def _was_written(db: Database, order: ExportRequest) -> bool:
    """Return whether this export is running or has just ended, so that it need not be offered again."""
    work = get_export_runner(db)
    orders = [work.running.order] if work.running else []
    orders += [
        outcome.order for outcome in work.outcomes[:1] if not outcome.error and (outcome.folder or outcome.offered)
    ]
    return any((one.name, one.tag, one.on_server) == (order.name, order.tag, order.on_server) for one in orders)


def _ask_about_losses(found: list[Loss]) -> bool:
    """Show what an export in this format loses, and return whether the person accepts it."""
    for loss in found:
        show_warning(f"{loss.text}. {loss.on_page}")
    if not found:
        return False
    # Another loss needs another tick: the key names what was agreed to.
    key = "export_lossy_" + "_".join(loss.text.split(":")[0] for loss in found)
    return st.checkbox("Export anyway; this may be lost", key=key)


def _draw_progress(work: ExportRunner) -> None:
    running: ExportProgress | None = work.running
    if work.is_at_work and running:
        st.session_state["was_exporting"] = True
        words = escape_markdown(f"{running.order.name}: {_format_progress(running)}")
        st.progress(running.done / running.of if running.of else 0.0, text=words)
        st.button("Cancel", on_click=work.cancel, key="export_cancel")
    elif st.session_state.pop("was_exporting", False):
        st.rerun()  # the whole page, once: it shows the outcome and refreshes no more


def _format_progress(running: ExportProgress) -> str:
    if not running.of:
        return running.step
    if running.step == "Packing":
        return f"Packing, {format_size(running.done)} of {format_size(running.of)}"
    return f"{running.step} {running.done:,} of {running.of:,} images"


def _draw_outcomes(db: Database, work: ExportRunner) -> None:
    token = create_token()
    for place, outcome in enumerate(work.outcomes):
        if outcome.offered and get_downloads(db).find(outcome.offered.id) is None:
            continue
        with st.container(border=True):
            _draw_outcome(outcome, token)
            if outcome.offered or outcome.error or not outcome.folder:
                label = "Delete the download" if outcome.offered else "Dismiss"
                st.button(label, on_click=work.forget, args=[outcome], key=f"forget_{place}_{outcome.ended_at}")


def _draw_outcome(outcome: ExportOutcome, token: str) -> None:
    when = format_moment(outcome.ended_at, get_time_zone())
    name = f"{outcome.order.name} ({outcome.order.kind}, by {outcome.order.by})"
    if outcome.error:
        show_error(outcome.error)
        st.caption(escape_markdown(f"{name}, {when}"))
        return
    if outcome.offered is None and outcome.folder is None:
        st.markdown(escape_markdown(f"{name} was cancelled, {when}. Nothing of it was kept."))
        return
    if outcome.offered:
        address = f"{served_project.base_path()}/api/download/{quote(outcome.offered.id)}?token={quote(token)}"
        draw_download_link(
            address, outcome.offered.path, format_size(outcome.offered.bytes), outcome.offered.expires_at
        )
    else:
        st.markdown("Written on the server:")
        st.code(str(outcome.folder), language=None)
    size = f"{format_count(outcome.images, 'image')} × {format_count(outcome.classes, 'class', 'classes')}"
    tag = f", tagged {outcome.order.tag!r}" if outcome.order.tag else ""
    st.caption(escape_markdown(f"{name}, {when}: {size}{tag}. {' '.join(outcome.said)}"))


def draw_download_link(address: str, path: Path, size: str, expires_at: float) -> None:
    until = format_moment(expires_at, get_time_zone()).removeprefix("today ")
    st.html(
        f'{STYLE}<div class="download"><a href="{escape(address)}" download>Download {escape(path.name)}</a>'
        f"<small>{escape(size)}, kept until {escape(until)}</small></div>"
    )


def _draw_command(db: Database, chosen: PageChoices, order: ExportRequest) -> None:
    target = Path(f"{order.name or DEFAULT_STEM}{chosen.format.ending}")
    if order.on_server:
        target = db.paths.exports / target
    st.caption("The same on the command line:")
    text = format_export_command(
        db.paths.project, target, chosen.format, order.choices, tag=order.tag, lossy=order.lossy
    )
    st.code(text, language=None, wrap_lines=True)
    if chosen.format.name == "huggingface":
        st.caption("Add `--push YOU/NAME` there to upload it to the hub.")


def format_size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
