"""The preview of the chosen export on the Export page: counts, what the model fills in, splits, first rows.

It is counted in the background. A count that took long is not repeated at every answer: the page says how old it is.
"""

import time
from collections import Counter
from collections.abc import Hashable

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.summary import ROWS, Summary, counted_alike, summarize, table_rows
from annotator.exchange.exports.thresholds import Fill
from annotator.exchange.formats.view import STATE_WORDS
from annotator.quality.certificate import stamp
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.imports import imports
from annotator.ui.charts import splits as chart
from annotator.ui.charts import theme
from annotator.ui.parts import frame, note_list, tables
from annotator.ui.work.background import Work, background

REFRESH = 1.0  # seconds, while something is being counted
COLUMNS_SHOWN = 40  # of the preview


def stamp_of(db: Database) -> Hashable:
    """Return all that an export depends on, besides the choices: while it is equal, so is the export."""
    return stamp(db), db.setting("registrations", 0), len(imports.imports(db))


def count(db: Database, choices: Choices) -> Work:
    """Return the computation that counts an export with these choices; its result is a Summary."""
    alike = counted_alike(choices)
    again = st.session_state.pop("count_again", False)
    return background(db).ask(("export", alike), stamp_of(db), lambda note: summarize(db, alike, note), again=again)


def summary_of(work: Work) -> Summary | None:
    """Return the newest summary that was counted, also one from before a change; None before the first."""
    return work.result or (work.before.result if work.before else None)


def wait_for(work: Work, what: str) -> None:
    """Draw how far a computation is until it has ended; then the page is drawn again."""
    if work.ended.is_set():
        return

    def waiting() -> None:
        work.asked = time.monotonic()
        if work.ended.is_set():
            st.rerun()
        words = f"{what}: {work.done:,} of {work.of:,} images" if work.of else f"{what}: waiting"
        st.progress(work.share, text=frame.escaped(words))

    frame.refreshed(waiting, REFRESH)()


def counts(db: Database, work: Work, summary: Summary) -> None:
    """Draw the numbers of images, classes and answers."""
    size = f"{counted(summary.images, 'image')} × {counted(len(summary.head.classes), 'class', 'classes')}"
    states = [*STATE_WORDS[1:], "unknown"]
    totals: Counter[tuple[str, str]] = Counter()
    rows = []
    for column, class_ in enumerate(summary.head.classes):
        of_class: Counter[str] = Counter()
        for state, source, many in summary.tallies.counts_of_class(column):
            totals[state, source] += many
            of_class[state] += many
        rows.append({"Class": class_.name} | {_state(state): f"{of_class[state]:,}" for state in states})
    of_state = {state: sum(many for (other, _), many in totals.items() if other == state) for state in states}
    pairs = ", ".join(f"{of_state[state]:,} {_state(state).lower()}" for state in states)
    st.markdown(f"**{frame.escaped(size)}:** {frame.escaped(pairs)}.")
    if totals:
        with st.expander("By class, and where the answers come from"):
            tables.show(rows, "Answers by class")
            tables.show(
                [
                    {"Answer": _state(state), "From": source or "nobody", "Image-class pairs": f"{many:,}"}
                    for (state, source), many in totals.most_common()
                ],
                "Where the answers come from",
            )
    for sentence in summary.said:
        st.caption(frame.escaped(sentence))
    _age(db, work)


def fill(fill_: Fill) -> None:
    """Draw what the model fills in and how much of it is expected to be wrong."""
    headline, basis, rule = fill_.sentences()
    (st.info if fill_.calibrated else st.warning)(f"{frame.escaped(headline)}\n\n{frame.escaped(basis)}")
    st.caption(frame.escaped(rule))
    with st.expander("What the model fills in, class by class"):
        rows = [
            {
                "class": class_.name,
                "present from": "never" if class_.present_from is None else f"{class_.present_from:g}",
                "present": f"{class_.present:,}",
                "present, expected wrong": f"{class_.wrong_present:,.1f}",
                "absent up to": "never" if class_.absent_to is None else f"{class_.absent_to:g}",
                "absent": f"{class_.absent:,}",
                "absent, expected wrong": f"{class_.wrong_absent:,.1f}",
                "left empty": f"{class_.unknown:,}",
            }
            for class_ in fill_.classes
        ]
        tables.show(rows, "What the model fills in, class by class")


def splits(summary: Summary) -> None:
    """Draw images and labels of each split, as a chart and as a table."""
    if not summary.splits or not summary.head.classes:
        return
    st.subheader("Splits")
    table = chart.splits_table(summary.splits)
    if len(table):
        colours = theme.palette(st.context.theme.type)
        st.altair_chart(
            theme.legible(chart.splits(table, colours), colours),
            key="chart_splits",
            alt="Share of each class's labels in each split, as in the table below",
        )
    rows = [{"": "Images"} | {split["name"] or "none": f"{split['images']:,}" for split in summary.splits}]
    rows += [
        {"": class_.name} | {split["name"] or "none": f"{split['present'][class_.name]:,}" for split in summary.splits}
        for class_ in summary.head.classes
    ]
    with st.expander("Labels of each class in each split"):
        tables.show(rows, "Images and labels of each split")


def preview(summary: Summary, choices: Choices) -> None:
    """Draw the first rows, with the columns of a CSV."""
    st.subheader("Preview")
    try:
        names, *rows = table_rows(summary, choices)
    except AnnotatorError as error:
        frame.error(error)
        return
    if not rows:
        st.caption("No rows yet: the first images have no answer.")
        return
    what = "answers" if choices.columns.long else f"of {counted(summary.images, 'image')}"
    more = f"; {len(names) - COLUMNS_SHOWN:,} more columns" if len(names) > COLUMNS_SHOWN else ""
    st.caption(f"The first {min(ROWS, len(rows))} {what}, as a CSV has them{more}.")
    shown = names[:COLUMNS_SHOWN]
    tables.show([dict(zip(shown, row, strict=False)) for row in rows], "The first rows of the export")


def _age(db: Database, work: Work) -> None:
    """Say when the counts were made, where something has changed since, and offer to count again."""
    if not work.ended.is_set() or work.stamp == stamp_of(db):
        return
    moment = note_list.moment_in_words(work.began_at, frame.zone())
    words = f"Counted {moment}; something has changed since. An export always has the newest labels."
    st.caption(frame.escaped(words))
    if st.button("Count again", key="count_again_button"):
        st.session_state["count_again"] = True
        st.rerun()


def _state(state: str) -> str:
    return {"unknown": "unanswered"}.get(state, state).capitalize()
