"""The import that is open: how far it is, what it would change with the choices that are left, and what it has done."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from types import MappingProxyType

import streamlit as st

from annotator.exchange.imports import importing as labels
from annotator.exchange.imports import in_words
from annotator.exchange.imports.refusals import no_answers_in_words
from annotator.exchange.predictions import outside_predictions as predictions
from annotator.records import Class
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images.images import by_reason
from annotator.store.imports import imports
from annotator.store.imports.staged_cells import Preview, StagedClass
from annotator.store.runs import prediction_sources
from annotator.ui.pages import import_reading
from annotator.ui.parts import frame, tables
from annotator.ui.work.importing import CANCELLED, DONE, FAILED, READY, Importing, Order, State, for_page

NEW, OUT = "new", "out"  # what becomes of a class of the source, beside the id of one of the project
CHOOSE = ""  # it has to be said
NAMED = "="  # before the name of a new class that is called otherwise
CONFLICTS = {"keep": "Keep the answers of the project", "replace": "Take the answers of the source"}
REPLACE = {False: "Add to it: newer scores replace older ones", True: "Delete its earlier scores"}
MATCHES = {
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
SHOWN = 50  # classes of the source that are listed at a time
NAMES = 5  # of classes in a sentence
NOTHING: Mapping[str, str] = MappingProxyType({})
STYLE = """<style>
ul.examples {margin: 0; padding-left: 1.2rem; max-height: 22rem; overflow: auto; overflow-wrap: anywhere;}
ul.examples:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 1px;}
</style>"""


def progress(work: Importing) -> None:
    """Draw how far the import is, and have the whole page drawn again when it is no longer at work."""
    state = work.state
    if not state.is_at_work:
        st.rerun()
    if state.order:
        what = state.what or "Reading"
        count = f": {state.done:,} of {state.of:,}" if state.of else f": {state.done:,}" if state.done else ""
        whose = f"{state.order.by} imports {state.order.name}. {what}{count}"
        if state.of:
            st.progress(min(state.done / state.of, 1.0), text=frame.escaped(whose))
        else:  # nobody knows how much there is
            st.info(frame.escaped(whose), icon=":material/hourglass_top:")
        st.button("Cancel", on_click=work.cancel, key="import_cancel")


def outcome(db: Database, by: str, work: Importing, state: State) -> None:
    """Draw the import that waits for a decision, or the outcome of the last one.

    Args:
        db: The project's database.
        by: The person at the page.
        work: The project's import in the background.
        state: Of `work`, while it is not at work.
    """
    if state.order is None:
        return
    if state.stage == READY:
        _ready(db, by, work, state)
    elif state.order.by == by:
        if state.stage == DONE:
            if not _is_taken_back(db, state):
                _done(work, state)
        elif state.stage == CANCELLED:
            kept = state.said or f"{state.order.name} was not imported, and the project is as it was."
            frame.info(f"Cancelled: {kept}")
        elif state.stage == FAILED:
            frame.error(state.error)


def _ready(db: Database, by: str, work: Importing, state: State) -> None:
    order, plan = state.order, state.plan
    assert order and plan
    if order.by != by:
        frame.info(f"{order.by} is looking at what {order.name} would change. One import can be open at a time.")
        st.button(f"Cancel {frame.escaped(order.by)}'s import", on_click=work.cancel, key="import_cancel_other")
        return
    with st.container(border=True):
        st.markdown(f"#### Preview of {frame.escaped(order.name)}")
        if isinstance(plan, labels.Plan):
            _labels(db, work, state, plan)
        else:
            _scores(db, work, state, plan)


def _labels(db: Database, work: Importing, state: State, plan: labels.Plan) -> None:
    order, preview = state.order, plan.preview
    assert order and isinstance(order.choices, labels.Choices)
    _said(order, in_words.format_in_words(plan), plan.said)
    known = classes.in_order(db)
    read_as = import_reading.reading(order, plan, order.choices.reading, state.since)
    left, right = st.columns(2, gap="medium")
    with left:
        _numbers(in_words.lines(preview, order.choices.conflicts))
        choices = replace(_choices(order, state, preview), reading=read_as)
    with right:
        becomes = _class_table(preview.classes, known, state, True, preview.unclear, _map(order))
        if chosen := mapped(preview.classes, becomes, known):
            choices = replace(choices, class_map={**_map(order), **chosen})
        for warning in preview.warnings:
            frame.warning(warning)
    if choices not in (order.choices, state.refused):
        work.choose(choices)
        st.rerun()
    if state.error:
        frame.error(state.error)
    elif plan.doubts:
        st.info("It can be read in more than one way. Choose above what it means.")
    elif preview.unclear:
        names = ", ".join(f"'{name}'" for name in [*preview.unclear][:NAMES])
        more = ", ..." if len(preview.unclear) > NAMES else ""
        frame.info(f"Choose first what becomes of {names}{more}.")
    elif plan.has_no_answers:
        frame.warning(for_page(no_answers_in_words(order.name, preview), order))
    elif not plan.changes:
        st.info("Nothing would change. The project has all of it already.")
    is_refused = bool(state.error or preview.unclear or plan.doubts or plan.has_no_answers)
    _buttons(work, disabled=is_refused or not plan.changes)


def _numbers(lines: Sequence[in_words.Line]) -> None:
    """Draw the counts of what would change, and examples of what may be a surprise."""
    if lines:
        tables.show([{"What": _capital(line.title), "Count": f"{line.count:,}"} for line in lines], "What would change")
    for line in lines:
        if line.examples:
            with st.expander(frame.escaped(f"Examples: {line.title.split(':')[0]}")):
                _listed([*line.examples, *([f"and {line.remaining:,} more"] if line.remaining else [])], line.title)


def _choices(order: Order, state: State, preview: Preview) -> labels.Choices:
    """Draw the choices about conflicts and about what the source names, and return them."""
    choices = order.choices
    assert isinstance(choices, labels.Choices)
    conflicts = choices.conflicts
    different = preview.conflicts_with_people.count + preview.conflicts_with_imports.count
    if different or preview.attributes_other.count:
        conflicts = st.radio(
            "Where the project and the source differ",
            list(CONFLICTS),
            index=list(CONFLICTS).index(conflicts),
            format_func=CONFLICTS.__getitem__,
            key=f"import_conflicts_{state.since}",
        )
    names_all = st.checkbox(
        "What the source does not name is absent",
        value=choices.exhaustive,
        help="Only if somebody looked for every class on every image. Otherwise it stays unanswered.",
        key=f"import_exhaustive_{state.since}",
    )
    return replace(choices, conflicts=conflicts, exhaustive=names_all)


def mapped(staged: Sequence[StagedClass], becomes: Sequence[str], known: Sequence[Class]) -> dict[str, str]:
    """Return the changed entries of the class map: name in the source -> class of the project, "" for one left out.

    Args:
        staged: The classes of the source.
        becomes: Of each staged class: NEW, OUT, the id of a class of the project, CHOOSE, or NAMED and another name.
        known: The classes of the project.
    """
    names = {str(class_.id): class_.name for class_ in known} | {OUT: ""}

    def target(class_: StagedClass, wanted: str) -> str:
        return wanted.removeprefix(NAMED) if wanted.startswith(NAMED) else names.get(wanted, class_.name)

    return {
        class_.name: target(class_, wanted)
        for class_, wanted, before in zip(staged, becomes, guesses(staged, known), strict=True)
        if wanted != before
    }


def guesses(staged: Sequence[StagedClass], known: Sequence[Class]) -> list[str]:
    """Return the target that each staged class has now, as in the argument `becomes` of `mapped`."""
    ids = {class_.name: str(class_.id) for class_ in known}
    return [_guess(class_, ids) for class_ in staged]


def _guess(class_: StagedClass, ids: Mapping[str, str]) -> str:
    if class_.how == "unclear":
        return CHOOSE
    if class_.how == "left out" or not class_.target:
        return OUT
    return ids.get(class_.target, NEW if class_.target == class_.name else f"{NAMED}{class_.target}")


def _class_table(
    staged: Sequence[StagedClass],
    known: Sequence[Class],
    state: State,
    may_be_new: bool,
    unclear: Mapping[str, str] = NOTHING,
    chosen: Mapping[str, str] = NOTHING,
) -> list[str]:
    """Draw the classes of the source, unclear ones first and known ones last, and return the target of each.

    Args:
        staged: The classes of the source.
        known: The classes of the project.
        state: The state of the import, for the keys of the fields.
        may_be_new: Whether a class of the source may become a new one.
        unclear: Name -> why it has to be chosen.
        chosen: The class map: what was chosen for an unclear name but cannot be used.
    """
    now = guesses(staged, known)
    if not staged:
        return now
    parts = [f"{counted(len(now), 'class', 'classes')} {'in the source' if may_be_new else 'named differently'}"]
    new = sum(how == NEW or how.startswith(NAMED) for how in now)
    counts = [(new, "new"), (now.count(OUT), "left out"), (now.count(CHOOSE), "to choose")]
    parts += [f"{count:,} {words}" for count, words in counts if count]
    st.markdown("**Classes**")
    st.caption(frame.escaped(f"{', '.join(parts)}. Choose what each is here."))
    words = ({NEW: "New class", NAMED: "New class with another name"} if may_be_new else {}) | {OUT: "Leave out"}
    words |= {str(class_.id): class_.name for class_ in known}
    for place, class_ in enumerate(staged):
        if now[place] == CHOOSE and class_.name in chosen:
            [now[place]] = guesses([replace(class_, target=chosen[class_.name], how="mapped")], known)
    part = ""
    if len(staged) > SHOWN:
        part = st.text_input("Find a class", key=f"import_find_{state.since}").strip().casefold()
    wanted = [place for place, class_ in enumerate(staged) if part in class_.name.casefold()]
    same = [place for place in wanted if staged[place].how == "known"]
    others = [place for place in wanted if staged[place].how != "known"]
    others.sort(key=lambda place: staged[place].name not in unclear)
    for place in others[:SHOWN]:
        now[place] = _class_row(staged[place], now[place], words, f"import_class_{state.since}_{place}", unclear)
    if same:
        with st.expander(f"{counted(len(same), 'class has', 'classes have')} the same name here"):
            for place in same[: SHOWN - len(others[:SHOWN])]:
                now[place] = _class_row(staged[place], now[place], words, f"import_class_{state.since}_{place}")
    if len(wanted) > SHOWN:
        st.caption(f"{len(wanted) - SHOWN:,} more: type a part of the name above to find one.")
    return now


def _class_row(
    class_: StagedClass, now: str, words: Mapping[str, str], key: str, unclear: Mapping[str, str] = NOTHING
) -> str:
    """Draw one class of the source with the fields that choose its target, and return the target."""
    left, right = st.columns(2, vertical_alignment="center")
    answers = f", {counted(class_.answers, 'answer')}" if class_.answers else ""
    name = class_.name or "(no name)"
    left.markdown(f"{frame.escaped(name)}  \n:small[{MATCHES[class_.how]}{answers}]")
    if class_.name in unclear:
        left.caption(frame.escaped(_capital(unclear[class_.name])))
    options = list(words)
    before = now.removeprefix(NAMED) if now.startswith(NAMED) else ""
    with right:
        chosen = st.selectbox(
            f"What {frame.spoken(name)} becomes",
            options,
            index=None if now == CHOOSE else options.index(NAMED if before else now),
            format_func=lambda option: words[option],
            placeholder="Choose",
            label_visibility="collapsed",
            key=key,
        )
        if chosen != NAMED:
            return chosen or now
        typed = st.text_input(
            f"Name of the new class for {frame.spoken(name)}",
            before,
            placeholder="Name of the new class",
            label_visibility="collapsed",
            key=f"{key}_name",
        ).strip()
    return f"{NAMED}{typed}" if typed else now


def _scores(db: Database, work: Importing, state: State, plan: predictions.Plan) -> None:
    order, found = state.order, plan.found
    assert order and isinstance(order.choices, predictions.Choices)
    _said(order, f"Format: {plan.format} ({plan.why}).", plan.said)
    known = classes.in_order(db)
    rows = {"Images in the project": found.images, "Unknown images: left out": found.unknown_images.count}
    rows |= {"Pairs scored again: the highest counts": found.scored_again.count}
    rows |= {"Classes that are not in the project: left out": len(found.unknown_classes)}
    shown = [{"What": title, "Count": f"{count:,}"} for title, count in rows.items() if count]
    tables.show(shown, "What the predictions are about")
    for title, tally in (("Unknown images", found.unknown_images), ("Pairs scored again", found.scored_again)):
        if tally.examples:
            with st.expander(f"Examples: {title.lower()}"):
                _listed(tally.examples, title)
    staged = [StagedClass(name, "", "new", 0) for name in found.unknown_classes]
    chosen = _map(order)
    staged += [
        StagedClass(name, target, "mapped" if name in chosen else "matched", 0)
        for name, target in found.classes.items()
    ]
    staged += [StagedClass(name, "", "left out", 0) for name, target in chosen.items() if not target]
    choices = order.choices
    if chosen := mapped(staged, _class_table(staged, known, state, False), known):
        choices = replace(choices, class_map={**choices.class_map, **chosen})
    before = {source.name: source for source in prediction_sources.sources(db)}.get(order.called)
    if before:
        frame.info(
            f"There are predictions called {before.name} already, by {before.annotator}: "
            f"{counted(before.images, 'image')}, {counted(len(before.class_ids), 'class', 'classes')}."
        )
        again = st.radio(
            "What to do",
            list(REPLACE),
            index=int(choices.replace),
            format_func=REPLACE.__getitem__,
            key=f"import_again_{state.since}",
        )
        choices = replace(choices, replace=again)
    if choices not in (order.choices, state.refused):
        work.choose(choices)
        st.rerun()
    if state.error:
        frame.error(state.error)
    _buttons(work, disabled=bool(state.error))


def _map(order: Order) -> Mapping[str, str]:
    given = order.choices.class_map
    return given if isinstance(given, Mapping) else {}


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _said(order: Order, headline: str, sentences: Iterable[str]) -> None:
    st.markdown(f"**{frame.escaped(for_page(headline, order))}**")
    st.caption(frame.escaped("\n".join(for_page(sentence, order) for sentence in sentences)))


def _listed(texts: Iterable[str], label: str) -> None:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    st.html(f'{STYLE}<ul class="examples" tabindex="0" aria-label="{escape(label)}">{items}</ul>')


def _buttons(work: Importing, disabled: bool) -> None:
    with st.container(horizontal=True):
        if st.button("Import", type="primary", disabled=disabled, shortcut="Ctrl+Enter", key="import_store"):
            work.store()
            st.rerun()
        if st.button("Cancel", key="import_drop"):
            work.cancel()
            work.wait()
            st.rerun()


def _is_taken_back(db: Database, state: State) -> bool:
    """Return whether the import has been undone by now, or its predictions removed, by anybody and in any way."""
    if isinstance(state.result, prediction_sources.Source):
        return state.result.id not in [source.id for source in prediction_sources.sources(db)]
    assert state.result
    number = state.result.imported.id
    return any(one.id == number and one.undone_at is not None for one in imports.imports(db))


def _done(work: Importing, state: State) -> None:
    order, result = state.order, state.result
    assert order and result
    with st.container(border=True):
        if isinstance(result, prediction_sources.Source):
            text = (
                f"{result.name}: a {result.scale} of {counted(result.cells, 'image-class pair')} on "
                f"{counted(result.images, 'image')}. The next training uses it."
            )
            st.success(frame.escaped(text))
        else:
            st.success(frame.escaped("\n".join([order.name, *in_words.done_in_words(result)])))
            if result.registered:
                for what, bad in (("skipped", result.registered.bad), ("missing", result.registered.missing)):
                    for reason, names in by_reason(bad).items():
                        frame.warning(f"{counted(len(names), 'file')} {what}: {reason} (such as {names[0]})")
        with st.container(horizontal=True):
            frame.link("annotate", "Annotate", ":material/touch_app:")
            frame.link("review", "Review", ":material/fact_check:")
            frame.link("progress", "Progress", ":material/monitoring:")
        if st.button("Close", key="import_close"):
            work.dismiss()
            st.rerun()
