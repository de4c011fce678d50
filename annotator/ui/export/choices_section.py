"""The widgets of the Export page that choose an export, and the choices they result in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import (
    EXISTING_SPLITS,
    MAX_PIXELS,
    MIN_PIXELS,
    SPLIT_BY_SIMILARITY,
    Choices,
    parse_split_shares,
)
from annotator.exchange.exports.thresholds import DEFAULT_EXPECTED_ERROR, Limits
from annotator.exchange.formats import all_formats
from annotator.exchange.formats.format import Format
from annotator.humanize import format_count
from annotator.quality.disagreement_resolution import KEEP_LABEL, RESOLUTIONS
from annotator.records import SOURCES, STATES
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import excluded_images
from annotator.store.labels import disagreed_cells, export_reads
from annotator.store.runs import runs
from annotator.ui.export import columns_section
from annotator.ui.parts import frame
from annotator.ui.parts.widget_values import restore_widget

UNKNOWN_CHOICES = {
    "keep": "Leave empty",
    "absent": "Fill in as absent (marked as assumed)",
    "model": "Let the model fill in where it is confident (marked as the model's)",
}
IMAGE_CHOICES = {"none": "No image files", "keep": "As they are", "resize": "Reduced, as JPEG"}
SPLIT_CHOICES = {"": "None", "new": "New splits", EXISTING_SPLITS: "Those that images have"}
THRESHOLD_CHOICES = [round(percent / 100, 2) for percent in range(101)]
DEFAULT_SPLITS = (("train", 80), ("val", 10), ("test", 10))
FILE_WORDS, FOLDER_WORDS = "one file", "a folder"


@dataclass
class PageChoices:
    """The choices made on the page.

    images: none, keep or resize, of formats that are folders; problems: why it cannot be exported like this, in
    sentences.
    """

    format: Format
    choices: Choices
    images: str = ""
    problems: list[str] = field(default_factory=list)


def draw_choices(db: Database) -> PageChoices:
    """Draw all widgets and return the choices."""
    chosen = PageChoices(_choose_format(), Choices())
    names = [class_.name for class_ in classes.load_active_classes(db)]
    people, attributes = export_reads.load_annotators(db), export_reads.load_attribute_names(db)
    unknown, limits = _choose_unknown(db, chosen.problems)
    st.subheader("Images and answers")
    only_complete = st.checkbox("Only images without an unanswered pair", key=restore_widget("only_complete", False))
    only_labeled = st.checkbox("Only images with at least one label", key=restore_widget("only_labeled", False))
    aside = excluded_images.count(db)
    with_set_aside = bool(aside) and st.checkbox(
        f"Images that were set aside, too ({aside:,})", key=restore_widget("with_set_aside", False)
    )
    with st.expander("Classes, people, certificate"):
        answers = _choose_answers(names, people, disagreed_cells.count(db))
    with st.expander("Splits for training"):
        splits = _choose_splits(attributes, chosen.problems)
    files = {}
    if not chosen.format.ending:
        with st.expander("Image files", expanded=True):
            chosen.images, files["pixels"] = _choose_images(chosen.format)
    with st.expander("Columns, times, names of people"):
        table = _choose_table(
            chosen.format, answers["classes"] or names, attributes, bool(splits["splits"]), chosen.problems
        )
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


def _choose_format() -> Format:
    formats = {name: format_ for name, format_ in all_formats().items() if format_.write}
    st.subheader("Format")
    with st.container(height=322):
        name = st.radio(
            "Format",
            list(formats),
            format_func=lambda name: (
                f"**{frame.escape_markdown(name)}** ({FILE_WORDS if formats[name].ending else FOLDER_WORDS})"
            ),
            captions=[_describe_format(format_) for format_ in formats.values()],
            label_visibility="collapsed",
            key=restore_widget("format", "csv", formats),
        )
    return formats[name]


def _describe_format(format_: Format) -> str:
    about = f"{format_.about[:1].upper()}{format_.about[1:]}."
    lost = [word for word in ("unknown", "absent", "unsure") if getattr(format_.lost, word)]
    return frame.escape_markdown(f"{about} No room for {' and '.join(lost)}." if lost else about)


def _choose_unknown(db: Database, problems: list[str]) -> tuple[str, Limits]:
    st.subheader("Unanswered image-class pairs")
    unknown = st.radio(
        "Unanswered image-class pairs",
        list(UNKNOWN_CHOICES),
        format_func=UNKNOWN_CHOICES.__getitem__,
        label_visibility="collapsed",
        key=restore_widget("unknown", "keep", UNKNOWN_CHOICES),
    )
    if unknown != "model":
        return unknown, Limits()
    if runs.load_current_run(db) is None:
        problems.append("No model yet. It trains by itself once about 20 images are labeled.")
    percent = st.number_input(
        "Accepted error rate, in %",
        0.1,
        20.0,
        step=0.1,
        key=restore_widget("expected_error", 100 * DEFAULT_EXPECTED_ERROR),
        format="%.1f",
    )
    if not st.checkbox("Set the thresholds by hand", key=restore_widget("export_own", False)):
        return unknown, Limits(round(percent / 100, 5))
    usual = (0.05, 0.95)
    low, high = st.select_slider(
        "Absent up to, present from", THRESHOLD_CHOICES, value=usual, key="export_thresholds", format_func="{:g}".format
    )
    return unknown, Limits(round(percent / 100, 5), high, low)


def _choose_answers(names: Sequence[str], people: Sequence[str], differing: int) -> dict[str, Any]:
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
                key=restore_widget(f"export_{key}", [], options),
            )
        )
    if differing:
        chosen["differing"] = st.selectbox(
            f"Where people differ: {format_count(differing, 'pair')} that nobody has settled",
            list(RESOLUTIONS),
            format_func=RESOLUTIONS.__getitem__,
            key=restore_widget("export_differing", KEEP_LABEL, RESOLUTIONS),
        )
    if chosen["annotators"] or chosen["sources"]:
        st.caption("Auto-accepted labels are left out: nobody answered them.")
        return chosen
    chosen["auto_accepted"] = st.checkbox("Include auto-accepted labels", key=restore_widget("auto_accepted", True))
    if chosen["auto_accepted"]:
        left, right = st.columns(2)
        for place, name, label in (
            (left, "accepted_precision", "Guaranteed precision at least, in %"),
            (right, "accepted_confidence", "Its confidence at least, in %"),
        ):
            percent = place.number_input(label, 0.0, 100.0, step=0.5, key=restore_widget(name, 0.0), format="%.1f")
            chosen[name] = round(percent / 100, 5)
    return chosen


def _choose_splits(attributes: Sequence[str], problems: list[str]) -> dict[str, Any]:
    how = st.radio(
        "Splits",
        [name for name in SPLIT_CHOICES if attributes or name != EXISTING_SPLITS],
        format_func=SPLIT_CHOICES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=restore_widget("splits", "", [name for name in SPLIT_CHOICES if attributes or name != EXISTING_SPLITS]),
    )
    if how == EXISTING_SPLITS:
        usual = "split" if "split" in attributes else attributes[0]
        name = st.selectbox("Taken from", attributes, key=restore_widget("splits_from", usual, attributes))
        return {"splits": f"{EXISTING_SPLITS}:{name}"}
    if not how:
        return {"splits": ""}
    text = _choose_split_shares(problems)
    groups = {
        "": "Nothing",
        "folder": "Images of one folder",
        SPLIT_BY_SIMILARITY: "Near-duplicates (reads every image)",
    }
    by = st.selectbox(
        "What stays together in one split",
        [*groups, *(name for name in attributes if name not in groups)],
        format_func=lambda name: groups.get(name) or f"Images with the same {name}",
        key=restore_widget("split_by", "", [*groups, *attributes]),
    )
    seed = st.number_input(
        "Seed", 0, 2**31 - 1, step=1, help="The same seed makes the same splits.", key=restore_widget("seed", 0)
    )
    return {"splits": text, "split_by": by if text else "", "seed": int(seed)}


def _choose_split_shares(problems: list[str]) -> str:
    """Return the shares as the command line has them; "" where they cannot be used."""
    st.caption("Every class gets its share in each split. Empty names: fewer splits.")
    given: list[tuple[str, int]] = []
    for place, (usual, percent) in enumerate(DEFAULT_SPLITS, start=1):
        left, right = st.columns([2, 1])
        name = left.text_input(
            f"Split {place:d}", max_chars=50, key=restore_widget(f"split_name_{place}", usual)
        ).strip()
        share = right.number_input(
            f"Share {place:d}, in %", 1, 100, step=1, key=restore_widget(f"split_share_{place}", percent)
        )
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
            parse_split_shares(text)
            return text
        except AnnotatorError:
            problems.append("Names of splits consist of letters, digits, - and _, and each is used once.")
    return ""


def _choose_images(format_: Format) -> tuple[str, int]:
    """Return what is done with the image files (none, keep or resize), and the pixels of the longer side."""
    usual = "none" if format_.images == "none" else "keep"
    how = st.radio(
        "Image files",
        list(IMAGE_CHOICES),
        format_func=IMAGE_CHOICES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=restore_widget(f"images_{usual}", usual, IMAGE_CHOICES),
    )
    if how != "resize":
        return how, Choices().pixels
    return how, int(
        st.number_input(
            "Longer side at most, in pixels", MIN_PIXELS, MAX_PIXELS, step=64, key=restore_widget("pixels", 1024)
        )
    )


def _choose_table(
    format_: Format, names: Sequence[str], attributes: Sequence[str], has_splits: bool, problems: list[str]
) -> dict[str, Any]:
    seconds = st.checkbox("How long each answer took", key=restore_widget("seconds", False))
    pseudonyms = st.checkbox(
        "Pseudonyms instead of names of people",
        help="annotator 1, annotator 2, ...",
        key=restore_widget("pseudonyms", False),
    )
    raw = st.checkbox(
        "Keep = + - @ at the start of names",
        help="Spreadsheets run such names as formulas. Unticked, an apostrophe comes first.",
        key=restore_widget("export_raw", False),
    )
    chosen = columns_section.draw_columns(format_, seconds, names, attributes, has_splits, problems)
    return {"pseudonyms": pseudonyms, "raw": raw, "columns": chosen}
