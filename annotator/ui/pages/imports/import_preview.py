"""The open import: progress, previewed changes, choices and result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from types import MappingProxyType

import streamlit as st

from annotator.exchange.imports import import_messages, import_plan
from annotator.exchange.imports.import_checks import explain_missing_answers
from annotator.exchange.predictions import prediction_import
from annotator.humanize import format_count
from annotator.records import Class
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images.images import group_by_reason
from annotator.store.imports import past_imports
from annotator.store.imports.staged_cells import ImportPreview, StagedClass
from annotator.store.runs import prediction_sources
from annotator.ui.pages.imports import import_reading
from annotator.ui.pages.imports.import_runner import (
    CANCELLED,
    DONE,
    FAILED,
    READY,
    ImportRequest,
    ImportRunner,
    ImportState,
    clean_for_page,
)
from annotator.ui.shared import html_tables
from annotator.ui.shared.markdown_text import escape_for_screen_reader, escape_markdown
from annotator.ui.shared.message_boxes import show_error, show_info, show_warning
from annotator.ui.shared.page_access import draw_page_link

NEW_CLASS, LEAVE_OUT = "new", "out"  # what becomes of a class of the source, beside the id of one of the project
UNCHOSEN_OPTION = ""  # it has to be said
RENAMED_PREFIX = "="  # before the name of a new class that is called otherwise
CONFLICT_CHOICES = {"keep": "Keep the answers of the project", "replace": "Take the answers of the source"}
REPLACE_CHOICES = {False: "Add to it: newer scores replace older ones", True: "Delete its earlier scores"}
MATCH_DESCRIPTIONS = {
    "known": "the same name",
    "synonym": "a synonym",
    "alike": "but for case and blanks",
    "matched": "a synonym, or but for case and blanks",
    "mapped": "your choice",
    "left out": "your choice",
    "new": "not in the project",
    "restored": "it was here before",
    "unclear": "needs a choice",
}
MAX_CLASSES_SHOWN = 50  # classes of the source that are listed at a time
MAX_NAMES_SHOWN = 5  # of classes in a sentence
EMPTY_MAPPING: Mapping[str, str] = MappingProxyType({})
STYLE = """<style>
ul.examples {margin: 0; padding-left: 1.2rem; max-height: 22rem; overflow: auto; overflow-wrap: anywhere;}
ul.examples:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 1px;}
</style>"""


def draw_progress(work: ImportRunner) -> None:
    """Draw the import's progress, rerunning the page at its end."""
    state = work.state
    if not state.is_at_work:
        st.rerun()
    if state.order:
        what = state.what or "Reading"
        count = f": {state.done:,} of {state.of:,}" if state.of else f": {state.done:,}" if state.done else ""
        whose = f"{state.order.by} imports {state.order.name}. {what}{count}"
        if state.of:
            st.progress(min(state.done / state.of, 1.0), text=escape_markdown(whose))
        else:  # nobody knows how much there is
            st.info(escape_markdown(whose), icon=":material/hourglass_top:")
        st.button("Cancel", on_click=work.cancel, key="import_cancel")


def draw_outcome(db: Database, by: str, work: ImportRunner, state: ImportState) -> None:
    """Draw the import that awaits a decision, or the last result (`state` must not be reading or storing)."""
    if state.order is None:
        return
    if state.stage == READY:
        _draw_preview(db, by, work, state)
    elif state.order.by == by:
        if state.stage == DONE:
            if not _is_undone(db, state):
                _draw_result(work, state)
        elif state.stage == CANCELLED:
            kept = state.said or f"{state.order.name} was not imported, and the project is as it was."
            show_info(f"Cancelled: {kept}")
        elif state.stage == FAILED:
            show_error(state.error)


def _draw_preview(db: Database, by: str, work: ImportRunner, state: ImportState) -> None:
    order, plan = state.order, state.plan
    assert order and plan
    if order.by != by:
        show_info(f"{order.by} is looking at what {order.name} would change. One import can be open at a time.")
        st.button(f"Cancel {escape_markdown(order.by)}'s import", on_click=work.cancel, key="import_cancel_other")
        return
    with st.container(border=True):
        st.markdown(f"#### Preview of {escape_markdown(order.name)}")
        if isinstance(plan, import_plan.ImportPlan):
            _draw_label_preview(db, work, state, plan)
        else:
            _draw_prediction_preview(db, work, state, plan)


