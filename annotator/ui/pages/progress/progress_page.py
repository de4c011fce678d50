"""The Progress page: labels, model, worker and problems, from counts that stay fast in large projects."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import streamlit as st

from annotator.humanize import format_count, format_duration_range, format_percent
from annotator.records import Run
from annotator.roles import Right
from annotator.snapshot.project_progress import load_progress
from annotator.snapshot.project_status import collect_status, describe_embedding
from annotator.snapshot.run_predictions import load_rankings, read_predictions
from annotator.snapshot.suggestions import describe_first_run
from annotator.snapshot.time_report import load_time_report
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.database.heartbeat import WorkerCondition
from annotator.store.labels import comments, project_counts
from annotator.store.people import blindness
from annotator.store.runs import runs
from annotator.ui.access import served_project
from annotator.ui.pages.progress import progress_charts
from annotator.ui.shared import chart_theme, empty_notice, note_list
from annotator.ui.shared.annotator_name import create_token, get_known_name
from annotator.ui.shared.chart_theme import Palette
from annotator.ui.shared.local_time import get_time_zone
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors, show_info, show_warning
from annotator.ui.shared.page_access import build_fragment, draw_page_link, has_right

REFRESH_SECONDS = 5.0
# states of the worker that people know by other words
WORKER_STATE_WORDS = {"idle": "up to date", "embedding": "analyzing images"}
DAY_SECONDS = 24 * 3600
MAX_HOURS_SHOWN = 10 * 24  # a longer project is shown by the day
STEP_TITLES = {60: "a minute", 3600: "an hour", DAY_SECONDS: "a day"}
MAX_NOTES_SHOWN = 200  # flags, and comments
MAX_PAIRS_LISTED = 1000
METRIC_HELP = {
    "Pairs answered": "Pairs of an image and a class that people answered, unsure included.",
    "Time left": "For all unanswered pairs, as Autopilot would ask them, at your pace. 90 % range.",
    "Labeled images": "With at least one answer; most of their pairs may be unanswered.",
    "People disagree on": "Pairs that two people answered differently. Settle them in Review.",
}


def page() -> None:
    """Draw the Progress page, which refreshes itself."""
    with show_errors():
        build_fragment(_draw_page, REFRESH_SECONDS)()


def _draw_page() -> None:
    with show_errors():
        db, colors = served_project.db(), _get_colors()
        if empty_notice.draw_if_empty(db):
            return
        status_, run = collect_status(db, with_files=False), runs.load_current_run(db)
        _draw_numbers(db, status_)
        _draw_notes(db)
        _draw_worker(status_)
        left, right = st.columns(2)
        with left:
            _draw_decisions(db, colors)
            _draw_reliability(db, colors)
            _draw_suggestion_accuracy(db, colors)
        with right:
            _draw_labels(db, colors)
            _draw_training(run, colors)
        _draw_cooccurrence(db, colors)
        _draw_work_times(db, colors)
        _draw_file_problems(status_)


def _draw_numbers(db: Database, status_: dict[str, Any]) -> None:
    progress = load_progress(db, get_known_name())
    ends = progress.seconds_range
    left = "-" if ends is None else format_duration_range(*ends) if ends[1] else "0"
    with st.container(horizontal=True, gap="medium"):
        for label, value in {
            "Pairs answered": f"{progress.pairs_answered:,} of {progress.pairs:,}",
            "Complete images": f"{progress.images_complete:,} of {progress.images:,}",
            "Time left": left,
            "Labeled images": f"{progress.images_labeled:,} of {progress.images:,}",
            "Present": f"{status_['labels']['present']:,}",
            "Absent": f"{status_['labels']['absent']:,}",
            "Unsure": f"{status_['labels']['unsure']:,}",
            "Flagged": f"{status_['flagged']:,}",
            "People disagree on": f"{status_['annotator_disagreements']:,}",
        }.items():
            st.metric(label, value, width="content", help=METRIC_HELP.get(label))
    if has_right(Right.REVIEW):
        with st.container(horizontal=True):
            if status_["annotator_disagreements"]:
                draw_page_link("review", "Settle what people disagree on", ":material/balance:", settle="1")
            if len(project_counts.list_annotators(db)) > 1:
                draw_page_link("agreement", "How well do people agree?", ":material/groups:")
    if has_right(Right.ANSWER) and len(project_counts.list_annotators(db)) > 1:
        draw_page_link("people", "How do you answer?", ":material/badge:")
    st.progress(progress.share, text=escape_markdown(f"{progress.percent()}: {progress.sentence()}"))


def _draw_worker(status_: dict[str, Any]) -> None:
    worker, run = status_["worker"], status_["run"]
    words = []
    if worker["alive"]:
        steps = f" {worker['done']:,} of {worker['of']:,}" if worker["of"] else ""
        delay = worker["delay"] and f" ({worker['delay']})"
        words.append(f"Worker running: {WORKER_STATE_WORDS.get(worker['state'], worker['state'])}{steps}{delay}.")
    elif worker["condition"] == WorkerCondition.HUNG.value:
        show_warning(f"The worker hangs ({worker['state']}, {worker['delay']}). Restart the app.")
    elif worker["condition"] == WorkerCondition.NOT_INSTALLED.value:
        show_info(status_["last_error_advice"])
    else:
        advice = status_["last_error_advice"] or "The app restarts it by itself."
        show_warning(f"The worker is not running. {advice}")
    if status_["embedding"]:
        _draw_embedding(status_["embedding"])
    if status_["features"] < status_["images"]:
        words.append(f"{status_['features']:,} of {format_count(status_['images'], 'image')} analyzed.")
    if run:
        words.append(
            f"Last training: {run['method']}, {format_count(run['epochs'], 'epoch')} in {run['seconds']:.1f} s on "
            f"{format_count(run['images'], 'image')}; {format_count(run['newer_decisions'], 'answer')} not yet learned."
        )
        words += [f"Its suggestions are {run['guessed']}."] if run["guessed"] else []
    else:
        words.append(f"No model yet: {describe_first_run(served_project.db())}.")
    st.caption(escape_markdown(" ".join(words)))
    if status_["left_out"]:
        with st.expander("Left out of the last training", icon=":material/warning:"):
            st.code("\n".join(status_["left_out"]), language=None)
    if status_["last_error"] and worker["condition"] != WorkerCondition.NOT_INSTALLED.value:
        with st.expander("The worker's last error", icon=":material/error:"):
            st.code(status_["last_error"], language=None)


def _draw_embedding(state: dict[str, Any]) -> None:
    share = min(state["done"] / max(state["of"], 1), 1.0)
    st.progress(share, text=escape_markdown(f"annotator embed: {describe_embedding(state)}"))


def _draw_decisions(db: Database, colors: Palette) -> None:
    seconds = project_counts.get_chart_time_step(db)
    rows = project_counts.count_decisions_over_time(db, seconds)
    if rows and rows[-1]["at"] - rows[0]["at"] > MAX_HOURS_SHOWN * 3600:
        seconds = DAY_SECONDS
        rows = project_counts.count_decisions_over_time(db, seconds)
    step = STEP_TITLES[seconds]
    with _card(f"Decisions {step}"):
        if not rows:
            st.info("No answers yet. Start with Autopilot.")
            draw_page_link("autopilot", "Go to Autopilot")
            return
        zone = get_time_zone()
        table = pd.DataFrame(rows)
        table["at"] = [datetime.fromtimestamp(at, UTC).astimezone(zone) for at in table["at"]]
        table["until"] = table["at"] + timedelta(seconds=seconds)
        order = {name: place for place, name in enumerate(progress_charts.SOURCE_TITLES)}
        table["order"] = [order.get(source) for source in table["source"]]
        table["kind"] = [progress_charts.SOURCE_TITLES.get(source) for source in table["source"]]
        count = f"{table['decisions'].sum():,} decisions by kind, over time"
        _draw_chart(
            progress_charts.build_decision_chart(table, step, colors),
            table.loc[:, ["at", "kind", "decisions"]],
            "decisions",
            count,
        )


def _draw_labels(db: Database, colors: Palette) -> None:
    with _card("Answers by class"):
        table = pd.DataFrame(project_counts.list_label_counts_by_class(db))
        if not table[["present", "absent", "unsure"]].to_numpy().any():
            st.info("No answers yet.")
            return
        if len(table) > progress_charts.MAX_CLASSES_SHOWN:
            st.caption(
                f"The {progress_charts.MAX_CLASSES_SHOWN:d} classes with most answers, of {len(table):,}; Numbers "
                "lists all."
            )
        words = "Images present, absent and unsure, by class"
        _draw_chart(progress_charts.build_label_chart(table, colors), table, "labels", words)


def _draw_reliability(db: Database, colors: Palette) -> None:
    with _card("Calibration"):
        table = progress_charts.build_reliability_table(project_counts.count_answers_by_score(db))
        if table.empty:
            st.info("No suggestions answered yet. Review shows them.")
            return
        st.caption("How often people answered present, by the probability shown. On the dashed line it was right.")
        words = "Share of suggestions found present, by the probability that was shown, with 95 % intervals"
        _draw_chart(progress_charts.build_reliability_chart(table, colors), table, "reliability", words)


def _draw_suggestion_accuracy(db: Database, colors: Palette) -> None:
    with _card("Suggestion accuracy"):
        table = pd.DataFrame(runs.count_suggestion_answers(db))
        if table.empty:
            st.info("No suggestions answered yet. Review shows them.")
            return
        accepted = int(table["accepted"].to_numpy().sum())
        answered = accepted + int(table["rejected"].to_numpy().sum())
        shown = (
            f" The newest {progress_charts.MAX_RUNS_SHOWN} runs are shown."
            if len(table) > progress_charts.MAX_RUNS_SHOWN
            else ""
        )
        if answered:
            suggestions = format_count(answered, "answered suggestion")
            sentence = f"{format_percent(accepted, answered)} right, of {suggestions}.{shown}"
            st.caption(escape_markdown(sentence))
        _draw_chart(
            progress_charts.build_suggestion_chart(table, colors),
            table,
            "fates",
            "Suggestions accepted, rejected and unsure, by run",
        )


def _draw_training(run: Run | None, colors: Palette) -> None:
    with _card("Last training" if run else "Training"):
        if run is None:
            st.info(escape_markdown(f"No model yet: {describe_first_run(served_project.db())}."))
            return
        if len(run.loss) < 2:  # a line needs two points
            loss = f", with a loss of {run.loss[0]:.4f}" if run.loss else ""
            st.caption(escape_markdown(f"{run.method}: {format_count(run.epochs, 'epoch')}{loss}."))
            return
        chart = progress_charts.build_loss_chart(run.loss, run.method, colors)
        _draw_chart(
            chart,
            progress_charts.build_loss_table(run.loss),
            "training",
            f"Loss of the last training over {run.epochs} epochs",
        )


def _draw_cooccurrence(db: Database, colors: Palette) -> None:
    if not has_right(Right.REVIEW) and blindness.has_hidden_images(db, get_known_name()):
        return  # counted from all labels
    predictions = read_predictions(db)
    rankings = load_rankings(db, predictions) if predictions else None
    if predictions is None or rankings is None:
        return
    with _card("Classes seen together"):
        names = classes.load_class_names(db)
        table = progress_charts.build_cooccurrence_table(
            rankings.cooccurrence, [names[class_id] for class_id in predictions.class_ids.tolist()]
        )
        if not table["images"].to_numpy().any():
            st.info("No image has two labels yet.")
            return
        st.caption("Of 100 images with the left class, so many show the upper one.")
        pairs = table.sort_values("images", ascending=False).head(MAX_PAIRS_LISTED)
        _draw_chart(
            progress_charts.build_cooccurrence_chart(table, colors),
            pairs,
            "together",
            "How often two classes are on one image",
        )


def _draw_work_times(db: Database, colors: Palette) -> None:
    """Draw how long the viewer's own tasks take. Nobody else's times are shown."""
    name = get_known_name()
    if not name:
        return
    report = load_time_report(db, name)
    with _card("Your times"):
        if sum(report.answers.values()):
            st.caption(
                f"From your newest {format_count(sum(report.answers.values()), 'timed answer')}, {report.tested:,} of "
                "them in the speed test. Averages without pauses, with 95 % intervals; a tick is the default. "
                "Autopilot plans with these times."
            )
            columns = ("seconds", "low", "high", "default", "answers")
            table = pd.DataFrame(
                {"name": figure.about} | {column: getattr(figure, column) for column in columns}
                for figure in (*report.tasks, *report.parts)
            )
            _draw_chart(
                progress_charts.build_work_time_chart(table, colors),
                table,
                "times",
                "Seconds of your work by kind, with 95 % intervals",
            )
        else:
            st.info("No timed answers of yours yet.")
        draw_page_link("speed_test", "How fast are you? A two-minute test", ":material/timer:")


def _draw_notes(db: Database) -> None:
    """Draw flagged images first, then comments."""
    flags, said = project_counts.load_flagged_images(db, MAX_NOTES_SHOWN), comments.load_comments(db, MAX_NOTES_SHOWN)
    if not has_right(Right.REVIEW):
        own = get_known_name()
        hidden = blindness.find_hidden_images(db, own, [row["id"] for row in (*flags, *said)])
        flags, said = (
            [row for row in rows if row["id"] not in hidden or row["annotator"] == own] for rows in (flags, said)
        )
    token = create_token() if get_known_name() else ""
    shown = [
        ("Flagged images", flags, project_counts.count_flagged_images(db)),
        ("Comments", said, comments.count_comments(db)),
    ]
    shown = [part for part in shown if part[1]]
    for column, (title, rows, count) in zip(st.columns(len(shown)) if shown else (), shown, strict=True):
        with column, _card(title):
            if count > len(rows):
                st.caption(f"The newest {len(rows):,} of {count:,}.")
            note_list.show(rows, title, token, get_time_zone())


def _draw_file_problems(status_: dict[str, Any]) -> None:
    counts = {"missing image": status_["images_missing_in_all"], "skipped file": status_["files_kept_out_in_all"]}
    parts = [format_count(count, noun) for noun, count in counts.items() if count]
    if parts:
        draw_page_link("images", f"{' and '.join(parts)}: see Images", ":material/hide_image:")


@contextmanager
def _card(title: str) -> Iterator[None]:
    with st.container(border=True):
        st.markdown(f"#### {title}")
        yield


def _draw_chart(chart: chart_theme.AnyChart, numbers: pd.DataFrame, key: str, description: str) -> None:
    st.altair_chart(chart_theme.apply_text_colors(chart, _get_colors()), key=f"chart_{key}", alt=description)
    with st.popover("Numbers", key=f"numbers_{key}"):
        st.dataframe(numbers, hide_index=True)


def _get_colors() -> Palette:
    return chart_theme.get_palette(st.context.theme.type)
