"""The widgets of the Export page that choose an export, and the choices they result in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import EXISTING, LARGEST, SIMILAR, SMALLEST, Choices, shares
from annotator.exchange.exports.thresholds import EXPECTED_ERROR, Limits
from annotator.exchange.formats import all_formats
from annotator.exchange.formats.format import Format
from annotator.quality.differing import LABEL, WAYS
from annotator.records import SOURCES, STATES
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import set_aside
from annotator.store.labels import blocks
from annotator.store.labels import disagreement as annotator_disagreement
from annotator.store.runs import runs
from annotator.ui.export import columns
from annotator.ui.export.kept import kept
from annotator.ui.parts import frame

UNKNOWN = {
    "keep": "Leave empty",
    "absent": "Fill in as absent (marked as assumed)",
    "model": "Let the model fill in where it is confident (marked as the model's)",
}
IMAGES = {"none": "No image files", "keep": "As they are", "resize": "Reduced, as JPEG"}
SPLITS = {"": "None", "new": "New splits", EXISTING: "Those that images have"}
THRESHOLDS = [round(percent / 100, 2) for percent in range(101)]
USUAL_SPLITS = (("train", 80), ("val", 10), ("test", 10))
LISTED_AS_FILE, LISTED_AS_FOLDER = "one file", "a folder"


@dataclass
class Chosen:
    """The choices made on the page.

    images: none, keep or resize, of formats that are folders; problems: why it cannot be exported like this, in
    sentences.
    """

    format: Format
    choices: Choices
    images: str = ""
    problems: list[str] = field(default_factory=list)


def choose(db: Database) -> Chosen:
    """Draw all widgets and return the choices."""
    chosen = Chosen(_format(), Choices())
    names = [class_.name for class_ in classes.all_classes(db)]
    people, attributes = blocks.annotators(db), blocks.attribute_names(db)
    unknown, limits = _unknown(db, chosen.problems)
    st.subheader("Images and answers")
    only_complete = st.checkbox("Only images without an unanswered pair", key=kept("only_complete", False))
    only_labeled = st.checkbox("Only images with at least one label", key=kept("only_labeled", False))
    aside = set_aside.count(db)
    with_set_aside = bool(aside) and st.checkbox(
        f"Images that were set aside, too ({aside:,})", key=kept("with_set_aside", False)
    )
    with st.expander("Classes, people, certificate"):
        answers = _answers(names, people, annotator_disagreement.count(db))
    with st.expander("Splits for training"):
        splits = _splits(attributes, chosen.problems)
    files = {}
    if not chosen.format.ending:
        with st.expander("Image files", expanded=True):
            chosen.images, files["pixels"] = _images(chosen.format)
    with st.expander("Columns, times, names of people"):
        table = _table(chosen.format, answers["classes"] or names, attributes, bool(splits["splits"]), chosen.problems)
    chosen.choices = Choices(
        unknown=unknown,
        limits=limits,
        only_complete=only_complete,
        only_labeled=only_labeled,
        set_aside=with_set_aside,
        **answers,
        **splits,
        **files,
        **table,
    )
    return chosen


def _format() -> Format:
    formats = {name: format_ for name, format_ in all_formats().items() if format_.write}
    st.subheader("Format")
    with st.container(height=322):
        name = st.radio(
            "Format",
            list(formats),
            format_func=lambda name: (
                f"**{frame.escaped(name)}** ({LISTED_AS_FILE if formats[name].ending else LISTED_AS_FOLDER})"
            ),
            captions=[_about(format_) for format_ in formats.values()],
            label_visibility="collapsed",
            key=kept("format", "csv", formats),
        )
    return formats[name]


def _about(format_: Format) -> str:
    about = f"{format_.about[:1].upper()}{format_.about[1:]}."
    lost = [word for word in ("unknown", "absent", "unsure") if getattr(format_.lost, word)]
    return frame.escaped(f"{about} No room for {' and '.join(lost)}." if lost else about)


def _unknown(db: Database, problems: list[str]) -> tuple[str, Limits]:
    st.subheader("Unanswered image-class pairs")
    unknown = st.radio(
        "Unanswered image-class pairs",
        list(UNKNOWN),
        format_func=UNKNOWN.__getitem__,
        label_visibility="collapsed",
        key=kept("unknown", "keep", UNKNOWN),
    )
    if unknown != "model":
        return unknown, Limits()
    if runs.current_run(db) is None:
        problems.append("No model yet. It trains by itself once about 20 images are labeled.")
    percent = st.number_input(
        "Accepted error rate, in %",
        0.1,
        20.0,
        step=0.1,
        key=kept("expected_error", 100 * EXPECTED_ERROR),
        format="%.1f",
    )
    if not st.checkbox("Set the thresholds by hand", key=kept("export_own", False)):
        return unknown, Limits(round(percent / 100, 5))
    usual = (0.05, 0.95)
    low, high = st.select_slider(
        "Absent up to, present from", THRESHOLDS, value=usual, key="export_thresholds", format_func="{:g}".format
    )
    return unknown, Limits(round(percent / 100, 5), high, low)


def _answers(names: Sequence[str], people: Sequence[str], differing: int) -> dict[str, Any]:
    """Draw the choices of which answers count and return them; an empty field means all.

    Args:
        names: Names of the classes.
        people: Names of those who answered.
        differing: How many pairs people differ on.
    """
    st.caption("Empty: all of them. Answers not chosen count as unanswered.")
    chosen: dict[str, Any] = {}
    for key, label, options in (
        ("classes", "Classes, in this order", names),
        ("states", "Answers", list(STATES)),
        ("annotators", "People", people),
        ("sources", "How the answer was given", list(SOURCES)),
    ):
        words = (lambda name: f"{name}: {SOURCES[name].about}") if key == "sources" else str
        chosen[key] = tuple(
            st.multiselect(
                label,
                options,
                format_func=words,
                placeholder="All",
                key=kept(f"export_{key}", [], options),
            )
        )
    if differing:
        chosen["differing"] = st.selectbox(
            f"Where people differ: {counted(differing, 'pair')} that nobody has settled",
            list(WAYS),
            format_func=WAYS.__getitem__,
            key=kept("export_differing", LABEL, WAYS),
        )
    if chosen["annotators"] or chosen["sources"]:
        st.caption("Auto-accepted labels are left out: nobody answered them.")
        return chosen
    chosen["auto_accepted"] = st.checkbox("Include auto-accepted labels", key=kept("auto_accepted", True))
    if chosen["auto_accepted"]:
        left, right = st.columns(2)
        for place, name, label in (
            (left, "accepted_precision", "Guaranteed precision at least, in %"),
            (right, "accepted_confidence", "Its confidence at least, in %"),
        ):
            percent = place.number_input(label, 0.0, 100.0, step=0.5, key=kept(name, 0.0), format="%.1f")
            chosen[name] = round(percent / 100, 5)
    return chosen


def _splits(attributes: Sequence[str], problems: list[str]) -> dict[str, Any]:
    how = st.radio(
        "Splits",
        [name for name in SPLITS if attributes or name != EXISTING],
        format_func=SPLITS.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=kept("splits", "", [name for name in SPLITS if attributes or name != EXISTING]),
    )
    if how == EXISTING:
        usual = "split" if "split" in attributes else attributes[0]
        name = st.selectbox("Taken from", attributes, key=kept("splits_from", usual, attributes))
        return {"splits": f"{EXISTING}:{name}"}
    if not how:
        return {"splits": ""}
    text = _shares(problems)
    groups = {"": "Nothing", "folder": "Images of one folder", SIMILAR: "Near-duplicates (reads every image)"}
    by = st.selectbox(
        "What stays together in one split",
        [*groups, *(name for name in attributes if name not in groups)],
        format_func=lambda name: groups.get(name) or f"Images with the same {name}",
        key=kept("split_by", "", [*groups, *attributes]),
    )
    seed = st.number_input(
        "Seed", 0, 2**31 - 1, step=1, help="The same seed makes the same splits.", key=kept("seed", 0)
    )
    return {"splits": text, "split_by": by if text else "", "seed": int(seed)}


def _shares(problems: list[str]) -> str:
    """Return the shares as the command line has them; "" where they cannot be used."""
    st.caption("Every class gets its share in each split. Empty names: fewer splits.")
    given: list[tuple[str, int]] = []
    for place, (usual, percent) in enumerate(USUAL_SPLITS, start=1):
        left, right = st.columns([2, 1])
        name = left.text_input(f"Split {place:d}", max_chars=50, key=kept(f"split_name_{place}", usual)).strip()
        share = right.number_input(f"Share {place:d}, in %", 1, 100, step=1, key=kept(f"split_share_{place}", percent))
        if name:
            given.append((name, int(share)))
    total = sum(share for _, share in given)
    if not given:
        problems.append("Name at least one split, or choose no splits.")
    elif total != 100:
        problems.append(f"The shares of the splits sum to {total} %. They must sum to 100 %.")
    else:
        text = ",".join(f"{name}={share / 100:g}" for name, share in given)
        try:
            shares(text)
            return text
        except AnnotatorError:
            problems.append("Names of splits consist of letters, digits, - and _, and each is used once.")
    return ""


def _images(format_: Format) -> tuple[str, int]:
    """Return what is done with the image files (none, keep or resize), and the pixels of the longer side."""
    usual = "none" if format_.images == "none" else "keep"
    how = st.radio(
        "Image files",
        list(IMAGES),
        format_func=IMAGES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=kept(f"images_{usual}", usual, IMAGES),
    )
    if how != "resize":
        return how, Choices().pixels
    return how, int(
        st.number_input("Longer side at most, in pixels", SMALLEST, LARGEST, step=64, key=kept("pixels", 1024))
    )


def _table(
    format_: Format, names: Sequence[str], attributes: Sequence[str], has_splits: bool, problems: list[str]
) -> dict[str, Any]:
    seconds = st.checkbox("How long each answer took", key=kept("seconds", False))
    pseudonyms = st.checkbox(
        "Pseudonyms instead of names of people", help="annotator 1, annotator 2, ...", key=kept("pseudonyms", False)
    )
    raw = st.checkbox(
        "Keep = + - @ at the start of names",
        help="Spreadsheets run such names as formulas. Unticked, an apostrophe comes first.",
        key=kept("export_raw", False),
    )
    chosen = columns.choose(format_, seconds, names, attributes, has_splits, problems)
    return {"pseudonyms": pseudonyms, "raw": raw, "columns": chosen}
