"""Progress: how far the project is, how the model fares, what the worker does, what went wrong."""

import time
from datetime import UTC, datetime

import altair as alt
import pandas as pd
import streamlit as st

from annotator.engine.status import status
from annotator.store import overview, runs
from annotator.ui import context, frame

COLOURS = {"present": "#0f7b6c", "absent": "#b3261e", "unsure": "#c98a1b"}
REFRESH = 5.0


def page() -> None:
    """The page, refreshed every few seconds."""
    with frame.errors_shown():
        _live()


@st.fragment(run_every=REFRESH)
def _live() -> None:
    with frame.errors_shown():
        db = context.db()
        found = status(db)
        _numbers(found)
        _worker(found)
        left, right = st.columns(2)
        with left:
            _decisions(db)
            _loss(db)
        with right:
            _labels(db)
            _fates(db)
        _kept_out(found)


def _numbers(found: dict) -> None:
    columns = st.columns(5)
    done = found["images"] - found["images_without_decision"]
    columns[0].metric("Images with a label", f"{done:,} of {found['images']:,}")
    columns[1].metric("Complete images", f"{found['images_complete']:,}")
    columns[2].metric("Present", f"{found['labels']['present']:,}")
    columns[3].metric("Absent", f"{found['labels']['absent']:,}")
    columns[4].metric("Unsure", f"{found['labels']['unsure']:,}")


def _worker(found: dict) -> None:
    worker, run = found["worker"], found["run"]
    share = found["features"] / max(found["images"], 1)
    st.progress(min(share, 1.0), text=f"Features: {found['features']:,} of {found['images']:,} ({found['backbone']})")
    if worker["alive"]:
        beat = time.time() - worker["heartbeat_at"]
        steps = f" {worker['done']:,} of {worker['of']:,}" if worker["of"] else ""
        st.caption(f"Worker: {worker['state']}{steps}, heartbeat {beat:.0f} s ago (process {worker['pid']}).")
    else:
        st.warning(f"The worker is not running (it was: {worker['state']}). The app starts it again by itself.")
    if run:
        st.caption(
            f"Run {run['id']}: {run['method']}, {run['epochs']} epochs in {run['seconds']:.2f} s over "
            f"{run['images']:,} images; {run['newer_decisions']:,} decisions are newer."
        )
    else:
        st.caption("No run yet: the first comes after about 20 labeled images.")
    if found["last_error"]:
        with st.expander("The worker's last error", icon=":material/error:"):
            st.code(found["last_error"], language=None)


def _decisions(db) -> None:
    st.subheader("Decisions over time")
    rows = overview.decisions_over_time(db, 60)
    if not rows:
        st.info("Nothing decided yet. Start on the Annotate page: one key an image.")
        return
    span = rows[-1]["at"] - rows[0]["at"]
    if span > 4 * 3600:
        rows = overview.decisions_over_time(db, 3600)
    frame_ = pd.DataFrame(rows)
    frame_["at"] = [datetime.fromtimestamp(at, UTC).astimezone() for at in frame_["at"]]
    chart = (
        alt.Chart(frame_)
        .mark_bar()
        .encode(
            x=alt.X(
                "at:T",
                timeUnit="yearmonthdatehours" if span > 4 * 3600 else "yearmonthdatehoursminutes",
                title="Per hour" if span > 4 * 3600 else "Per minute",
            ),
            y=alt.Y("decisions:Q", title="Decisions"),
            color=alt.Color("source:N", title="Source"),
            tooltip=["at:T", "source:N", "decisions:Q"],
        )
        .properties(height=220)
    )
    _chart(chart, frame_)


def _labels(db) -> None:
    st.subheader("Labels by class")
    table = pd.DataFrame(overview.labels_by_class(db))
    if table.empty:
        st.info("No classes yet: name them on the Annotate page.")
        return
    long = table.melt("class", var_name="state", value_name="cells")
    chart = (
        alt.Chart(long)
        .mark_bar()
        .encode(
            y=alt.Y("class:N", sort=list(table["class"]), title=None, axis=alt.Axis(labelOverlap=False)),
            x=alt.X("cells:Q", title="Images"),
            color=alt.Color(
                "state:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), title="State"
            ),
            tooltip=["class:N", "state:N", "cells:Q"],
        )
        .properties(height=max(220, 22 * len(table)))
    )
    _chart(chart, table)


def _loss(db) -> None:
    st.subheader("Loss of the current run")
    run = runs.current_run(db)
    if run is None:
        st.info("No run yet.")
        return
    table = pd.DataFrame({"epoch": range(1, len(run.loss) + 1), "loss": run.loss})
    chart = (
        alt.Chart(table)
        .mark_line(point=True, color="#0f7b6c")
        .encode(
            x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1), title="Epoch"),
            y=alt.Y("loss:Q", scale=alt.Scale(zero=False), title=f"Loss ({run.method})"),
            tooltip=["epoch:Q", "loss:Q"],
        )
        .properties(height=220)
    )
    _chart(chart, table)


def _fates(db) -> None:
    st.subheader("How suggestions fared")
    rows = runs.suggestion_fates(db)
    if not rows:
        st.info("No suggestion answered yet. The Review page shows them.")
        return
    table = pd.DataFrame(rows)
    long = table.melt("run", var_name="fate", value_name="suggestions")
    chart = (
        alt.Chart(long)
        .mark_bar()
        .encode(
            x=alt.X("run:O", title="Run"),
            y=alt.Y("suggestions:Q", title="Suggestions"),
            color=alt.Color(
                "fate:N",
                scale=alt.Scale(domain=["accepted", "rejected", "unsure"], range=list(COLOURS.values())),
                title="Answer",
            ),
            tooltip=["run:O", "fate:N", "suggestions:Q"],
        )
        .properties(height=220)
    )
    _chart(chart, table)
    accepted, answered = table["accepted"].sum(), table[["accepted", "rejected"]].to_numpy().sum()
    if answered:
        st.caption(f"{accepted / answered:.0%} of {answered:,} answered suggestions were right.")


def _kept_out(found: dict) -> None:
    bad = found["files_kept_out"]
    if bad:
        with st.expander(f"{len(bad):,} files kept out", icon=":material/broken_image:"):
            st.dataframe(pd.DataFrame(bad), hide_index=True)


def _chart(chart: alt.Chart, numbers: pd.DataFrame) -> None:
    st.altair_chart(chart)
    with st.popover("Numbers"):
        st.dataframe(numbers, hide_index=True)
