"""The Export page section that builds a standalone classifier."""

from urllib.parse import quote

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.export_options import DEFAULT_EXPECTED_ERROR
from annotator.snapshot.suggestions import describe_first_run
from annotator.store.database.database import Database
from annotator.store.runs import runs
from annotator.ui.access import served_project
from annotator.ui.pages.export.classifier_builder import ClassifierBuilder, get_classifier_builder
from annotator.ui.pages.export.start_section import draw_download_link, format_size
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_info
from annotator.ui.shared.page_access import build_fragment
from annotator.ui.shared.work.downloads import get_downloads

REFRESH_SECONDS = 1.0  # seconds, while it is made
MAX_ERROR_SHARE = 0.2


def draw(db: Database) -> None:
    """Draw the Export page section that builds a standalone classifier."""
    st.subheader("A classifier")
    st.caption("The trained model as one file, for new images: no project, no torch, no internet.")
    if runs.load_current_run(db) is None:
        show_info(f"No model yet: {describe_first_run(db)}.")
        return
    work = get_classifier_builder(db)
    name = st.text_input("Name of the file", "classifier", max_chars=100, key="classifier_name").strip()
    error = st.number_input(
        "Wrong answers that thresholds allow (%)",
        0.1,
        100 * MAX_ERROR_SHARE,
        100 * DEFAULT_EXPECTED_ERROR,
        0.5,
        help="Of each class. Fewer wrong answers leave more images without one.",
        key="classifier_error",
    )
    if st.button("Make a classifier", disabled=work.is_at_work, key="classifier_start"):
        try:
            work.start(name, error / 100)
            st.session_state["was_making_classifier"] = True
        except AnnotatorError as refused:
            show_error(refused)
    build_fragment(_draw_progress, REFRESH_SECONDS if work.is_at_work else None)(work)
    _draw_result(db, work)
    st.caption("To run it on a folder of images:")
    st.code("annotator classify classifier.onnx photos --format csv", language=None, wrap_lines=True)


def _draw_progress(work: ClassifierBuilder) -> None:
    if work.is_at_work:
        st.session_state["was_making_classifier"] = True
        st.progress(0.0, text="Making the classifier; this takes about half a minute.")
        st.button("Cancel", on_click=work.cancel, key="classifier_cancel")
    elif st.session_state.pop("was_making_classifier", False):
        st.rerun()  # the whole page, once: it shows the result and refreshes no more


def _draw_result(db: Database, work: ClassifierBuilder) -> None:
    made = work.made
    if made is None or work.is_at_work:
        return
    if made.error:
        show_error(made.error)
    elif made.offered and get_downloads(db).find(made.offered.id):
        with st.container(border=True):
            path = f"{served_project.base_path()}/api/download/{quote(made.offered.id)}"
            address = f"{path}?token={quote(create_token())}"
            draw_download_link(address, made.offered.path, format_size(made.offered.bytes), made.offered.expires_at)
            for sentence in made.said:
                st.markdown(escape_markdown(sentence))
