"""Ordering an export on the Export page: its name and place, losses to agree to, progress and outcome."""

from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.command import command
from annotator.exchange.exports.losses import Loss, can_lose, losses
from annotator.exchange.exports.summary import Summary
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports as tags
from annotator.ui.access import context
from annotator.ui.export import last_export
from annotator.ui.export.choosing import Chosen
from annotator.ui.export.kept import kept
from annotator.ui.export.running import Exporting, Order, Outcome, Running, exporting, name_problem, place_of
from annotator.ui.parts import frame, note_list
from annotator.ui.work.downloads import downloads

REFRESH = 0.7  # seconds, while an export is written
STEM = "labels"
PLACES = {"zip": "Download as a zip", "server": "Folder on the server"}
STYLE = """<style>
.download {display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; align-items: center; line-height: 1.35;}
.download a {display: inline-block; padding: 0.55rem 1rem; min-height: 2.75rem; border-radius: 9px; font-weight: 600;}
.download a, .download a:visited {color: light-dark(#fff, #06211c); background: light-dark(#0b7265, #4cc2ae);}
.download a {text-decoration: none; overflow-wrap: anywhere; box-sizing: border-box;}
.download a:hover {text-decoration: underline;}
.download a:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 2px;}
.download small {color: light-dark(#55605c, #a9b3ae); font-size: 0.85rem;}
</style>"""


def section(db: Database, chosen: Chosen, summary: Summary | None, by: str) -> None:
    """Draw this part of the page.

    Args:
        db: The project's database.
        chosen: What was chosen above this part.
        summary: None while it is being counted.
        by: The person who exports.
    """
    work = exporting(db)
    found = losses(chosen.format, summary.tallies) if summary else []
    order = _order(db, chosen, by)
    order = replace(order, lossy=_agreed(found))
    problems = [*chosen.problems, *_problems(db, order)]
    for sentence in problems:
        frame.error(sentence)
    is_counted = summary is not None or not can_lose(chosen.format)
    ready = is_counted and not problems and (order.lossy or not found)
    if st.button("Export", type="primary", disabled=not ready or work.is_at_work, key="export_start"):
        try:
            last_export.start(db, order)
            st.session_state["was_exporting"] = True
        except AnnotatorError as error:
            frame.error(error)
    if not is_counted and not problems:
        st.caption("Counting what this format would lose first.")
    elif found and not order.lossy:
        st.caption("Tick above what may be lost, or choose otherwise.")
    frame.refreshed(_progress, REFRESH if work.is_at_work else None)(work)
    _outcomes(db, work)
    _command(db, chosen, order)


def _order(db: Database, chosen: Chosen, by: str) -> Order:
    name = st.text_input(
        "Name", max_chars=100, help="Of the files, without ending.", key=kept("export_name", STEM)
    ).strip()
    where = st.radio(
        "Where to",
        list(PLACES),
        format_func=PLACES.__getitem__,
        horizontal=True,
        key=kept("export_where", "zip", PLACES),
    )
    on_server = where == "server"
    images = {"none": "none", "keep": "copy", "resize": "resize", "": ""}[chosen.images]
    if on_server and chosen.images == "keep":
        linked = st.checkbox(
            "Link the images instead of copying them",
            help="Links take no space. Do not change images in such a folder.",
            key=kept("export_linked", True),
        )
        images = "link" if linked else "copy"
    if on_server:
        place = place_of(db, Order("", chosen.choices, name or "..."))
        st.caption(frame.escaped(f"It will be {place}. Existing files are never replaced."))
    tag = st.text_input(
        "Tag (optional)",
        max_chars=tags.LONGEST_NAME,
        placeholder="v1",
        help="Tagged exports can be compared with later ones and with the current labels.",
        key="export_tag",
    ).strip()
    choices = replace(chosen.choices, images=images)
    return Order(chosen.format.name, choices, name, on_server, tag, by)


def _problems(db: Database, order: Order) -> list[str]:
    problems = [name_problem(db, order), tags.name_problem(db, order.tag) if order.tag else ""]
    return [problem for problem in problems if problem and not _was_written(db, order)]