def _draw_label_preview(db: Database, work: ImportRunner, state: ImportState, plan: import_plan.ImportPlan) -> None:
    order, preview = state.order, plan.preview
    assert order and isinstance(order.choices, import_plan.ImportOptions)
    _draw_sentences(order, import_messages.describe_format(plan), plan.sentences)
    known = classes.load_ordered_classes(db)
    reading = import_reading.draw_reading(order, plan, order.choices.reading, state.since)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_counts(import_messages.list_preview_lines(preview, order.choices.conflicts))
        choices = replace(_draw_choices(order, state, preview), reading=reading)
    with right:
        becomes = _draw_class_table(preview.classes, known, state, True, preview.unclear, _get_class_map(order))
        if chosen := build_class_map(preview.classes, becomes, known):
            choices = replace(choices, class_map={**_get_class_map(order), **chosen})
        for warning in preview.warnings:
            show_warning(warning)
    if choices not in (order.choices, state.refused):
        work.change_choices(choices)
        st.rerun()
    if state.error:
        show_error(state.error)
    elif plan.open_questions:
        st.info("It can be read in more than one way. Choose above what it means.")
    elif preview.unclear:
        names = ", ".join(f"'{name}'" for name in [*preview.unclear][:MAX_NAMES_SHOWN])
        more = ", ..." if len(preview.unclear) > MAX_NAMES_SHOWN else ""
        show_info(f"Choose first what becomes of {names}{more}.")
    elif plan.has_no_answers:
        show_warning(clean_for_page(explain_missing_answers(order.name, preview), order))
    elif not plan.has_changes:
        st.info("Nothing would change. The project has all of it already.")
    is_refused = bool(state.error or preview.unclear or plan.open_questions or plan.has_no_answers)
    _draw_buttons(work, disabled=is_refused or not plan.has_changes)


def _draw_counts(lines: Sequence[import_messages.PreviewLine]) -> None:
    if lines:
        html_tables.show(
            [{"What": _capitalize(line.title), "Count": f"{line.count:,}"} for line in lines], "What would change"
        )
    for line in lines:
        if line.examples:
            with st.expander(escape_markdown(f"Examples: {line.title.split(':')[0]}")):
                _draw_list([*line.examples, *([f"and {line.remaining:,} more"] if line.remaining else [])], line.title)


def _draw_choices(order: ImportRequest, state: ImportState, preview: ImportPreview) -> import_plan.ImportOptions:
    choices = order.choices
    assert isinstance(choices, import_plan.ImportOptions)
    conflicts = choices.conflicts
    different = preview.conflicts_with_people.count + preview.conflicts_with_imports.count
    if different or preview.attributes_other.count:
        conflicts = st.radio(
            "Where the project and the source differ",
            list(CONFLICT_CHOICES),
            index=list(CONFLICT_CHOICES).index(conflicts),
            format_func=CONFLICT_CHOICES.__getitem__,
            key=f"import_conflicts_{state.since}",
        )
    names_all = st.checkbox(
        "What the source does not name is absent",
        value=choices.exhaustive,
        help="Only if somebody looked for every class on every image. Otherwise it stays unanswered.",
        key=f"import_exhaustive_{state.since}",
    )
    return replace(choices, conflicts=conflicts, exhaustive=names_all)


def build_class_map(staged: Sequence[StagedClass], targets: Sequence[str], known: Sequence[Class]) -> dict[str, str]:
    """Return changed entries of the class map: source name -> class, or "" if left out.

    Args:
        targets: Per staged class: NEW_CLASS, LEAVE_OUT, UNCHOSEN_OPTION, a class id, or RENAMED_PREFIX and a name.
    """
    names = {str(class_.id): class_.name for class_ in known} | {LEAVE_OUT: ""}

    def target(class_: StagedClass, wanted: str) -> str:
        return (
            wanted.removeprefix(RENAMED_PREFIX) if wanted.startswith(RENAMED_PREFIX) else names.get(wanted, class_.name)
        )

    return {
        class_.name: target(class_, wanted)
        for class_, wanted, before in zip(staged, targets, find_current_targets(staged, known), strict=True)
        if wanted != before
    }


def find_current_targets(staged: Sequence[StagedClass], known: Sequence[Class]) -> list[str]:
    """Return each staged class's target in the preview, as `targets` of `build_class_map`."""
    ids = {class_.name: str(class_.id) for class_ in known}
    return [_find_target(class_, ids) for class_ in staged]


def _find_target(class_: StagedClass, ids: Mapping[str, str]) -> str:
    if class_.how == "unclear":
        return UNCHOSEN_OPTION
    if class_.how == "left out" or not class_.target:
        return LEAVE_OUT
    return ids.get(class_.target, NEW_CLASS if class_.target == class_.name else f"{RENAMED_PREFIX}{class_.target}")


