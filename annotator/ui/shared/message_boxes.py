"""Message boxes of plain text, and the box of an error."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from annotator.store.disk import system_errors
from annotator.ui.shared import widget_values
from annotator.ui.shared.markdown_text import escape_markdown


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an AnnotatorError or system error of this context as a box."""
    if problem := widget_values.pop_problem():
        show_error(problem)
    try:
        yield
    except Exception as problem:
        told = system_errors.translate_error(problem)
        if told is None:
            raise
        show_error(told)


def show_error(text: object) -> None:
    st.error(escape_markdown(text), icon=":material/error:")


def show_info(text: object) -> None:
    st.info(escape_markdown(text))


def show_warning(text: object) -> None:
    st.warning(escape_markdown(text))
