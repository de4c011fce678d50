"""The Settings section that prelabels all images with a vision-language model."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.tagging.allowed_taggers import AllowedTaggers
from annotator.humanize import format_count, format_duration, format_percent
from annotator.store.database.database import Database
from annotator.store.runs import tagging_state
from annotator.store.runs.source_record import SourceRecord, load_source_records
from annotator.store.runs.tagging_state import TaggingRequest, TaggingState
from annotator.ui.access import served_project
from annotator.ui.shared import html_tables
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors, show_info, show_warning
from annotator.ui.shared.page_access import build_fragment

REFRESH_SECONDS = 2.0  # between two looks at what is under way


def draw(db: Database, by: str) -> None:
    """Draw the Settings section that prelabels images with a vision-language model, refreshed while it runs."""
    st.subheader("Tagger")
    st.caption("A vision-language model on your machine says which classes each image shows. Its word is a suggestion.")
    is_at_work = bool(tagging_state.get_running(db) or tagging_state.get_request(db))
    build_fragment(_draw_state, REFRESH_SECONDS if is_at_work else None)(db, by, is_at_work)
    _draw_track_record(load_source_records(db))


def _draw_state(db: Database, by: str, was_at_work: bool) -> None:
    state, wanted = tagging_state.get_running(db), tagging_state.get_request(db)
    if was_at_work and not (state or wanted):
        st.rerun()  # the whole page: the work has ended
    if state is None and wanted is None:
        _draw_result(db)
        _draw_form(db, by)
        return
    if state is None:
        st.caption("Waiting for the worker to start it.")
    else:
        _draw_progress(state)
    if st.button("Stop", key="tagger_stop", help="What it has said stays. Starting again goes on."):
        tagging_state.set_request(db, None)
        st.rerun()


def _draw_progress(state: TaggingState) -> None:
    left = f", {format_duration(state.seconds_left)} left" if state.seconds_left else ""
    words = f"{state.model}: {state.done:,} of {state.of:,} images, {state.per_minute:,.0f} a minute{left}"
    st.progress(min(state.done / state.of, 1.0) if state.of else 0.0, escape_markdown(words))
    if state.without:
        st.caption(escape_markdown(f"{format_count(state.without, 'question')} stayed without an answer."))
    if state.error:
        show_warning(state.error)


def _draw_result(db: Database) -> None:
    result = tagging_state.get_result(db)
    if result.get("error"):
        show_warning(str(result["error"]))
    elif result:
        done = format_count(int(result.get("images", 0)), "image")
        st.caption(escape_markdown(f"The last time {result.get('name', '')} said something of {done}."))


def _draw_form(db: Database, by: str) -> None:
    allowed = served_project.taggers()
    if allowed.are_all_listed and not allowed.listed:
        show_info("No server is allowed. The operator of this server can allow one:")
        st.code("annotator serve PROJECT --tagger-url URL", language=None, wrap_lines=True)
        return
    url = _draw_server(allowed)
    model = st.text_input("Model", placeholder="qwen2.5vl", max_chars=200, key="tagger_model").strip()
    may_leave = False
    if any(tagger.url == url and not tagger.is_local for tagger in allowed.listed):
        may_leave = st.checkbox("This server is on another machine. All images may be sent to it.", key="tagger_leave")
    if st.button("Ask about all images", disabled=not (url and model), key="tagger_start"):
        with show_errors():
            if not (allowed.find(url).is_local or may_leave):
                raise AnnotatorError("Images would leave this machine. Tick that they may.")
            tagging_state.set_request(db, TaggingRequest(url, model, may_leave, by))
            st.rerun()


def _draw_server(allowed: AllowedTaggers) -> str:
    """Draw the choice of a server and return its URL."""
    urls = [tagger.url for tagger in allowed.listed]
    if allowed.are_all_listed:
        return st.selectbox("Server", urls, key="tagger_listed", help="The operator of this server allows these.")
    return st.text_input(
        "Server", next(iter(urls), ""), placeholder="http://127.0.0.1:11434/v1", max_chars=300, key="tagger_url",
        help="Ollama, vLLM, llama.cpp, LM Studio: a server on this machine that speaks the OpenAI chat format.",
    ).strip()  # fmt: skip


def _draw_track_record(records: list[SourceRecord]) -> None:
    rows = [
        {
            "Predictions": record.name,
            "Said present": _format_share(record.present_right, record.said_present),
            "Said absent": _format_share(record.absent_right, record.said_absent),
        }
        for record in records
        if record.said_present + record.said_absent
    ]
    if rows:
        st.caption("How often it was right, where people answered a pair that the model had not chosen for them:")
        html_tables.show(rows, "How often predictions were right")


def _format_share(right: int, total: int) -> str:
    return f"{format_percent(right, total)} of {total:,}" if total else "never"