def _draw_class_table(
    staged: Sequence[StagedClass],
    known: Sequence[Class],
    state: ImportState,
    may_be_new: bool,
    unclear: Mapping[str, str] = EMPTY_MAPPING,
    chosen: Mapping[str, str] = EMPTY_MAPPING,
) -> list[str]:
    """Draw source classes, unclear ones first, and return their targets."""
    now = find_current_targets(staged, known)
    if not staged:
        return now
    parts = [f"{format_count(len(now), 'class', 'classes')} {'in the source' if may_be_new else 'named differently'}"]
    new = sum(how == NEW_CLASS or how.startswith(RENAMED_PREFIX) for how in now)
    counts = [(new, "new"), (now.count(LEAVE_OUT), "left out"), (now.count(UNCHOSEN_OPTION), "to choose")]
    parts += [f"{count:,} {words}" for count, words in counts if count]
    st.markdown("**Classes**")
    st.caption(escape_markdown(f"{', '.join(parts)}. Choose what each is here."))
    words = ({NEW_CLASS: "New class", RENAMED_PREFIX: "New class with another name"} if may_be_new else {}) | {
        LEAVE_OUT: "Leave out"
    }
    words |= {str(class_.id): class_.name for class_ in known}
    for place, class_ in enumerate(staged):
        if now[place] == UNCHOSEN_OPTION and class_.name in chosen:
            [now[place]] = find_current_targets([replace(class_, target=chosen[class_.name], how="mapped")], known)
    part = ""
    if len(staged) > MAX_CLASSES_SHOWN:
        part = st.text_input("Find a class", key=f"import_find_{state.since}").strip().casefold()
    wanted = [place for place, class_ in enumerate(staged) if part in class_.name.casefold()]
    same = [place for place in wanted if staged[place].how == "known"]
    others = [place for place in wanted if staged[place].how != "known"]
    others.sort(key=lambda place: staged[place].name not in unclear)
    for place in others[:MAX_CLASSES_SHOWN]:
        now[place] = _draw_class_row(staged[place], now[place], words, f"import_class_{state.since}_{place}", unclear)
    if same:
        with st.expander(f"{format_count(len(same), 'class has', 'classes have')} the same name here"):
            for place in same[: MAX_CLASSES_SHOWN - len(others[:MAX_CLASSES_SHOWN])]:
                now[place] = _draw_class_row(staged[place], now[place], words, f"import_class_{state.since}_{place}")
    if len(wanted) > MAX_CLASSES_SHOWN:
        st.caption(f"{len(wanted) - MAX_CLASSES_SHOWN:,} more: type a part of the name above to find one.")
    return now


def _draw_class_row(
    class_: StagedClass, now: str, words: Mapping[str, str], key: str, unclear: Mapping[str, str] = EMPTY_MAPPING
) -> str:
    left, right = st.columns(2, vertical_alignment="center")
    answers = f", {format_count(class_.answers, 'answer')}" if class_.answers else ""
    name = class_.name or "(no name)"
    left.markdown(f"{escape_markdown(name)}  \n:small[{MATCH_DESCRIPTIONS[class_.how]}{answers}]")
    if class_.name in unclear:
        left.caption(escape_markdown(_capitalize(unclear[class_.name])))
    options = list(words)
    before = now.removeprefix(RENAMED_PREFIX) if now.startswith(RENAMED_PREFIX) else ""
    with right:
        chosen = st.selectbox(
            f"What {escape_for_screen_reader(name)} becomes",
            options,
            index=None if now == UNCHOSEN_OPTION else options.index(RENAMED_PREFIX if before else now),
            format_func=lambda option: words[option],
            placeholder="Choose",
            label_visibility="collapsed",
            key=key,
        )
        if chosen != RENAMED_PREFIX:
            return chosen or now
        typed = st.text_input(
            f"Name of the new class for {escape_for_screen_reader(name)}",
            before,
            placeholder="Name of the new class",
            label_visibility="collapsed",
            key=f"{key}_name",
        ).strip()
    return f"{RENAMED_PREFIX}{typed}" if typed else now


