"""The form that adds classes. It asks before reopening complete images or adding suspicious names."""

import re
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.store.classes import classes, name_lists
from annotator.ui.access import served_project
from annotator.ui.shared import page_classes
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_info, show_warning

SEPARATOR = "|"  # in no name of a class; a tab, as in class files and spreadsheets, does as well
FORM_HELP = "One class per line. Optional: a description after | (for example: fox | red, with a bushy tail)."
MAX_NAMES_SHOWN = 10  # names in one sentence

ClassPairs = list[tuple[str, str]]


def draw_first_form() -> None:
    """Draw the form of a project without classes."""
    draw_class_form("What should be labeled?", f"{FORM_HELP} You can add more later.")


def draw_class_form(title: str, text: str) -> None:
    state = st.session_state
    if state.pop("classes_clear", False):
        state["class_lines"] = ""
    with st.form("classes_form", clear_on_submit=False):
        st.subheader(title)
        lines = st.text_area(text, height=200, placeholder="fox\nheron\ndeer", key="class_lines")
        if st.form_submit_button("Add classes", type="primary"):
            state["classes_pending"], state["classes_done"] = parse_lines(lines), ""
            state["classes_sure"], state["classes_one"] = False, None
    pending: ClassPairs | None = state.get("classes_pending")
    if pending is None:
        if state.get("classes_done"):
            st.success(escape_markdown(state["classes_done"]))
        return
    if not pending:
        state.pop("classes_pending")
        st.info("Nothing to add: the field is empty.")
        return
    try:
        if lists := name_lists.find_lists(
            pending, state.get("classes_one") or classes.load_classes_by_name(served_project.db())
        ):
            _ask_about_commas(pending, lists)
            return
        classes.check_usable(pending)
        if state.get("classes_sure") or not (
            doubts := page_classes.find_surprises(served_project.db(), [name for name, _ in pending])
        ):
            _add_classes(pending)
        else:
            _ask_to_confirm(doubts)
    except AnnotatorError as error:
        state.pop("classes_pending", None)
        show_error(error)


def parse_lines(text: str) -> ClassPairs:
    """Return (name, description) pairs of a text, one per line."""
    # Not splitlines(): it also breaks lines at characters that a name may not contain, and would hide them.
    lines = (line for line in re.split(r"\r\n|\r|\n", text) if line.strip())
    parts = (re.split(r"[\t|]", line, maxsplit=1) for line in lines)
    return [(name.strip(), more[0].strip() if more else "") for name, *more in parts]


def describe_changes(pairs: ClassPairs, added: Sequence[str], before: Sequence[str]) -> str:
    """Describe what became of the entered classes: added, updated, existing `before`, or repeated."""
    sentences = [f"{_format_classes(added)} added." if added else "No class added."]
    again = {name: text for name, text in pairs if name in before}
    if described := [name for name, text in again.items() if text]:
        sentences.append(f"Already there, description updated: {_format_names(described)}.")
    if same := [name for name, text in again.items() if not text]:
        sentences.append(f"Already there: {_format_names(same)}.")
    if twice := [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]:
        sentences.append(f"Listed twice: {_format_names(twice)}.")
    return " ".join(sentences)


def _ask_about_commas(pending: ClassPairs, lists: list[str]) -> None:
    apart, state = name_lists.split_names(pending, lists), st.session_state
    with st.container(border=True):
        show_info(format_commas_question(lists))
        with st.container(horizontal=True):
            if st.button(
                f"Add {_format_class_count(apart)}: {escape_markdown(_format_names([name for name, _ in apart]))}",
                key="classes_split",
            ):
                state["classes_pending"] = apart
                st.rerun()
            one = f"named {lists[0]}" if len(lists) == 1 else "with commas in their names"
            if st.button(f"Add {_format_class_count(pending)}, {escape_markdown(one)}", key="classes_keep"):
                state["classes_one"] = {name for name, _ in pending}
                st.rerun()
            if st.button("Don't add", key="classes_none"):
                state.pop("classes_pending")
                st.rerun()


def format_commas_question(lists: Sequence[str]) -> str:
    """Return the question whether names with commas are lists of classes."""
    if len(lists) > 1:
        return f"{len(lists):,} lines contain commas. Are these lists of classes, or names?"
    parts = name_lists.split_name(lists[0])
    return f"Is this {_format_class_count(parts)}, {' and '.join(parts)}, or one class named {lists[0]}?"


def _format_class_count(named: Sequence[object]) -> str:
    return format_count(len(named), "class", "classes")


def _ask_to_confirm(doubts: list[str]) -> None:
    with st.container(border=True):
        for doubt in doubts:
            show_warning(doubt)
        with st.container(horizontal=True):
            if st.button("Add anyway", key="classes_yes"):
                st.session_state["classes_sure"] = True
                st.rerun()
            if st.button("Don't add", key="classes_no"):
                st.session_state.pop("classes_pending")
                st.rerun()


def _add_classes(pairs: ClassPairs) -> None:
    state, db = st.session_state, served_project.db()
    state.pop("classes_pending")
    before = [class_.name for class_ in classes.load_active_classes(db)]
    texts: dict[str, str] = {}
    for name, text in pairs:
        texts[name] = text or texts.get(name, "")
    added = classes.add_classes(db, list(texts.items()), require_annotator_name())
    state["classes_clear"], state["classes_done"] = True, describe_changes(pairs, added, before)
    if not before:
        st.toast(escape_markdown(state.pop("classes_done")))  # the page has replaced the form
    st.rerun()


def _format_classes(names: Sequence[str]) -> str:
    return f"{format_count(len(names), 'class', 'classes')} ({_format_names(names)})"


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN:,} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + more
