"""The Settings section that compares and changes the backbone."""

import streamlit as st

from annotator.humanize import format_count, format_duration
from annotator.snapshot.network_table import NetworkRow, load_network_table
from annotator.store.database.database import Database
from annotator.store.networks import adapted_networks, configuration, machine_settings, network_comparisons
from annotator.store.networks.network_comparisons import NetworkComparison
from annotator.ui.shared import html_tables
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_warning
from spmll.backbones import licenses


def draw(db: Database) -> None:
    """Draw the Settings section that compares and changes the backbone, without loading a backbone."""
    rows = load_network_table(db)
    st.subheader("Network")
    st.caption(
        escape_markdown(
            f"Images are analyzed with {configuration.get_backbone(db)}. Compare another one on this project's answers "
            "first. Everybody can go on meanwhile, and nothing is deleted."
        )
    )
    others = {row.name: row for row in rows if not row.is_used}
    name = st.selectbox(
        "Another network", list(others), format_func=lambda name: _format_option(others[name]), key="network"
    )
    if name is not None:
        _draw_choice(db, others[name])
    _draw_comparisons(db)
    with st.expander("All networks"):
        html_tables.show([_build_row(row) for row in rows], "Networks")
        st.caption(
            escape_markdown(
                "Speed is that of this machine, once measured. "
                f"Any other network of timm, torchvision or open_clip: annotator backbone {db.paths.project} NAME"
            )
        )


def _draw_choice(db: Database, row: NetworkRow) -> None:
    hours = "" if row.hours is None else f"About {format_duration(row.hours * 3600)} for all images of this project. "
    download = "Its weights are downloaded first. " if row.is_here is False else ""
    st.caption(escape_markdown(f"{row.about} {download}{hours}".strip()))
    is_accepted = row.is_accepted or not row.binds
    if not is_accepted:
        text = escape_markdown(f"I accept the license of its weights: {row.licence_title}")
        is_accepted = st.checkbox(text, key=f"accept_{row.licence}")
        link = f" [Its text]({row.licence_url})" if row.licence_url else ""
        st.markdown(escape_markdown(licenses.get_license(row.licence).sentence) + link)
    if row.lacking:
        st.caption(escape_markdown(f"It needs a library that is not installed. On the server: {row.lacking}"))
        is_accepted = False
    is_wanted = row.name in network_comparisons.load_requested(db) or row.is_next
    first, second, third = st.columns(3)
    if first.button("Compare it on our answers", disabled=not is_accepted or is_wanted, key="network_compare"):
        _accept_license(row)
        network_comparisons.request_comparison(db, [row.name])
        st.rerun()
    if second.button("Use it without comparing", disabled=not is_accepted or row.is_next, key="network_use"):
        _accept_license(row)
        network_comparisons.withdraw_request(db, row.name)
        adapted_networks.set_next_backbone(db, row.name)
        st.rerun()
    if row.images_a_second is None:
        is_measured = row.name in network_comparisons.load_requested_speeds(db)
        if third.button("Measure its speed here", disabled=not is_accepted or is_measured, key="network_speed"):
            _accept_license(row)
            network_comparisons.request_speed(db, row.name)
            st.rerun()
        if is_measured:
            st.caption("Its speed is measured when the worker is free.")


def _accept_license(row: NetworkRow) -> None:
    if row.binds and not row.is_accepted:
        machine_settings.accept_license(row.licence)


def _draw_comparisons(db: Database) -> None:
    """Draw running analyses and finished comparisons."""
    following = adapted_networks.get_next_backbone(db)
    for name in (*([following] if following else []), *network_comparisons.load_requested(db)):
        what = "It is used when that is done." if name == following else "It is compared when that is done."
        first, second = st.columns([4, 1])
        first.caption(escape_markdown(f"Analyzing all images with {name}. {what}"))
        if second.button("Stop", key=f"network_stop_{name}"):
            adapted_networks.set_next_backbone(db, "") if name == following else network_comparisons.withdraw_request(
                db, name
            )
            st.rerun()
    current = configuration.get_backbone(db)
    # What is proposed comes first: better ones by what they gain, then the newest.
    of_all = sorted(network_comparisons.load_comparisons(db), key=lambda compared: -compared.at)
    for compared in sorted(of_all, key=lambda compared: -compared.gain if compared.is_better else 0.0):
        if compared.name in (current, following):
            continue
        if compared.error:
            show_warning(compared.error)
        else:
            st.markdown(escape_markdown(describe_comparison(compared)))
        first, second = st.columns(2)
        kind = "primary" if compared.is_better else "secondary"
        if not compared.error and first.button(
            f"Use {escape_markdown(compared.name)}", key=f"network_use_{compared.name}", type=kind
        ):
            adapted_networks.set_next_backbone(db, compared.name)
            st.rerun()
        if second.button(f"Delete features of {escape_markdown(compared.name)}", key=f"network_remove_{compared.name}"):
            network_comparisons.delete_network(db, compared.name)
            st.rerun()


def describe_comparison(compared: NetworkComparison) -> str:
    return (
        f"{compared.name} {compared.verdict} {compared.against}: mean AP {compared.ap_before:.3f} to "
        f"{compared.ap_after:.3f} (95 % interval of the difference {compared.ap_low:+.3f} to {compared.ap_high:+.3f}), "
        f"log loss {compared.log_loss_before:.3f} to {compared.log_loss_after:.3f}, on "
        f"{format_count(compared.answers, 'unbiased answer')} about {format_count(compared.images, 'image')}."
    )


def _format_option(row: NetworkRow) -> str:
    notes = [f"{row.parameters / 1e6:.0f} M parameters"] if row.parameters else []
    notes += ["download"] if row.is_here is False else []
    notes += [row.licence] if row.binds else []
    return f"{row.name} ({', '.join(notes)})" if notes else row.name


def _build_row(row: NetworkRow) -> dict[str, str]:
    return {
        "Network": row.name,
        "For whom": row.about,
        "License": row.licence + ("" if not row.binds else ", accepted" if row.is_accepted else ", to accept"),
        "Parameters": f"{row.parameters / 1e6:.1f} M" if row.parameters else "",
        "Pixels": str(row.input_size or ""),
        "Texts": "yes" if row.reads_text else "",
        "Weights here": {True: "yes", False: "no", None: ""}[row.is_here],
        "Images a second": "" if row.images_a_second is None else f"{row.images_a_second:,.1f}",
        "This project": "" if row.hours is None else format_duration(row.hours * 3600),
        "Features": row.pooling,
        "From": row.source,
    }
