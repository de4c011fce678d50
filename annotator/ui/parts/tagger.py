"""The part of the Settings page that asks a vision-language model about all images: start, progress, stop, record."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.tagging.server import Server
from annotator.shares import counted, percent, seconds_in_words
from annotator.store.database.database import Database
from annotator.store.runs import tagging_state
from annotator.store.runs.source_record import SourceRecord, source_records
from annotator.store.runs.tagging_state import Tagging, Wanted
from annotator.ui.parts import frame, tables

REFRESH = 2.0  # seconds between two looks at what is under way


def section(db: Database, by: str) -> None:
    """Draw this part of the page, refreshed while something is under way.

    Args:
        db: The project's database.
        by: The person who asks.
    """
    st.subheader("Tagger")
    st.caption("A vision-language model on your machine says which classes each image shows. Its word is a suggestion.")
    is_at_work = bool(tagging_state.running(db) or tagging_state.wanted(db))
    frame.refreshed(_now, REFRESH if is_at_work else None)(db, by, is_at_work)
    _records(source_records(db))


def _now(db: Database, by: str, was_at_work: bool) -> None:
    state, wanted = tagging_state.running(db), tagging_state.wanted(db)
    if was_at_work and not (state or wanted):
        st.rerun()  # the whole page: the work has ended
    if state is None and wanted is None:
        _result(db)
        _form(db, by)
        return
    if state is None:
        st.caption("Waiting for the worker to start it.")
    else:
        _progress(state)
    if st.button("Stop", key="tagger_stop", help="What it has said stays. Starting again goes on."):
        tagging_state.want(db, None)
        st.rerun()


def _progress(state: Tagging) -> None:
    left = f", {seconds_in_words(state.seconds_left)} left" if state.seconds_left else ""
    words = f"{state.model}: {state.done:,} of {state.of:,} images, {state.per_minute:,.0f} a minute{left}"
    st.progress(min(state.done / state.of, 1.0) if state.of else 0.0, frame.escaped(words))
    if state.without:
        st.caption(frame.escaped(f"{counted(state.without, 'question')} stayed without an answer."))
    if state.error:
        frame.warning(state.error)


def _result(db: Database) -> None:
    result = tagging_state.result(db)
    if result.get("error"):
        frame.warning(str(result["error"]))
    elif result:
        done = counted(int(result.get("images", 0)), "image")
        st.caption(frame.escaped(f"The last time {result.get('name', '')} said something of {done}."))


def _form(db: Database, by: str) -> None:
    url = st.text_input(
        "Server", placeholder="http://127.0.0.1:11434/v1", max_chars=300, key="tagger_url",
        help="Ollama, vLLM, llama.cpp, LM Studio: any server that speaks the OpenAI chat format.",
    ).strip()  # fmt: skip
    model = st.text_input("Model", placeholder="qwen2.5vl", max_chars=200, key="tagger_model").strip()
    may_leave = False
    if url and not _is_here(url):
        may_leave = st.checkbox("This server is on another machine. All images may be sent to it.", key="tagger_leave")
    if st.button("Ask about all images", disabled=not (url and model), key="tagger_start"):
        try:
            server = Server(url)
        except AnnotatorError as error:
            frame.error(error)
            return
        if not (server.is_here or may_leave):
            frame.error("Images would leave this machine. Tick that they may.")
            return
        tagging_state.want(db, Wanted(url, model, may_leave, by))
        st.rerun()


def _is_here(url: str) -> bool:
    try:
        return Server(url).is_here
    except AnnotatorError:
        return True  # the button says what is wrong with it


def _records(records: list[SourceRecord]) -> None:
    """Draw how often each source of predictions was right, where people have answered what it said before."""
    rows = [
        {
            "Predictions": record.name,
            "Said present": _share(record.present_right, record.said_present),
            "Said absent": _share(record.absent_right, record.said_absent),
        }
        for record in records
        if record.said_present + record.said_absent
    ]
    if rows:
        st.caption("How often it was right, where people answered a pair that the model had not chosen for them:")
        tables.show(rows, "How often predictions were right")


def _share(right: int, of: int) -> str:
    return f"{percent(right, of)} of {of:,}" if of else "never"
