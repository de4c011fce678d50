"""The Certificate page card that controls and undoes auto-accept."""

import time

import pandas as pd
import streamlit as st

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.quality import auto_accept, auto_accept_sample, guarantee, rule_out
from annotator.quality.auto_accept import AcceptanceOutcome
from annotator.quality.guarantee import Guarantee
from annotator.records import PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, project_counts
from annotator.store.labels.auto_accepted import Acceptance
from annotator.ui.access import served_project
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors

PRECISION_CHOICES = (0.95, 0.99, 0.995)
MAX_WITHDRAWN_SHOWN = 100
EXPLANATION = (
    "The model answers where an audit shows {share} or more are right (95 % confidence). "
    "They are marked as the model's, checked after every training, and undone together. People's answers always "
    "replace them."
)


def draw(db: Database) -> None:
    """Draw the card that controls auto-accept, on the Certificate page."""
    current = guarantee.get_guarantee(db)
    names = classes.load_class_names(db)
    with st.container(border=True):
        st.markdown("#### Auto-accept confident labels")
        wanted = _draw_controls(current)
        st.markdown(EXPLANATION.format(share=guarantee.format_precision(wanted.precision)))
        with show_errors():
            if message := st.session_state.pop("auto_accept_error", ""):
                raise AnnotatorError(message)
            _draw_sampling(db, wanted)
        _draw_outcomes(st.session_state.get("auto_accept_outcomes", []), names)
        _draw_acceptances(db, names)


def _draw_controls(current: Guarantee | None) -> Guarantee:
    state = st.session_state
    if current is not None:
        state["accept_precision"] = (
            current.precision if current.precision in PRECISION_CHOICES else PRECISION_CHOICES[1]
        )
        state["accept_absent"], state["accept_together"] = current.absent, current.together
    state["accept_on"] = current is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.toggle("Auto-accept", key="accept_on", on_change=_apply_guarantee)
        st.segmented_control(
            "Minimum accuracy",
            PRECISION_CHOICES,
            format_func=guarantee.format_precision,
            default=None if "accept_precision" in state else guarantee.DEFAULT_PRECISION,
            required=True,
            key="accept_precision",
            on_change=_apply_guarantee,
        )
        st.checkbox("Accept absent, too", key="accept_absent", on_change=_apply_guarantee)
        st.checkbox(
            "One guarantee for all classes together",
            key="accept_together",
            on_change=_apply_guarantee,
            help="Needs far fewer audit answers. A single class may be less accurate.",
        )
    return _read_guarantee()


def _read_guarantee() -> Guarantee:
    state = st.session_state
    return Guarantee(
        state["accept_precision"], absent=bool(state["accept_absent"]), together=bool(state["accept_together"])
    )


def _apply_guarantee() -> None:
    db, on = served_project.db(), st.session_state["accept_on"]
    if not on and guarantee.get_guarantee(db) is None:
        return
    try:
        st.session_state["auto_accept_outcomes"] = auto_accept.set_guarantee(db, _read_guarantee() if on else None)
    except AnnotatorError as error:
        st.session_state["auto_accept_error"] = str(error)


def _draw_sampling(db: Database, wanted: Guarantee) -> None:
    counts = "Ordinary audits count, too. This check asks only what would be accepted."
    if wanted.together:
        counts = "Only pairs of this check count."
    st.caption(escape_markdown(f"{guarantee.describe_feasibility(db, wanted)} {counts}"))
    if st.button("Start the check"):
        with st.spinner("Sampling..."):
            drawn = auto_accept_sample.draw_audit(db, wanted)
        st.toast(f"{format_count(drawn.cells, 'pair')} to check.")
        st.rerun()


def _draw_outcomes(outcomes: list[AcceptanceOutcome], names: dict[int, str]) -> None:
    lacking = [outcome for outcome in outcomes if not outcome.cells]
    if not lacking:
        return
    nothing = len(lacking) == len(outcomes)
    if nothing:
        st.info("Auto-accept is on; still needed:")
    rows = [
        {
            "class": "all classes" if outcome.class_id is None else names.get(outcome.class_id, ""),
            "answer": _format_state(outcome.state),
            "audited": outcome.audited,
            "wrong": outcome.wrong,
            "reason": outcome.reason,
        }
        for outcome in lacking
    ]
    with st.expander(f"Nothing accepted for {len(lacking):,} of {len(outcomes):,}", expanded=nothing):
        st.dataframe(pd.DataFrame(rows), hide_index=True)


def _draw_acceptances(db: Database, names: dict[int, str]) -> None:
    acceptances = auto_accepted.load_acceptances(db)
    batches: dict[str, list[Acceptance]] = {}
    for acceptance in acceptances:
        if not (acceptance.withdrawn or acceptance.annotator):
            batches.setdefault(acceptance.batch, []).append(acceptance)
    for batch, held in batches.items():
        cells = sum(acceptance.cells for acceptance in held)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            where = escape_markdown(f"on {_format_day(held[0].made_at)}")
            st.markdown(f"**{format_count(cells, 'answer')} accepted** {where}", width="content")
            help_ = "Removes these answers and turns auto-accept off."
            if st.button("Undo", key=f"take_back_{batch}", help=help_):
                auto_accept.undo(db, batch)
                st.session_state.pop("auto_accept_outcomes", None)
                st.rerun()
        st.dataframe(
            pd.DataFrame([_build_row(acceptance, names) for acceptance in held]), hide_index=True, key=f"held_{batch}"
        )
    _draw_ruled_out(db, names)
    withdrawn = [acceptance for acceptance in acceptances if acceptance.withdrawn]
    if withdrawn:
        with st.expander(f"{len(withdrawn):,} removed"):
            rows = [
                _build_row(acceptance, names)
                | {"removed because": acceptance.withdrawn, "on": _format_day(acceptance.withdrawn_at)}
                for acceptance in withdrawn[:MAX_WITHDRAWN_SHOWN]
            ]
            st.dataframe(pd.DataFrame(rows).drop(columns="answers"), hide_index=True, key="withdrawn")


def _draw_ruled_out(db: Database, names: dict[int, str]) -> None:
    found = project_counts.count_labels_by_class(db)
    for ruling in rule_out.load_rulings(db):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            sentence = f"{rule_out.describe_ruling(ruling, names.get(ruling.class_id, ''), ruling.annotator)}."
            if present := found.get(ruling.class_id, (0, 0, 0))[0]:
                shows = format_count(present, "image shows", "images show")
                sentence += f" Since then people found that {shows} it. Undo to look for more."
            st.markdown(escape_markdown(sentence), width="stretch")
            if st.button(
                "Undo",
                key=f"take_back_{ruling.batch}",
                help="Its images are unanswered again. Auto-accept stays as it is.",
            ):
                rule_out.undo(db, ruling.batch)
                st.rerun()


def _build_row(acceptance: Acceptance, names: dict[int, str]) -> dict:
    return {
        "class": names.get(acceptance.class_id, ""),
        "answer": _format_state(acceptance.state),
        "by": acceptance.annotator or "the model",
        "probability": f"{'from' if acceptance.state == PRESENT else 'up to'} {acceptance.threshold:.3g}",
        "answers": acceptance.cells,
        "audited": acceptance.audited,
        "wrong": acceptance.wrong,
        "guarantee": guarantee.format_precision(acceptance.precision),
    }


def _format_state(state: int) -> str:
    return "present" if state == PRESENT else "absent"


def _format_day(at: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) + " UTC"
