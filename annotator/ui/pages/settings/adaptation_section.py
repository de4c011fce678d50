"""The Settings section that adapts the backbone: estimate, progress and result."""

import streamlit as st

from annotator.humanize import format_count, format_duration
from annotator.store.database.database import Database
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.store.networks.adapted_networks import AdaptedNetwork
from annotator.ui.shared import html_tables, widget_values
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_info, show_warning
from annotator.ui.shared.page_access import build_fragment

REFRESH_SECONDS = 2.0  # between two looks at what is under way


def draw(db: Database) -> None:
    """Draw the Settings section that adapts the backbone, refreshed while an adaptation runs."""
    st.subheader("Adapt the network")
    st.caption(
        "The network's last stages learn from this project's answers. It is used only if better on held-out images, "
        "beyond chance. Everybody can go on meanwhile."
    )
    is_at_work = bool(
        adaptation.get_running(db) or adaptation.get_request(db) or adapted_networks.get_next_backbone(db)
    )
    build_fragment(_draw_state, REFRESH_SECONDS if is_at_work else None)(db, is_at_work)
    _draw_networks(db)


def _draw_state(db: Database, was_at_work: bool) -> None:
    state, wanted, following = (
        adaptation.get_running(db),
        adaptation.get_request(db),
        adapted_networks.get_next_backbone(db),
    )
    if was_at_work and not (state or wanted or following):
        st.rerun()  # the whole page: the work has ended
    if state is not None:
        left = f", about {format_duration(state.seconds_left)} left" if state.seconds_left else ""
        of = f" ({state.done:,} of {state.of:,})" if state.of else ""
        share = min(state.done / state.of, 1.0) if state.of else 0.0
        st.progress(share, escape_markdown(f"{state.doing[:1].upper()}{state.doing[1:]}{of}{left}"))
        if st.button("Pause", disabled=wanted == "pause", help="Goes on from the last epoch.", key="adapt_pause"):
            adaptation.set_request(db, "pause")
            st.rerun()
        return
    _draw_result(db)
    if wanted:
        st.caption("Waiting for the worker to start it.")
        return
    first, second = st.columns(2)
    if first.button("How long would it take?", key="adapt_estimate"):
        adaptation.set_request(db, "estimate")
        st.rerun()
    is_paused = adaptation.get_result(db).get("kind") == "paused"
    due = None if is_paused else adaptation.find_reason_to_readapt(db)
    if due is not None:
        show_info(due.sentence)
    label = "Continue" if is_paused else "Adapt now" if due is None else "Adapt again"
    if second.button(label, key="adapt_run"):
        adaptation.set_request(db, "run")
        st.rerun()


def _draw_result(db: Database) -> None:
    """Draw the last adaptation's result or a time estimate."""
    result = adaptation.get_result(db)
    kind = result.get("kind")
    if kind == "error":
        show_warning(str(result.get("error", "")))
    elif kind == "paused":
        st.caption(escape_markdown(f"Paused after epoch {result.get('epoch')} of {result.get('of')}."))
    elif kind == "estimate":
        st.caption(
            escape_markdown(
                f"About {format_duration(result['seconds'])} on {result['device']}: "
                f"{format_duration(result['inputs_seconds'])} to prepare {format_count(result['images'], 'image')}, "
                f"{format_duration(result['training_seconds'])} for {format_count(result['epochs'], 'epoch')}, and if "
                f"it is better, {format_duration(result['features_seconds'])} to analyze all images."
            )
        )
    elif kind == "adapted" and not result.get("in_use"):
        st.caption(escape_markdown(f"{result.get('name')} is not better beyond chance. It is kept but not used."))


def _draw_networks(db: Database) -> None:
    networks = adapted_networks.load_networks(db)
    if not networks:
        return
    automatic = adaptation.is_automatic(db)
    follows = widget_values.bind_setting("adapt_again", automatic, lambda wanted: adaptation.set_automatic(db, wanted))
    st.toggle("Adapt again by itself whenever the answers have doubled", **follows)
    current = configuration.get_backbone(db)
    html_tables.show(
        [_build_row(network, network.name == current) for network in networks], "Adapted networks, the oldest first"
    )
    st.caption(
        escape_markdown(
            f"To export one: annotator adapted {db.paths.project} NAME --export FOLDER. Mean AP: a linear head, on "
            "held-out images."
        )
    )


def _build_row(network: AdaptedNetwork, is_current: bool) -> dict[str, str]:
    return {
        "Network": network.name,
        "Mean AP": f"{network.ap_before:.3f} to {network.ap_after:.3f}",
        "95 % interval of the difference": f"{network.ap_low:+.3f} to {network.ap_high:+.3f}",
        "Held out": f"{format_count(network.held_out_answers, 'answer')}, "
        f"{format_count(network.held_out_images, 'image')}",
        "Learned from": format_count(network.answers, "answer"),
        "Verdict": "in use" if is_current else ("better" if network.is_better else "not better"),
    }