def _was_written(db: Database, order: Order) -> bool:
    """Return whether this export is being written or was written just now: its name is not a problem then."""
    work = exporting(db)
    orders = [work.running.order] if work.running else []
    orders += [
        outcome.order for outcome in work.outcomes[:1] if not outcome.error and (outcome.folder or outcome.offered)
    ]
    return any((one.name, one.tag, one.on_server) == (order.name, order.tag, order.on_server) for one in orders)


def _agreed(found: list[Loss]) -> bool:
    """Show what would be lost, and return whether the person accepts it; False where nothing is lost."""
    for loss in found:
        frame.warning(f"{loss.text}. {loss.on_page}")
    if not found:
        return False
    # Another loss needs another tick: the key names what was agreed to.
    key = "export_lossy_" + "_".join(loss.text.split(":")[0] for loss in found)
    return st.checkbox("Export anyway; this may be lost", key=key)


def _progress(work: Exporting) -> None:
    running: Running | None = work.running
    if work.is_at_work and running:
        st.session_state["was_exporting"] = True
        words = frame.escaped(f"{running.order.name}: {_words(running)}")
        st.progress(running.done / running.of if running.of else 0.0, text=words)
        st.button("Cancel", on_click=work.cancel, key="export_cancel")
    elif st.session_state.pop("was_exporting", False):
        st.rerun()  # the whole page, once: it shows the outcome and refreshes no more


def _words(running: Running) -> str:
    if not running.of:
        return running.step
    if running.step == "Packing":
        return f"Packing, {size_in_words(running.done)} of {size_in_words(running.of)}"
    return f"{running.step} {running.done:,} of {running.of:,} images"


def _outcomes(db: Database, work: Exporting) -> None:
    token = frame.token()
    for place, outcome in enumerate(work.outcomes):
        if outcome.offered and downloads(db).find(outcome.offered.id) is None:
            continue
        with st.container(border=True):
            _outcome(outcome, token)
            if outcome.offered or outcome.error or not outcome.folder:
                label = "Delete the download" if outcome.offered else "Dismiss"
                st.button(label, on_click=work.forget, args=[outcome], key=f"forget_{place}_{outcome.ended_at}")


def _outcome(outcome: Outcome, token: str) -> None:
    when = note_list.moment_in_words(outcome.ended_at, frame.zone())
    name = f"{outcome.order.name} ({outcome.order.kind}, by {outcome.order.by})"
    if outcome.error:
        frame.error(outcome.error)
        st.caption(frame.escaped(f"{name}, {when}"))
        return
    if outcome.offered is None and outcome.folder is None:
        st.markdown(frame.escaped(f"{name} was cancelled, {when}. Nothing of it was kept."))
        return
    if outcome.offered:
        address = f"{context.base()}/api/download/{quote(outcome.offered.id)}?token={quote(token)}"
        link_to(address, outcome.offered.path, size_in_words(outcome.offered.bytes), outcome.offered.expires_at)
    else:
        st.markdown("Written on the server:")
        st.code(str(outcome.folder), language=None)
    size = f"{counted(outcome.images, 'image')} × {counted(outcome.classes, 'class', 'classes')}"
    tag = f", tagged {outcome.order.tag!r}" if outcome.order.tag else ""
    st.caption(frame.escaped(f"{name}, {when}: {size}{tag}. {' '.join(outcome.said)}"))


def link_to(address: str, path: Path, size: str, expires_at: float) -> None:
    """Draw a link that downloads a file which is offered for a while."""
    until = note_list.moment_in_words(expires_at, frame.zone()).removeprefix("today ")
    st.html(
        f'{STYLE}<div class="download"><a href="{escape(address)}" download>Download {escape(path.name)}</a>'
        f"<small>{escape(size)}, kept until {escape(until)}</small></div>"
    )


def _command(db: Database, chosen: Chosen, order: Order) -> None:
    target = Path(f"{order.name or STEM}{chosen.format.ending}")
    if order.on_server:
        target = db.paths.exports / target
    st.caption("The same on the command line:")
    text = command(db.paths.project, target, chosen.format, order.choices, tag=order.tag, lossy=order.lossy)
    st.code(text, language=None, wrap_lines=True)
    if chosen.format.name == "huggingface":
        st.caption("Add `--push YOU/NAME` there to upload it to the hub.")


def size_in_words(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
