"""The widgets of the Export page that choose an export, and the resulting choices.

Most are drawn from their rows of OPTIONS. Options that are chosen together have functions in PARTS.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import (
    EXISTING_SPLITS,
    SPLIT_BY_SIMILARITY,
    Choices,
    build_choices,
    parse_split_shares,
)
from annotator.exchange.exports.export_options import MAX_PIXELS, MIN_PIXELS, OPTIONS, UNKNOWN_CHOICES, OptionValues
from annotator.exchange.exports.option_types import ExportOption, PageSection, PageWidget, WidgetKind
from annotator.exchange.formats import all_formats
from annotator.exchange.formats.format import Format
from annotator.humanize import format_count
from annotator.snapshot.suggestions import describe_first_run
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import excluded_images
from annotator.store.labels import disagreed_cells, event_labels, export_reads
from annotator.store.runs import runs
from annotator.ui.pages.export import columns_section
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.widget_values import restore_widget
from annotator.ui.shared.work import readable_paths

IMAGE_TITLES = {"none": "No image files", "keep": "As they are", "resize": "Reduced, as JPEG"}
SPLIT_CHOICES = {"": "None", "new": "New splits", EXISTING_SPLITS: "Those that images have"}
THRESHOLD_CHOICES = [round(percent / 100, 2) for percent in range(101)]
DEFAULT_SPLITS = (("train", 80), ("val", 10), ("test", 10))
FILE_WORDS, FOLDER_WORDS = "one file", "a folder"
MAX_TEXT_CHARACTERS = 2000
PROJECT_COUNTS: dict[str, Callable[[Database], int]] = {
    "excluded images": excluded_images.count,
    "disagreements": disagreed_cells.count,
    "event labels": event_labels.count,
}
"""What PageWidget.shown_for counts in a project."""
WIDGET_LABELS = {option.field: option.widget.label for option in OPTIONS if option.widget}


@dataclass
class PageChoices:
    """The choices made on the Export page."""

    format: Format
    choices: Choices
    # "none", "keep" (unchanged files) or "resize"
    images: str = ""
    # sentences about choices that prevent the export
    problems: list[str] = field(default_factory=list)


@dataclass
class _Page:
    """The project data that the widgets offer, and the choices made so far (`values`, `images`)."""

    db: Database
    format: Format
    class_names: list[str]
    people: list[str]
    attributes: list[str]
    values: dict[str, Any] = field(default_factory=dict)
    images: str = ""
    problems: list[str] = field(default_factory=list)

    def build_choices(self) -> Choices:
        return build_choices(self.values)

    def count_for(self, widget: PageWidget) -> int:
        return PROJECT_COUNTS[widget.shown_for](self.db) if widget.shown_for else 1

    def list_values(self, option: ExportOption) -> Mapping[str, str]:
        if option.list_words:
            return option.list_words()
        names = {"classes": self.class_names, "annotators": self.people}[option.field]
        return {name: name for name in names}


def draw_choices(db: Database) -> PageChoices:
    names = [class_.name for class_ in classes.load_active_classes(db)]
    people, attributes = export_reads.load_annotators(db), export_reads.load_attribute_names(db)
    page = _Page(db, _choose_format(), names, list(people), list(attributes))
    for section in PageSection:
        if section != PageSection.TERMS:  # drawn by data_card_section.py, which keeps them for everybody
            _draw_section(page, section)
    return PageChoices(page.format, page.build_choices(), page.images, page.problems)


def _draw_section(page: _Page, section: PageSection) -> None:
    drawn = [
        (option, option.widget)
        for option in OPTIONS
        if option.widget and option.widget.section == section and option.suits_format(page.format)
        if page.count_for(option.widget) and (option.widget.kind != WidgetKind.PART or option.field in PARTS)
    ]
    if not drawn:
        return
    if section in (PageSection.UNKNOWN, PageSection.IMAGES):
        st.subheader(section)
        place = nullcontext()
    else:
        place = st.expander(section, expanded=section in (PageSection.FILES, PageSection.CAMERAS))
    with place:
        if section == PageSection.ANSWERS:
            st.caption("Empty: all of them. Answers not chosen count as unanswered.")
        for kind, group in groupby(drawn, lambda pair: pair[1].kind):
            _draw_group(page, kind, list(group))
        if section == PageSection.ANSWERS and (page.values["annotators"] or page.values["sources"]):
            st.caption("Auto-accepted labels are left out: nobody answered them.")
        for option, _ in drawn:
            if option.field in PARTS:
                page.values |= PARTS[option.field](page)


def _draw_group(page: _Page, kind: WidgetKind, group: list[tuple[ExportOption, PageWidget]]) -> None:
    used = [(option, widget) for option, widget in group if option.is_used(page.build_choices())]
    if kind == WidgetKind.PART or not used:
        return
    # Percentages stand side by side.
    places = st.columns(len(used)) if kind == WidgetKind.PERCENT else [nullcontext()] * len(used)
    for place, (option, widget) in zip(places, used, strict=True):
        with place:
            page.values[option.field] = DRAWERS[kind](page, option, widget)


def _draw_checkbox(page: _Page, option: ExportOption, widget: PageWidget) -> bool:
    usual = OptionValues().get_value(option.field)
    return st.checkbox(_format_label(page, widget), help=widget.help or None, key=restore_widget(widget.key, usual))


def _draw_multiselect(page: _Page, option: ExportOption, widget: PageWidget) -> tuple[str, ...]:
    titles = page.list_values(option)
    names = list(titles)
    key = restore_widget(widget.key, [], names)
    return tuple(st.multiselect(widget.label, names, format_func=titles.__getitem__, placeholder="All", key=key))


def _draw_select(page: _Page, option: ExportOption, widget: PageWidget) -> str:
    titles = page.list_values(option)
    key = restore_widget(widget.key, OptionValues().get_value(option.field), titles)
    return st.selectbox(_format_label(page, widget), list(titles), format_func=titles.__getitem__, key=key)


def _draw_percent(page: _Page, option: ExportOption, widget: PageWidget) -> float:
    key = restore_widget(widget.key, 100 * OptionValues().get_value(option.field))
    return round(st.number_input(widget.label, 0.0, 100.0, step=0.5, key=key, format="%.1f") / 100, 5)


def _draw_text(page: _Page, option: ExportOption, widget: PageWidget) -> str:
    return st.text_input(
        widget.label, max_chars=MAX_TEXT_CHARACTERS, help=widget.help or None, key=restore_widget(widget.key, "")
    ).strip()


def _draw_path(page: _Page, option: ExportOption, widget: PageWidget) -> str:
    given = _draw_text(page, option, widget)
    if not given:
        return ""
    try:
        return str(readable_paths.resolve_file(given))
    except AnnotatorError as error:
        page.problems.append(str(error))
    return ""


def _format_label(page: _Page, widget: PageWidget) -> str:
    count = page.count_for(widget)
    return widget.label.format(count=f"{count:,}", pairs=format_count(count, "pair"))


DRAWERS: dict[WidgetKind, Callable[[_Page, ExportOption, PageWidget], Any]] = {
    WidgetKind.CHECKBOX: _draw_checkbox,
    WidgetKind.MULTISELECT: _draw_multiselect,
    WidgetKind.SELECT: _draw_select,
    WidgetKind.PERCENT: _draw_percent,
    WidgetKind.TEXT: _draw_text,
    WidgetKind.PATH: _draw_path,
}


def _choose_format() -> Format:
    formats = {name: format_ for name, format_ in all_formats().items() if format_.write}
    st.subheader("Format")
    with st.container(height=322):
        name = st.radio(
            "Format",
            list(formats),
            format_func=lambda name: (
                f"**{escape_markdown(name)}** ({FILE_WORDS if formats[name].ending else FOLDER_WORDS})"
            ),
            captions=[_describe_format(format_) for format_ in formats.values()],
            label_visibility="collapsed",
            key=restore_widget("format", "csv", formats),
        )
    return formats[name]


def _describe_format(format_: Format) -> str:
    about = f"{format_.about[:1].upper()}{format_.about[1:]}."
    lost = [word for word in ("unknown", "absent", "unsure") if getattr(format_.lost, word)]
    return escape_markdown(f"{about} No room for {' and '.join(lost)}." if lost else about)


def _choose_unknown(page: _Page) -> dict[str, Any]:
    unknown = st.radio(
        WIDGET_LABELS["unknown"],
        list(UNKNOWN_CHOICES),
        format_func=UNKNOWN_CHOICES.__getitem__,
        label_visibility="collapsed",
        key=restore_widget("unknown", "keep", UNKNOWN_CHOICES),
    )
    if unknown != "model":
        return {"unknown": unknown}
    if runs.load_current_run(page.db) is None:
        page.problems.append(f"No model yet: {describe_first_run(page.db)}.")
    percent = st.number_input(
        WIDGET_LABELS["limits.expected_error"],
        0.1,
        20.0,
        step=0.1,
        key=restore_widget("expected_error", 100 * OptionValues().limits.expected_error),
        format="%.1f",
    )
    chosen = {"unknown": unknown, "limits.expected_error": round(percent / 100, 5)}
    if not st.checkbox("Set the thresholds by hand", key=restore_widget("export_own", False)):
        return chosen
    usual = (0.05, 0.95)
    low, high = st.select_slider(
        WIDGET_LABELS["limits.present_from"],
        THRESHOLD_CHOICES,
        value=usual,
        key="export_thresholds",
        format_func="{:g}".format,
    )
    return chosen | {"limits.present_from": high, "limits.absent_to": low}


def _choose_splits(page: _Page) -> dict[str, Any]:
    attributes = page.attributes
    how = st.radio(
        WIDGET_LABELS["splits"],
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
    text = _choose_split_shares(page.problems)
    groups = {
        "": "Nothing",
        "folder": "Images of one folder",
        SPLIT_BY_SIMILARITY: "Near-duplicates (reads every image)",
    }
    by = st.selectbox(
        WIDGET_LABELS["split_by"],
        [*groups, *(name for name in attributes if name not in groups)],
        format_func=lambda name: groups.get(name) or f"Images with the same {name}",
        key=restore_widget("split_by", "", [*groups, *attributes]),
    )
    seed = st.number_input(
        WIDGET_LABELS["seed"],
        0,
        2**31 - 1,
        step=1,
        help="The same seed makes the same splits.",
        key=restore_widget("seed", 0),
    )
    return {"splits": text, "split_by": by if text else "", "seed": int(seed)}


def _choose_split_shares(problems: list[str]) -> str:
    """Return split shares in command-line form, or ""."""
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


def _choose_images(page: _Page) -> dict[str, Any]:
    """Draw the choice of exported image files, store it in `page.images`, and return the pixel limit."""
    usual = "none" if page.format.images == "none" else "keep"
    page.images = st.radio(
        WIDGET_LABELS["images"],
        list(IMAGE_TITLES),
        format_func=IMAGE_TITLES.__getitem__,
        label_visibility="collapsed",
        horizontal=True,
        key=restore_widget(f"images_{usual}", usual, IMAGE_TITLES),
    )
    if page.images != "resize":
        return {}
    key = restore_widget("pixels", OptionValues().pixels)
    return {"pixels": int(st.number_input(WIDGET_LABELS["pixels"], MIN_PIXELS, MAX_PIXELS, step=64, key=key))}


def _choose_columns(page: _Page) -> dict[str, Any]:
    names, has_splits = page.values["classes"] or page.class_names, bool(page.values["splits"])
    chosen = columns_section.draw_columns(
        page.format, page.values["columns.seconds"], names, page.attributes, has_splits, page.problems
    )
    return {"columns.long": chosen.long, "columns.chosen": chosen.chosen}


PARTS: dict[str, Callable[[_Page], dict[str, Any]]] = {
    "unknown": _choose_unknown,
    "splits": _choose_splits,
    "images": _choose_images,
    "columns.chosen": _choose_columns,
}
"""Field of the first option of a part -> the function that draws the part and returns the values of its options."""
