"""The part of the Certificate page on which people let the model fill in cells, see what it has, and take it back."""

import time

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.quality import auto_accept
from annotator.quality.auto_accept import Guarantee, Outcome
from annotator.records import PRESENT
from annotator.store import auto_accepted, classes
from annotator.store.auto_accepted import Acceptance
from annotator.store.database import Database
from annotator.ui import context, frame

PRECISIONS = (0.95, 0.99, 0.995)
WITHDRAWN_SHOWN = 100
EXPLAINED = (
    "Where an audit has shown, with 95 % confidence, that at least {share} of what the model would fill in is "
    "right, it fills in cells that nobody has decided. They are marked as the model's, looked at again after every "
    "run, listed here and taken back as one; what people decide always takes their place."
)


def card(db: Database) -> None:
    """Everything about it, in one box."""
    now = auto_accept.guarantee(db)
    names = {one.id: one.name for one in classes.all_classes(db)}
    with st.container(border=True):
        st.markdown("#### Let the model fill in what is sure")
        wanted = _wanted(now)
        st.markdown(EXPLAINED.format(share=_share(wanted.precision)))
        with frame.errors_shown():
            if told := st.session_state.pop("auto_accept_error", ""):
                raise AnnotatorError(told)
            _asking(db, wanted)
        _outcomes(st.session_state.get("auto_accept_outcomes", []), names, wanted)
        _holding(db, names)


def _wanted(now: Guarantee | None) -> Guarantee:
    """The switch and what is promised, as they are in the project; a change is carried out at once."""
    state = st.session_state
    if now is not None:
        state["accept_precision"] = now.precision if now.precision in PRECISIONS else PRECISIONS[1]
        state["accept_absent"], state["accept_together"] = now.absent, now.together
    state["accept_on"] = now is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.toggle("Fill in automatically", key="accept_on", on_change=_changed)
        st.segmented_control(
            "Right at least",
            PRECISIONS,
            format_func=_share,
            default=None if "accept_precision" in state else auto_accept.PRECISION,
            required=True,
            key="accept_precision",
            on_change=_changed,
        )
        st.checkbox("Also what is surely absent", key="accept_absent", on_change=_changed)
        st.checkbox(
            "One promise for all classes together",
            key="accept_together",
            on_change=_changed,
            help="Takes far fewer answers. A single class may then be worse than promised, if others are better.",
        )
    return _chosen()


def _chosen() -> Guarantee:
    state = st.session_state
    return Guarantee(
        state["accept_precision"], absent=bool(state["accept_absent"]), together=bool(state["accept_together"])
    )


def _changed() -> None:
    """What the person has just set holds from now on."""
    db, on = context.db(), st.session_state["accept_on"]
    if not on and auto_accept.guarantee(db) is None:
        return
    try:
        st.session_state["auto_accept_outcomes"] = auto_accept.choose(db, _chosen() if on else None)
    except AnnotatorError as error:
        st.session_state["auto_accept_error"] = str(error)


def _asking(db: Database, wanted: Guarantee) -> None:
    counts = "An ordinary audit counts; one drawn for this asks only about pairs that would be filled in."
    if wanted.together:
        counts = "Only pairs drawn for this count."
    st.caption(f"{auto_accept.outlook(db, wanted)} {counts}")
    if st.button("Draw the cells that would show it"):
        with st.spinner("Drawing cells..."):
            drawn = auto_accept.draw(db, wanted)
        st.toast(f"{drawn.cells:,} cells drawn.")
        st.rerun()


def _outcomes(found: list[Outcome], names: dict[int, str], wanted: Guarantee) -> None:
    lacking = [one for one in found if not one.cells]
    if not lacking:
        return
    if len(lacking) == len(found):
        st.info("It is on, and nothing can be filled in yet. This is what is lacking:")
    with st.expander(f"Nothing filled in for {len(lacking):,} of {len(found):,}", expanded=len(lacking) == len(found)):
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "class": names.get(one.class_id, "all together"),
                        "as": _state(one.state),
                        "audited": one.audited,
                        "wrong": one.wrong,
                        "why not": one.reason,
                    }
                    for one in lacking
                ]
            ),
            hide_index=True,
        )


def _holding(db: Database, names: dict[int, str]) -> None:
    every = auto_accepted.acceptances(db)
    batches: dict[str, list[Acceptance]] = {}
    for one in every:
        if not one.withdrawn:
            batches.setdefault(one.batch, []).append(one)
    for batch, held in batches.items():
        cells = sum(one.cells for one in held)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{cells:,} cells filled in** on {_day(held[0].made_at)} (batch {batch})", width="content")
            if st.button(
                "Take back",
                key=f"take_back_{batch}",
                help="Gives these cells back, and turns filling in off: the next run would do it again.",
            ):
                auto_accept.undo(db, batch)
                st.session_state.pop("auto_accept_outcomes", None)
                st.rerun()
        st.dataframe(pd.DataFrame([_row(one, names) for one in held]), hide_index=True, key=f"held_{batch}")
    withdrawn = [one for one in every if one.withdrawn]
    if withdrawn:
        with st.expander(f"{len(withdrawn):,} given back"):
            rows = [
                _row(one, names) | {"given back because": one.withdrawn, "on": _day(one.withdrawn_at)}
                for one in withdrawn[:WITHDRAWN_SHOWN]
            ]
            st.dataframe(pd.DataFrame(rows).drop(columns="cells"), hide_index=True, key="withdrawn")


def _row(one: Acceptance, names: dict[int, str]) -> dict:
    return {
        "class": names.get(one.class_id, ""),
        "as": _state(one.state),
        "probability": f"{'from' if one.state == PRESENT else 'up to'} {one.threshold:.3g}",
        "cells": one.cells,
        "audited": one.audited,
        "wrong": one.wrong,
        "promise": _share(one.precision),
    }


def _state(state: int) -> str:
    return "present" if state == PRESENT else "absent"


def _share(share: float) -> str:
    return f"{100 * share:g} %"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) + " UTC"
