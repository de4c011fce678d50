"""The part of the Settings page that adapts the network: the time it takes, start, progress, pause and outcome."""

import streamlit as st

from annotator.shares import counted, seconds_in_words
from annotator.store.database.database import Database
from annotator.store.networks import adaptation as adapting
from annotator.store.networks import adapted, configuration
from annotator.store.networks.adapted import Adapted
from annotator.ui.parts import frame, tables

REFRESH = 2.0  # seconds between two looks at what is under way


def section(db: Database) -> None:
    """Draw this part of the page, refreshed while something is under way."""
    st.subheader("Adapt the network")
    st.caption(
        "The network's last stages learn from this project's answers. It is used only if better on held-out images, "
        "beyond chance. Everybody can go on meanwhile."
    )
    is_at_work = bool(adapting.running(db) or adapting.wanted(db) or adapted.next_backbone(db))
    frame.refreshed(_now, REFRESH if is_at_work else None)(db, is_at_work)
    _networks(db)


def _now(db: Database, was_at_work: bool) -> None:
    state, wanted, following = adapting.running(db), adapting.wanted(db), adapted.next_backbone(db)
    if was_at_work and not (state or wanted or following):
        st.rerun()  # the whole page: the work has ended
    if state is not None:
        left = f", about {seconds_in_words(state.seconds_left)} left" if state.seconds_left else ""
        of = f" ({state.done:,} of {state.of:,})" if state.of else ""
        share = min(state.done / state.of, 1.0) if state.of else 0.0
        st.progress(share, frame.escaped(f"{state.doing[:1].upper()}{state.doing[1:]}{of}{left}"))
        if st.button("Pause", disabled=wanted == "pause", help="Goes on from the last epoch.", key="adapt_pause"):
            adapting.want(db, "pause")
            st.rerun()
        return
    _result(db)
    if wanted:
        st.caption("Waiting for the worker to start it.")
        return
    first, second = st.columns(2)
    if first.button("How long would it take?", key="adapt_estimate"):
        adapting.want(db, "estimate")
        st.rerun()
    is_paused = adapting.result(db).get("kind") == "paused"
    due = None if is_paused else adapting.reason_to_adapt(db)
    if due is not None:
        frame.info(due.sentence)
    label = "Continue" if is_paused else "Adapt now" if due is None else "Adapt again"
    if second.button(label, key="adapt_run"):
        adapting.want(db, "run")
        st.rerun()


def _result(db: Database) -> None:
    """Draw the outcome of the last adaptation, or the estimate of how long one would take."""
    result = adapting.result(db)
    kind = result.get("kind")
    if kind == "error":
        frame.warning(str(result.get("error", "")))
    elif kind == "paused":
        st.caption(frame.escaped(f"Paused after epoch {result.get('epoch')} of {result.get('of')}."))
    elif kind == "estimate":
        st.caption(
            frame.escaped(
                f"About {seconds_in_words(result['seconds'])} on {result['device']}: "
                f"{seconds_in_words(result['inputs_seconds'])} to prepare {counted(result['images'], 'image')}, "
                f"{seconds_in_words(result['training_seconds'])} for {counted(result['epochs'], 'epoch')}, and if it "
                f"is better, {seconds_in_words(result['features_seconds'])} to analyze all images."
            )
        )
    elif kind == "adapted" and not result.get("in_use"):
        st.caption(frame.escaped(f"{result.get('name')} is not better beyond chance. It is kept but not used."))


def _networks(db: Database) -> None:
    networks = adapted.networks(db)
    if not networks:
        return
    automatic = adapting.is_automatic(db)
    follows = frame.follows("adapt_again", automatic, lambda wanted: adapting.set_automatic(db, wanted))
    st.toggle("Adapt again by itself whenever the answers have doubled", **follows)
    current = configuration.backbone(db)
    tables.show([_row(network, network.name == current) for network in networks], "Adapted networks, the oldest first")
    st.caption(
        frame.escaped(
            f"To export one: annotator adapted {db.paths.project} NAME --export FOLDER. Mean AP: a linear head, on "
            "held-out images."
        )
    )


def _row(network: Adapted, is_current: bool) -> dict[str, str]:
    return {
        "Network": network.name,
        "Mean AP": f"{network.ap_before:.3f} to {network.ap_after:.3f}",
        "95 % interval of the difference": f"{network.ap_low:+.3f} to {network.ap_high:+.3f}",
        "Held out": f"{counted(network.held_out_answers, 'answer')}, {counted(network.held_out_images, 'image')}",
        "Learned from": counted(network.answers, "answer"),
        "Verdict": "in use" if is_current else ("better" if network.is_better else "not better"),
    }
