"""The data card on pages: license and how to cite, which the project keeps, the card as it reads, and downloads."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from annotator.exchange.exports import data_card
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export import card_of
from annotator.exchange.exports.summary import counted_alike
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.ui.export.outlook import stamp_of, wait_for
from annotator.ui.parts import frame
from annotator.ui.work.background import background

TERMS = "data_card"  # the setting with license and cite
STEM = "labels"  # of the names of downloads
LONGEST = 2000
STYLE = """<style>
@media (max-width: 760px) {
  .st-key-data_card :is(th, td) {padding: 0.2rem 0.25rem; font-size: 0.72rem; overflow-wrap: anywhere; min-width: 0;}
  .st-key-data_card table {width: 100%; table-layout: fixed;}
}
</style>"""
_HEADING = re.compile(r"^#(?=#* )", re.MULTILINE)  # below the headings of the page


def terms(db: Database) -> Choices:
    """Return choices with the license and the citation as they were last written on a page."""
    known = db.setting(TERMS, {})
    values = [str(known.get(name, "")) if isinstance(known, dict) else "" for name in ("license", "cite")]
    return Choices(license=values[0], cite=values[1])


def edit_terms(db: Database, choices: Choices) -> Choices:
    """Draw the fields of license and citation, and return the choices with them.

    What is typed is kept for everybody, and stands in every data card that a page makes.
    """
    before = terms(db)
    license_ = st.text_input(
        "License", before.license, max_chars=LONGEST, placeholder="CC-BY-4.0", key="card_license"
    ).strip()
    cite = st.text_area(
        "How to cite", before.cite, max_chars=LONGEST, placeholder="Ann (2026), Birds of ...", key="card_cite"
    ).strip()
    if (license_, cite) != (before.license, before.cite):
        db.set_setting(TERMS, {"license": license_, "cite": cite}, Right.REVIEW)
        st.toast("Saved for every data card.")
    return replace(choices, license=license_, cite=cite)


def show(db: Database, choices: Choices, files: list[str]) -> None:
    """Offer the data card of an export with these choices for download, and draw it where somebody wants to see it."""
    alike = replace(counted_alike(choices), pseudonyms=choices.pseudonyms, license=choices.license, cite=choices.cite)
    if not st.toggle("Show the data card", key="card_shown"):
        downloads_of(lambda: card_of(db, files, alike))
        return
    work = background(db).ask(("card", alike, tuple(files)), stamp_of(db), lambda note: card_of(db, files, alike, note))
    if work.error:
        frame.error(work.error)
    facts = work.result or (work.before.result if work.before else None)
    if facts:
        downloads_of(lambda: facts)
        st.html(STYLE)
        with st.container(border=True, key="data_card"):
            st.markdown(_HEADING.sub("###", data_card.markdown(facts, _one_line)))
    wait_for(work, "Reading the data card")


def downloads_of(card: Callable[[], dict[str, Any]]) -> None:
    """Draw buttons that download the data card of a data set, as the command line writes it beside an export."""
    with st.container(horizontal=True):
        for name, media_type, written in (
            (f"{STEM}.card.md", "text/markdown", data_card.markdown),
            (f"{STEM}.card.json", "application/json", lambda facts: json.dumps(facts, indent=2, ensure_ascii=False)),
        ):
            frame.download(
                f"Download {name}",
                lambda written=written: written(card()).encode(),
                file_name=name,
                mime=media_type,
                key=f"download_{name}",
            )


def _one_line(text: str) -> str:
    return frame.escaped(" ".join(text.split()))
