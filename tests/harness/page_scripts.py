"""Pages run by AppTest of Streamlit without a browser, and the texts on them."""

from collections.abc import Iterator

from streamlit.testing.v1 import AppTest

from annotator.store.database.database import Database
from annotator.ui.access import served_project

SCRIPT = """
from importlib import import_module
from annotator.ui.shared.navigation import find_page_module
one = import_module(find_page_module("{}"))
one.page()
"""


def shown(db: Database, page: str = "certificate") -> AppTest:
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT.format(page), default_timeout=120)
    test.session_state["name"] = "Ann"
    return fine(test.run())


def fine(test: AppTest) -> AppTest:
    assert not test.exception, test.exception
    return test


def words(test: AppTest) -> str:
    every = (*test.markdown, *test.info, *test.caption, *test.error)
    return " ".join(one.value for one in every).replace("\\", "")


# What is no Markdown: the identity of a widget, what is typed, and the options of a list to choose from.
PLAIN = {
    "id",
    "form_id",
    "default",
    "value",
    "placeholder",
    "raw_values",
    "selectbox.options",
    "multiselect.options",
    "raw_value",
}


OWN = ("code", "html", "vega_lite_chart", "arrow_vega_lite_chart", "arrow_data_frame", "bidi_component")


def texts_of(test: AppTest) -> Iterator[tuple[bool, str]]:
    """Every text of a page, and whether Streamlit reads it as Markdown; tables, code and our own HTML are left out."""
    for element in test.main:
        if element.type in OWN or not element.proto:
            continue
        for field, value in element.proto.ListFields():
            if field.type == field.TYPE_STRING:
                is_plain = not PLAIN.isdisjoint({field.name, f"{element.type}.{field.name}"})
                texts = [value] if isinstance(value, str) else list(value)
                yield from ((not is_plain, text) for text in texts)


def markdown_of(test: AppTest) -> Iterator[str]:
    """Every text of a page that Streamlit reads as Markdown."""
    return (text for is_markdown, text in texts_of(test) if is_markdown)