def _draw_prediction_preview(
    db: Database, work: ImportRunner, state: ImportState, plan: prediction_import.PredictionPlan
) -> None:
    order, found = state.order, plan.found
    assert order and isinstance(order.choices, prediction_import.PredictionOptions)
    _draw_sentences(order, f"Format: {plan.format} ({plan.why}).", plan.sentences)
    known = classes.load_ordered_classes(db)
    rows = {"Images in the project": found.images, "Unknown images: left out": found.unknown_images.count}
    rows |= {"Pairs scored again: the highest counts": found.scored_again.count}
    rows |= {"Classes that are not in the project: left out": len(found.unknown_classes)}
    shown = [{"What": title, "Count": f"{count:,}"} for title, count in rows.items() if count]
    html_tables.show(shown, "What the predictions are about")
    for title, tally in (("Unknown images", found.unknown_images), ("Pairs scored again", found.scored_again)):
        if tally.examples:
            with st.expander(f"Examples: {title.lower()}"):
                _draw_list(tally.examples, title)
    staged = [StagedClass(name, "", "new", 0) for name in found.unknown_classes]
    chosen = _get_class_map(order)
    staged += [
        StagedClass(name, target, "mapped" if name in chosen else "matched", 0)
        for name, target in found.classes.items()
    ]
    staged += [StagedClass(name, "", "left out", 0) for name, target in chosen.items() if not target]
    choices = order.choices
    if chosen := build_class_map(staged, _draw_class_table(staged, known, state, False), known):
        choices = replace(choices, class_map={**choices.class_map, **chosen})
    before = {source.name: source for source in prediction_sources.load_sources(db)}.get(order.predictions_name)
    if before:
        show_info(
            f"There are predictions called {before.name} already, by {before.annotator}: "
            f"{format_count(before.images, 'image')}, {format_count(len(before.class_ids), 'class', 'classes')}."
        )
        again = st.radio(
            "What to do",
            list(REPLACE_CHOICES),
            index=int(choices.replace),
            format_func=REPLACE_CHOICES.__getitem__,
            key=f"import_again_{state.since}",
        )
        choices = replace(choices, replace=again)
    if choices not in (order.choices, state.refused):
        work.change_choices(choices)
        st.rerun()
    if state.error:
        show_error(state.error)
    _draw_buttons(work, disabled=bool(state.error))


def _get_class_map(order: ImportRequest) -> Mapping[str, str]:
    given = order.choices.class_map
    return given if isinstance(given, Mapping) else {}


def _capitalize(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _draw_sentences(order: ImportRequest, headline: str, sentences: Iterable[str]) -> None:
    st.markdown(f"**{escape_markdown(clean_for_page(headline, order))}**")
    st.caption(escape_markdown("\n".join(clean_for_page(sentence, order) for sentence in sentences)))


def _draw_list(texts: Iterable[str], label: str) -> None:
    items = "".join(f'<li dir="auto">{escape(text)}</li>' for text in texts)
    st.html(f'{STYLE}<ul class="examples" tabindex="0" aria-label="{escape(label)}">{items}</ul>')


def _draw_buttons(work: ImportRunner, disabled: bool) -> None:
    with st.container(horizontal=True):
        if st.button("Import", type="primary", disabled=disabled, shortcut="Ctrl+Enter", key="import_store"):
            work.store()
            st.rerun()
        if st.button("Cancel", key="import_drop"):
            work.cancel()
            work.wait()
            st.rerun()


def _is_undone(db: Database, state: ImportState) -> bool:
    if isinstance(state.result, prediction_sources.PredictionSource):
        return state.result.id not in [source.id for source in prediction_sources.load_sources(db)]
    assert state.result
    number = state.result.imported.id
    return any(one.id == number and one.undone_at is not None for one in past_imports.load_imports(db))


def _draw_result(work: ImportRunner, state: ImportState) -> None:
    order, result = state.order, state.result
    assert order and result
    with st.container(border=True):
        if isinstance(result, prediction_sources.PredictionSource):
            text = (
                f"{result.name}: a {result.scale} of {format_count(result.cells, 'image-class pair')} on "
                f"{format_count(result.images, 'image')}. The next training uses it."
            )
            st.success(escape_markdown(text))
        else:
            st.success(escape_markdown("\n".join([order.name, *import_messages.describe_result(result)])))
            if result.registered:
                for what, bad in (("skipped", result.registered.bad), ("missing", result.registered.missing)):
                    for reason, names in group_by_reason(bad).items():
                        show_warning(f"{format_count(len(names), 'file')} {what}: {reason} (such as {names[0]})")
        with st.container(horizontal=True):
            draw_page_link("annotate", "Annotate", ":material/touch_app:")
            draw_page_link("review", "Review", ":material/fact_check:")
            draw_page_link("progress", "Progress", ":material/monitoring:")
        if st.button("Close", key="import_close"):
            work.dismiss()
            st.rerun()
