"""The progress of background computations, and the stamp of the data that exports depend on."""

import time
from collections.abc import Hashable

import streamlit as st

from annotator.quality.certification import get_change_key
from annotator.store.database.database import Database
from annotator.store.imports import past_imports
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.page_access import build_fragment
from annotator.ui.shared.work.computations import Computation

REFRESH_SECONDS = 1.0  # seconds, while something is being counted


def compute_stamp(db: Database) -> Hashable:
    """Return a value that changes with any data that exports depend on."""
    return get_change_key(db), db.get_setting("registrations", 0), len(past_imports.load_imports(db))


def draw_progress(work: Computation, title: str) -> None:
    if work.ended.is_set():
        return

    def draw_waiting() -> None:
        work.asked = time.monotonic()
        if work.ended.is_set():
            st.rerun()
        words = f"{title}: {work.done:,} of {work.of:,} images" if work.of else f"{title}: waiting"
        st.progress(work.fraction, text=escape_markdown(words))

    build_fragment(draw_waiting, REFRESH_SECONDS)()
