"""The part of the Settings page that chooses a network: the list, how they compare here, and the change to one."""

import streamlit as st

from annotator.shares import counted, seconds_in_words
from annotator.snapshot.networks import Network, networks
from annotator.store.database.database import Database
from annotator.store.networks import adapted, configuration
from annotator.store.networks import comparisons as candidates
from annotator.store.networks import machine_settings as machine
from annotator.store.networks.comparisons import Compared
from annotator.ui.parts import frame, tables
from models.backbones import licences


def section(db: Database) -> None:
    """Draw this part of the page; no network is loaded here."""
    rows = networks(db)
    st.subheader("Network")
    st.caption(
        frame.escaped(
            f"Images are analyzed with {configuration.backbone(db)}. Compare another one on this project's answers "
            "first. Everybody can go on meanwhile, and nothing is deleted."
        )
    )
    others = {row.name: row for row in rows if not row.is_used}
    name = st.selectbox("Another network", list(others), format_func=lambda name: _option(others[name]), key="network")
    if name is not None:
        _choice(db, others[name])
    _compared(db)
    with st.expander("All networks"):
        tables.show([_row(row) for row in rows], "Networks")
        st.caption(
            frame.escaped(
                "Speed is that of this machine, once measured. "
                f"Any other network of timm, torchvision or open_clip: annotator backbone {db.paths.project} NAME"
            )
        )


def _choice(db: Database, row: Network) -> None:
    hours = "" if row.hours is None else f"About {seconds_in_words(row.hours * 3600)} for all images of this project. "
    download = "Its weights are downloaded first. " if row.is_here is False else ""
    st.caption(frame.escaped(f"{row.about} {download}{hours}".strip()))
    is_accepted = row.is_accepted or not row.binds
    if not is_accepted:
        text = frame.escaped(f"I accept the license of its weights: {row.licence_title}")
        is_accepted = st.checkbox(text, key=f"accept_{row.licence}")
        link = f" [Its text]({row.licence_url})" if row.licence_url else ""
        st.markdown(frame.escaped(licences.about(row.licence).sentence) + link)
    if row.lacking:
        st.caption(frame.escaped(f"It needs a library that is not installed. On the server: {row.lacking}"))
        is_accepted = False
    is_wanted = row.name in candidates.wanted(db) or row.is_next
    first, second, third = st.columns(3)
    if first.button("Compare it on our answers", disabled=not is_accepted or is_wanted, key="network_compare"):
        _accept(row)
        candidates.want(db, [row.name])
        st.rerun()
    if second.button("Use it without comparing", disabled=not is_accepted or row.is_next, key="network_use"):
        _accept(row)
        candidates.forget(db, row.name)
        adapted.prepare(db, row.name)
        st.rerun()
    if row.images_a_second is None:
        is_measured = row.name in candidates.speeds_wanted(db)
        if third.button("Measure its speed here", disabled=not is_accepted or is_measured, key="network_speed"):
            _accept(row)
            candidates.want_speed(db, row.name)
            st.rerun()
        if is_measured:
            st.caption("Its speed is measured when the worker is free.")


def _accept(row: Network) -> None:
    if row.binds and not row.is_accepted:
        machine.accept(row.licence)


def _compared(db: Database) -> None:
    """Draw which networks are being analyzed with, and how networks compare."""
    following = adapted.next_backbone(db)
    for name in (*([following] if following else []), *candidates.wanted(db)):
        what = "It is used when that is done." if name == following else "It is compared when that is done."
        first, second = st.columns([4, 1])
        first.caption(frame.escaped(f"Analyzing all images with {name}. {what}"))
        if second.button("Stop", key=f"network_stop_{name}"):
            adapted.prepare(db, "") if name == following else candidates.forget(db, name)
            st.rerun()
    current = configuration.backbone(db)
    # What is proposed comes first: better ones by what they gain, then the newest.
    of_all = sorted(candidates.compared(db), key=lambda compared: -compared.at)
    for compared in sorted(of_all, key=lambda compared: -compared.gain if compared.is_better else 0.0):
        if compared.name in (current, following):
            continue
        if compared.error:
            frame.warning(compared.error)
        else:
            st.markdown(frame.escaped(in_words(compared)))
        first, second = st.columns(2)
        kind = "primary" if compared.is_better else "secondary"
        if not compared.error and first.button(
            f"Use {frame.escaped(compared.name)}", key=f"network_use_{compared.name}", type=kind
        ):
            adapted.prepare(db, compared.name)
            st.rerun()
        if second.button(f"Delete features of {frame.escaped(compared.name)}", key=f"network_remove_{compared.name}"):
            candidates.remove(db, compared.name)
            st.rerun()


def in_words(compared: Compared) -> str:
    """Return the comparison as a few sentences."""
    return (
        f"{compared.name} {compared.verdict} {compared.against}: mean AP {compared.ap_before:.3f} to "
        f"{compared.ap_after:.3f} (95 % interval of the difference {compared.ap_low:+.3f} to {compared.ap_high:+.3f}), "
        f"log loss {compared.log_loss_before:.3f} to {compared.log_loss_after:.3f}, on "
        f"{counted(compared.answers, 'unbiased answer')} about {counted(compared.images, 'image')}."
    )


def _option(row: Network) -> str:
    notes = [f"{row.parameters / 1e6:.0f} M parameters"] if row.parameters else []
    notes += ["download"] if row.is_here is False else []
    notes += [row.licence] if row.binds else []
    return f"{row.name} ({', '.join(notes)})" if notes else row.name


def _row(row: Network) -> dict[str, str]:
    return {
        "Network": row.name,
        "For whom": row.about,
        "License": row.licence + ("" if not row.binds else ", accepted" if row.is_accepted else ", to accept"),
        "Parameters": f"{row.parameters / 1e6:.1f} M" if row.parameters else "",
        "Pixels": str(row.input_size or ""),
        "Texts": "yes" if row.reads_text else "",
        "Weights here": {True: "yes", False: "no", None: ""}[row.is_here],
        "Images a second": "" if row.images_a_second is None else f"{row.images_a_second:,.1f}",
        "This project": "" if row.hours is None else seconds_in_words(row.hours * 3600),
        "Features": row.pooling,
        "From": row.source,
    }
