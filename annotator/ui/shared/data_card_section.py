"""The data card (a description of the exported data set) on pages: license, citation, preview and downloads."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from annotator.exchange.exports import data_card
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import build_current_card
from annotator.exchange.exports.option_types import Effect
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.ui.shared.computation_progress import compute_stamp, draw_progress
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error
from annotator.ui.shared.page_access import draw_download_button
from annotator.ui.shared.work.computations import get_computations

TERMS_SETTING = "data_card"  # the setting with license and cite
DOWNLOAD_STEM = "labels"  # of the names of downloads
MAX_TERM_CHARACTERS = 2000
STYLE = """<style>
@media (max-width: 760px) {
  .st-key-data_card :is(th, td) {padding: 0.2rem 0.25rem; font-size: 0.72rem; overflow-wrap: anywhere; min-width: 0;}
  .st-key-data_card table {width: 100%; table-layout: fixed;}
}
</style>"""
_HEADING_PATTERN = re.compile(r"^#(?=#* )", re.MULTILINE)  # below the headings of the page


def load_terms(db: Database) -> Choices:
    """Return export choices with only the stored license and citation set."""
    known = db.get_setting(TERMS_SETTING, {})
    values = [str(known.get(name, "")) if isinstance(known, dict) else "" for name in ("license", "cite")]
    return Choices(license=values[0], cite=values[1])


def edit_terms(db: Database, choices: Choices) -> Choices:
    """Draw license and citation, store them and return the choices."""
    before = load_terms(db)
    license_ = st.text_input(
        "License", before.license, max_chars=MAX_TERM_CHARACTERS, placeholder="CC-BY-4.0", key="card_license"
    ).strip()
    cite = st.text_area(
        "How to cite",
        before.cite,
        max_chars=MAX_TERM_CHARACTERS,
        placeholder="Ann (2026), Birds of ...",
        key="card_cite",
    ).strip()
    if (license_, cite) != (before.license, before.cite):
        db.set_setting(TERMS_SETTING, {"license": license_, "cite": cite}, Right.REVIEW)
        st.toast("Saved for every data card.")
    return replace(choices, license=license_, cite=cite)


def draw_card(db: Database, choices: Choices, files: list[str]) -> None:
    """Draw the data card of an export, with downloads."""
    alike = choices.keep_effects(Effect.COUNTS, Effect.CARD)
    if not st.toggle("Show the data card", key="card_shown"):
        draw_downloads(lambda: build_current_card(db, files, alike))
        return
    work = get_computations(db).request(
        ("card", alike, tuple(files)), compute_stamp(db), lambda note: build_current_card(db, files, alike, note)
    )
    if work.error:
        show_error(work.error)
    facts = work.result or (work.before.result if work.before else None)
    if facts:
        draw_downloads(lambda: facts)
        st.html(STYLE)
        with st.container(border=True, key="data_card"):
            st.markdown(_HEADING_PATTERN.sub("###", data_card.format_markdown(facts, _escape_one_line)))
    draw_progress(work, "Reading the data card")


def draw_downloads(build_card: Callable[[], dict[str, Any]]) -> None:
    """Draw the download buttons of a data card, which `build_card` creates on click."""
    with st.container(horizontal=True):
        for name, media_type, written in (
            (f"{DOWNLOAD_STEM}.card.md", "text/markdown", data_card.format_markdown),
            (
                f"{DOWNLOAD_STEM}.card.json",
                "application/json",
                lambda facts: json.dumps(facts, indent=2, ensure_ascii=False),
            ),
        ):
            draw_download_button(
                f"Download {name}",
                lambda written=written: written(build_card()).encode(),
                file_name=name,
                mime=media_type,
                key=f"download_{name}",
            )


def _escape_one_line(text: str) -> str:
    return escape_markdown(" ".join(text.split()))
