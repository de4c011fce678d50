"""Progress: how far the project is, how the model fares, what the worker does, what went wrong.

It refreshes by itself every few seconds and reads tallies only, so that it costs the same at a million images.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import streamlit as st

from annotator.records import Run
from annotator.roles import Right
from annotator.shares import counted, percent, seconds_in_words
from annotator.snapshot.predictions import rankings_of, read_predictions
from annotator.snapshot.progress import progress_of
from annotator.snapshot.status import embedding_in_words, status
from annotator.snapshot.suggestions import first_run_in_words
from annotator.snapshot.time_report import time_report
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import comments
from annotator.store.labels import counts as overview
from annotator.store.people import blindness
from annotator.store.runs import runs
from annotator.ui.access import context
from annotator.ui.charts import progress as charts
from annotator.ui.charts import theme
from annotator.ui.charts.theme import Palette
from annotator.ui.parts import empty, frame, note_list

REFRESH = 5.0
DOING = {"idle": "up to date", "embedding": "analyzing images"}  # states of the worker that people know by other words
DAY = 24 * 3600
HOURS_SHOWN = 10 * 24  # a longer project is shown by the day
STEPS = {60: "a minute", 3600: "an hour", DAY: "a day"}
NOTES_SHOWN = 200  # flags, and comments
PAIRS_LISTED = 1000
HELP = {
    "Pairs answered": "Pairs of an image and a class that people answered, unsure included.",
    "Time left": "For all unanswered pairs, in grids of 24, at your pace.",
    "Labeled images": "With at least one answer; most of their pairs may be unanswered.",
    "People disagree on": "Pairs that two people answered differently. Settle them in Review.",
}


def page() -> None:
    """Draw the page, refreshed every few seconds."""
    with frame.errors_shown():
        frame.refreshed(_live, REFRESH)()


def _live() -> None:
    with frame.errors_shown():
        db, colours = context.db(), _colours()
        if empty.shown(db):
            return
        status_, run = status(db, with_files=False), runs.current_run(db)
        _numbers(db, status_)
        _notes(db)
        _worker(status_)
        left, right = st.columns(2)
        with left:
            _decisions(db, colours)
            _reliability(db, colours)
            _fates(db, colours)
        with right:
            _labels(db, colours)
            _training(run, colours)
        _together(db, colours)
        _times(db, colours)
        _files(status_)


def _numbers(db: Database, status_: dict[str, Any]) -> None:
    progress = progress_of(db, frame.known_name())
    seconds = progress.seconds_left
    left = "-" if seconds is None else seconds_in_words(seconds) if seconds else "0"
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
            st.metric(label, value, width="content", help=HELP.get(label))
    if frame.may(Right.REVIEW):
        with st.container(horizontal=True):
            if status_["annotator_disagreements"]:
                frame.link("review", "Settle what people disagree on", ":material/balance:", settle="1")
            if len(overview.annotators(db)) > 1:
                frame.link("agreement", "How well do people agree?", ":material/groups:")
    if frame.may(Right.ANSWER) and len(overview.annotators(db)) > 1:
        frame.link("people", "How do you answer?", ":material/badge:")
    st.progress(progress.share, text=frame.escaped(f"{progress.percent()}: {progress.sentence()}"))


def _worker(status_: dict[str, Any]) -> None:
    worker, run = status_["worker"], status_["run"]
    words = []
    if worker["alive"]:
        steps = f" {worker['done']:,} of {worker['of']:,}" if worker["of"] else ""
        words.append(f"Worker running: {DOING.get(worker['state'], worker['state'])}{steps}.")
    else:
        frame.warning("The worker is not running. The app restarts it by itself.")
    if status_["embedding"]:
        _embedding(status_["embedding"])
    if status_["features"] < status_["images"]:
        words.append(f"{status_['features']:,} of {counted(status_['images'], 'image')} analyzed.")
    if run:
        words.append(
            f"Last training: {run['method']}, {counted(run['epochs'], 'epoch')} in {run['seconds']:.1f} s on "
            f"{counted(run['images'], 'image')}; {counted(run['newer_decisions'], 'answer')} not yet learned."
        )
        words += [f"Its suggestions are {run['guessed']}."] if run["guessed"] else []
    else:
        words.append(f"No model yet: {first_run_in_words(context.db())}.")
    st.caption(frame.escaped(" ".join(words)))
    if status_["left_out"]:
        with st.expander("Left out of the last training", icon=":material/warning:"):
            st.code("\n".join(status_["left_out"]), language=None)
    if status_["last_error"]:
        with st.expander("The worker's last error", icon=":material/error:"):
            st.code(status_["last_error"], language=None)


def _embedding(state: dict[str, Any]) -> None:
    share = min(state["done"] / max(state["of"], 1), 1.0)
    st.progress(share, text=frame.escaped(f"annotator embed: {embedding_in_words(state)}"))


def _decisions(db: Database, colours: Palette) -> None:
    seconds = overview.time_step(db)
    rows = overview.decisions_over_time(db, seconds)
    if rows and rows[-1]["at"] - rows[0]["at"] > HOURS_SHOWN * 3600:
        seconds = DAY
        rows = overview.decisions_over_time(db, seconds)
    step = STEPS[seconds]
    with _card(f"Decisions {step}"):
        if not rows:
            st.info("No answers yet. Start with Autopilot.")
            frame.link("autopilot", "Go to Autopilot")
            return
        zone = frame.zone()
        table = pd.DataFrame(rows)
        table["at"] = [datetime.fromtimestamp(at, UTC).astimezone(zone) for at in table["at"]]
        table["until"] = table["at"] + timedelta(seconds=seconds)
        order = {name: place for place, name in enumerate(charts.KINDS)}
        table["order"] = [order.get(source) for source in table["source"]]
        table["kind"] = [charts.KINDS.get(source) for source in table["source"]]
        count = f"{table['decisions'].sum():,} decisions by kind, over time"
        _chart(charts.decisions(table, step, colours), table.loc[:, ["at", "kind", "decisions"]], "decisions", count)


def _labels(db: Database, colours: Palette) -> None:
    with _card("Answers by class"):
        table = pd.DataFrame(overview.labels_by_class(db))
        if not table[["present", "absent", "unsure"]].to_numpy().any():
            st.info("No answers yet.")
            return
        if len(table) > charts.CLASSES_SHOWN:
            st.caption(f"The {charts.CLASSES_SHOWN:d} classes with most answers, of {len(table):,}; Numbers lists all.")
        words = "Images present, absent and unsure, by class"
        _chart(charts.labels(table, colours), table, "labels", words)


def _reliability(db: Database, colours: Palette) -> None:
    with _card("Calibration"):
        table = charts.reliability_table(overview.answers_by_score(db))
        if table.empty:
            st.info("No suggestions answered yet. Review shows them.")
            return
        st.caption("How often people answered present, by the probability shown. On the dashed line it was right.")
        words = "Share of suggestions found present, by the probability that was shown, with 95 % intervals"
        _chart(charts.reliability(table, colours), table, "reliability", words)


def _fates(db: Database, colours: Palette) -> None:
    with _card("Suggestion accuracy"):
        table = pd.DataFrame(runs.suggestion_fates(db))
        if table.empty:
            st.info("No suggestions answered yet. Review shows them.")
            return
        accepted = int(table["accepted"].to_numpy().sum())
        answered = accepted + int(table["rejected"].to_numpy().sum())
        shown = f" The newest {charts.RUNS_SHOWN} runs are shown." if len(table) > charts.RUNS_SHOWN else ""
        if answered:
            suggestions = counted(answered, "answered suggestion")
            sentence = f"{percent(accepted, answered)} right, of {suggestions}.{shown}"
            st.caption(frame.escaped(sentence))
        _chart(charts.fates(table, colours), table, "fates", "Suggestions accepted, rejected and unsure, by run")


def _training(run: Run | None, colours: Palette) -> None:
    with _card("Last training" if run else "Training"):
        if run is None:
            st.info(frame.escaped(f"No model yet: {first_run_in_words(context.db())}."))
            return
        if len(run.loss) < 2:  # a line needs two points
            loss = f", with a loss of {run.loss[0]:.4f}" if run.loss else ""
            st.caption(frame.escaped(f"{run.method}: {counted(run.epochs, 'epoch')}{loss}."))
            return
        chart = charts.training(run.loss, run.method, colours)
        _chart(chart, charts.loss_table(run.loss), "training", f"Loss of the last training over {run.epochs} epochs")


def _together(db: Database, colours: Palette) -> None:
    if not frame.may(Right.REVIEW) and blindness.waits_for(db, frame.known_name()):
        return  # counted from all labels
    predictions = read_predictions(db)
    rankings = rankings_of(db, predictions) if predictions else None
    if predictions is None or rankings is None:
        return
    with _card("Classes seen together"):
        names = classes.names(db)
        table = charts.together_table(
            rankings.cooccurrence, [names[class_id] for class_id in predictions.class_ids.tolist()]
        )
        if not table["images"].to_numpy().any():
            st.info("No image has two labels yet.")
            return
        st.caption("Of 100 images with the left class, so many show the upper one.")
        pairs = table.sort_values("images", ascending=False).head(PAIRS_LISTED)
        _chart(charts.together(table, colours), pairs, "together", "How often two classes are on one image")


def _times(db: Database, colours: Palette) -> None:
    """Draw the times of the person who looks, and of nobody else."""
    name = frame.known_name()
    if not name:
        return
    report = time_report(db, name)
    with _card("Your times"):
        if sum(report.answers.values()):
            st.caption(
                f"From your newest {counted(sum(report.answers.values()), 'timed answer')}, "
                f"{report.tested:,} of them in the speed test. Averages without pauses, with 95 % intervals; a tick is "
                "the default. Autopilot plans with these times."
            )
            columns = ("seconds", "low", "high", "default", "answers")
            table = pd.DataFrame(
                {"name": figure.about} | {column: getattr(figure, column) for column in columns}
                for figure in (*report.tasks, *report.parts)
            )
            _chart(charts.times(table, colours), table, "times", "Seconds of your work by kind, with 95 % intervals")
        else:
            st.info("No timed answers of yours yet.")
        frame.link("speed_test", "How fast are you? A two-minute test", ":material/timer:")


def _notes(db: Database) -> None:
    """Draw flagged images first, since somebody waits for an answer, and comments beside them."""
    flags, said = overview.flagged(db, NOTES_SHOWN), comments.comments(db, NOTES_SHOWN)
    if not frame.may(Right.REVIEW):
        own = frame.known_name()
        hidden = blindness.hidden_from(db, own, [row["id"] for row in (*flags, *said)])
        flags, said = (
            [row for row in rows if row["id"] not in hidden or row["annotator"] == own] for rows in (flags, said)
        )
    token = frame.token() if frame.known_name() else ""
    shown = [("Flagged images", flags, overview.count_flagged(db)), ("Comments", said, comments.count_comments(db))]
    shown = [part for part in shown if part[1]]
    for column, (title, rows, count) in zip(st.columns(len(shown)) if shown else (), shown, strict=True):
        with column, _card(title):
            if count > len(rows):
                st.caption(f"The newest {len(rows):,} of {count:,}.")
            note_list.show(rows, title, token, frame.zone())


def _files(status_: dict[str, Any]) -> None:
    counts = {"missing image": status_["images_missing_in_all"], "skipped file": status_["files_kept_out_in_all"]}
    parts = [counted(count, noun) for noun, count in counts.items() if count]
    if parts:
        frame.link("images", f"{' and '.join(parts)}: see Images", ":material/hide_image:")


@contextmanager
def _card(title: str) -> Iterator[None]:
    with st.container(border=True):
        st.markdown(f"#### {title}")
        yield


def _chart(chart: theme.AnyChart, numbers: pd.DataFrame, key: str, words: str) -> None:
    st.altair_chart(theme.legible(chart, _colours()), key=f"chart_{key}", alt=words)
    with st.popover("Numbers", key=f"numbers_{key}"):
        st.dataframe(numbers, hide_index=True)


def _colours() -> Palette:
    return theme.palette(st.context.theme.type)
