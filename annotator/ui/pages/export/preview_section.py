"""The preview of the chosen export, counted in the background and recounted on request."""

from collections import Counter

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_summary import (
    PREVIEW_ROWS,
    Summary,
    drop_uncounted_choices,
    format_preview_rows,
    summarize_export,
)
from annotator.exchange.exports.thresholds import Fill
from annotator.exchange.formats.export_view import STATE_WORDS
from annotator.humanize import format_count
from annotator.store.database.database import Database
from annotator.ui.pages.export import split_charts
from annotator.ui.shared import chart_theme, html_tables
from annotator.ui.shared.computation_progress import compute_stamp
from annotator.ui.shared.local_time import format_moment, get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_error
from annotator.ui.shared.work.computations import Computation, get_computations

MAX_COLUMNS_SHOWN = 40  # of the preview


def request_summary(db: Database, choices: Choices) -> Computation:
    alike = drop_uncounted_choices(choices)
    again = st.session_state.pop("count_again", False)
    return get_computations(db).request(
        ("export", alike), compute_stamp(db), lambda note: summarize_export(db, alike, note), force=again
    )


def get_newest_summary(work: Computation) -> Summary | None:
    return work.result or (work.before.result if work.before else None)


def draw_counts(db: Database, work: Computation, summary: Summary) -> None:
    size = f"{format_count(summary.images, 'image')} × {format_count(len(summary.head.classes), 'class', 'classes')}"
    states = [*STATE_WORDS[1:], "unknown"]
    totals: Counter[tuple[str, str]] = Counter()
    rows = []
    for column, class_ in enumerate(summary.head.classes):
        of_class: Counter[str] = Counter()
        for state, source, many in summary.tallies.counts_of_class(column):
            totals[state, source] += many
            of_class[state] += many
        rows.append({"Class": class_.name} | {_format_state(state): f"{of_class[state]:,}" for state in states})
    of_state = {state: sum(many for (other, _), many in totals.items() if other == state) for state in states}
    pairs = ", ".join(f"{of_state[state]:,} {_format_state(state).lower()}" for state in states)
    st.markdown(f"**{escape_markdown(size)}:** {escape_markdown(pairs)}.")
    if totals:
        with st.expander("By class, and where the answers come from"):
            html_tables.show(rows, "Answers by class")
            html_tables.show(
                [
                    {"Answer": _format_state(state), "From": source or "nobody", "Image-class pairs": f"{many:,}"}
                    for (state, source), many in totals.most_common()
                ],
                "Where the answers come from",
            )
    for sentence in summary.sentences:
        st.caption(escape_markdown(sentence))
    _draw_age(db, work)


def draw_fill(fill_: Fill) -> None:
    """Draw, per class, the labels that the model fills in, and their expected errors."""
    headline, basis, rule = fill_.sentences()
    (st.info if fill_.calibrated else st.warning)(f"{escape_markdown(headline)}\n\n{escape_markdown(basis)}")
    st.caption(escape_markdown(rule))
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
        html_tables.show(rows, "What the model fills in, class by class")


def draw_splits(summary: Summary) -> None:
    if not summary.splits or not summary.head.classes:
        return
    st.subheader("Splits")
    table = split_charts.build_split_table(summary.splits)
    if len(table):
        colors = chart_theme.get_palette(st.context.theme.type)
        st.altair_chart(
            chart_theme.apply_text_colors(split_charts.build_split_chart(table, colors), colors),
            key="chart_splits",
            alt="Share of each class's labels in each split, as in the table below",
        )
    rows = [{"": "Images"} | {split["name"] or "none": f"{split['images']:,}" for split in summary.splits}]
    rows += [
        {"": class_.name} | {split["name"] or "none": f"{split['present'][class_.name]:,}" for split in summary.splits}
        for class_ in summary.head.classes
    ]
    with st.expander("Labels of each class in each split"):
        html_tables.show(rows, "Images and labels of each split")


def draw_rows(summary: Summary, choices: Choices) -> None:
    st.subheader("Preview")
    try:
        names, *rows = format_preview_rows(summary, choices)
    except AnnotatorError as error:
        show_error(error)
        return
    if not rows:
        st.caption("No rows yet: the first images have no answer.")
        return
    what = "answers" if choices.columns.long else f"of {format_count(summary.images, 'image')}"
    more = f"; {len(names) - MAX_COLUMNS_SHOWN:,} more columns" if len(names) > MAX_COLUMNS_SHOWN else ""
    st.caption(f"The first {min(PREVIEW_ROWS, len(rows))} {what}, as a CSV has them{more}.")
    shown = names[:MAX_COLUMNS_SHOWN]
    html_tables.show([dict(zip(shown, row, strict=False)) for row in rows], "The first rows of the export")


def _draw_age(db: Database, work: Computation) -> None:
    if not work.ended.is_set() or work.stamp == compute_stamp(db):
        return
    moment = format_moment(work.began_at, get_time_zone())
    words = f"Counted {moment}; something has changed since. An export always has the newest labels."
    st.caption(escape_markdown(words))
    if st.button("Count again", key="count_again_button"):
        st.session_state["count_again"] = True
        st.rerun()


def _format_state(state: str) -> str:
    return {"unknown": "unanswered"}.get(state, state).capitalize()
