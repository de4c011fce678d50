"""The options of an export: each is a field of OptionValues and a row of OPTIONS.

The row determines the flag of `annotator export`, the widget and command on the Export page, the value's checks, and
whether the page counts again. This module loads no format, because the command line reads it at start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotator.exchange.exports.option_types import Effect, ExportOption, PageSection, PageWidget, WidgetKind
from annotator.exchange.table_columns import TableColumns, format_columns, parse_columns
from annotator.records import SOURCES, STATES

DEFAULT_EXPECTED_ERROR = 0.01
EVEN_PROBABILITY = 0.5  # no cell is filled in with the less likely state
MIN_PIXELS, MAX_PIXELS = 16, 16384  # pixels of the longer side of a resized image
IMAGE_CHOICES = ("none", "link", "copy", "resize")
UNKNOWN_CHOICES = {
    "keep": "Leave empty",
    "absent": "Fill in as absent (marked as assumed)",
    "model": "Let the model fill in where it is confident (marked as the model's)",
}


@dataclass(frozen=True)
class Limits:
    """The allowed error, or thresholds, for labels that a model fills in.

    Attributes:
        expected_error: Share of filled-in labels per class that may be wrong, in (0, 0.5).
        present_from: Lowest probability of present, or None.
        absent_to: Highest probability of absent, or None.
    """

    expected_error: float = DEFAULT_EXPECTED_ERROR
    present_from: float | None = None
    absent_to: float | None = None

    def problems(self) -> list[str]:
        """Return the problems of these limits, in sentences."""
        given = {"present from": self.present_from, "absent up to": self.absent_to}
        sentences = [
            f"The threshold {value} ({name}) is not a probability: it must lie between 0 and 1."
            for name, value in given.items()
            if value is not None and not 0 <= value <= 1
        ]
        if not 0 < self.expected_error < EVEN_PROBABILITY:
            sentences.append(
                f"An expected error of {self.expected_error} is not possible: it must lie between 0 and "
                f"{EVEN_PROBABILITY}, such as {DEFAULT_EXPECTED_ERROR}."
            )
        overlap = None not in (self.present_from, self.absent_to) and (self.absent_to or 0) > (self.present_from or 0)
        if overlap and not sentences:
            sentences.append(f"Present from {self.present_from} and absent up to {self.absent_to} overlap: swap them.")
        return sentences


@dataclass(frozen=True)
class OptionValues:
    """The values of all export options: what is exported, and how. () and "" restrict nothing.

    Attributes:
        unknown: Unanswered cells stay so ("keep"), become absent ("absent", marked "assumed"), or are filled in
            where the current run is certain enough ("model", marked "model").
        limits: Thresholds for "model", or their expected error.
        only_complete: Only images without an unanswered cell, before `unknown` fills any in.
        only_labeled: Only images with a present class, likewise.
        classes: Only these classes, in this order.
        states: Only answers with these states. Others become unanswered.
        annotators: Only answers of these annotators. Others become unanswered.
        sources: Only answers of these sources. Others become unanswered.
        differing: How to export unresolved disagreements: RESOLUTIONS of quality/disagreement_resolution.py.
        auto_accepted: Include auto-accepted cells, unless annotators or sources are chosen.
        accepted_precision: Minimum guaranteed precision of auto-accepted cells, a share.
        accepted_confidence: Minimum confidence of that guarantee, a share.
        splits: "train=0.8,val=0.1,test=0.1", or "existing:NAME" for a field.
        split_by: Keep these images in one split: "folder", "similar" (near-duplicates), or the name of a field.
        seed: Seed of the splits.
        images: Image files: none, link, copy or resize. "" selects what the format needs.
        pixels: Maximum of the longer side of a resized image.
        raw: Do not escape text that a spreadsheet would run as a formula.
        columns: Columns of tables.
        pseudonyms: Write "annotator 1", "annotator 2", ... instead of names.
        license: License in the data card.
        cite: Citation in the data card.
        event_labels: Give images their event's labels where they have no answer.
        deployments: Path of a table with deploymentID, latitude and longitude (camtrap-dp).
        set_aside: Include excluded images.
        croissant: Write a Croissant description and its records.
    """

    unknown: str = "keep"
    limits: Limits = field(default_factory=Limits)
    only_complete: bool = False
    only_labeled: bool = False
    classes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    differing: str = "label"
    auto_accepted: bool = True
    accepted_precision: float = 0.0
    accepted_confidence: float = 0.0
    splits: str = ""
    split_by: str = ""
    seed: int = 0
    images: str = ""
    pixels: int = 1024
    raw: bool = False
    columns: TableColumns = field(default_factory=TableColumns)
    pseudonyms: bool = False
    license: str = ""
    cite: str = ""
    event_labels: bool = False
    deployments: str = ""
    set_aside: bool = False
    croissant: bool = False

    def get_value(self, name: str) -> Any:
        """Return the value of an option by its field, such as "seed" or "columns.long"."""
        record, _, inner = name.partition(".")
        value = getattr(self, record)
        return getattr(value, inner) if inner else value


def _list_resolutions() -> Mapping[str, str]:
    from annotator.quality.disagreement_resolution import RESOLUTIONS

    return RESOLUTIONS


def _fills_by_model(values: OptionValues) -> bool:
    return values.unknown == "model"


def _may_take_accepted(values: OptionValues) -> bool:
    return not (values.annotators or values.sources)


def _takes_accepted(values: OptionValues) -> bool:
    return values.auto_accepted and _may_take_accepted(values)


OPTIONS = (
    ExportOption(
        "unknown",
        "--unknown",
        "How to export unanswered pairs: keep, absent or model.",
        PageWidget(WidgetKind.PART, "unknown", "Unanswered image-class pairs", PageSection.UNKNOWN),
        str,
        "HOW",
        list_words=lambda: UNKNOWN_CHOICES,
    ),
    ExportOption(
        "limits.expected_error",
        "--expected-error",
        "For --unknown model: accepted share of wrong answers.",
        PageWidget(WidgetKind.PART, "expected_error", "Accepted error rate, in %", PageSection.UNKNOWN),
        float,
        is_used=_fills_by_model,
    ),
    ExportOption(
        "limits.present_from",
        "--present-from",
        "For --unknown model: present from this probability on [default: by --expected-error].",
        PageWidget(WidgetKind.PART, "export_thresholds", "Absent up to, present from", PageSection.UNKNOWN),
        float | None,
        is_used=_fills_by_model,
    ),
    ExportOption(
        "limits.absent_to",
        "--absent-to",
        "For --unknown model: absent up to this probability [default: by --expected-error].",
        PageWidget(WidgetKind.PART, "export_thresholds", "Absent up to, present from", PageSection.UNKNOWN),
        float | None,
        is_used=_fills_by_model,
    ),
    ExportOption(
        "threshold",
        "--threshold",
        "Both at once: present from here on, absent below.",
        type=float | None,
        abbreviates=("limits.present_from", "limits.absent_to"),
    ),
    ExportOption(
        "only_complete",
        "--only-complete",
        "Only images without an unanswered pair.",
        PageWidget(WidgetKind.CHECKBOX, "only_complete", "Only images without an unanswered pair", PageSection.IMAGES),
    ),
    ExportOption(
        "only_labeled",
        "--only-labeled",
        "Only images with a present class.",
        PageWidget(WidgetKind.CHECKBOX, "only_labeled", "Only images with at least one label", PageSection.IMAGES),
    ),
    ExportOption(
        "set_aside",
        "--with-set-aside",
        "Images that were set aside, too.",
        PageWidget(
            WidgetKind.CHECKBOX,
            "with_set_aside",
            "Images that were set aside, too ({count})",
            PageSection.IMAGES,
            shown_for="excluded images",
        ),
    ),
    ExportOption(
        "classes",
        "--class",
        "Only this class; may be repeated, in the order wanted.",
        PageWidget(WidgetKind.MULTISELECT, "export_classes", "Classes, in this order", PageSection.ANSWERS),
        list[str] | None,
    ),
    ExportOption(
        "states",
        "--state",
        "Only such answers (present, absent, unsure); others count as unanswered.",
        PageWidget(WidgetKind.MULTISELECT, "export_states", "Answers", PageSection.ANSWERS),
        list[str] | None,
        list_words=lambda: {name: name for name in STATES},
    ),
    ExportOption(
        "annotators",
        "--annotator",
        "Only answers of this person; others and auto-accepted labels are left out.",
        PageWidget(WidgetKind.MULTISELECT, "export_annotators", "People", PageSection.ANSWERS),
        list[str] | None,
    ),
    ExportOption(
        "sources",
        "--source",
        "Only answers from this source (click, grid, ...), no auto-accepted labels.",
        PageWidget(WidgetKind.MULTISELECT, "export_sources", "How the answer was given", PageSection.ANSWERS),
        list[str] | None,
        list_words=lambda: {name: f"{name}: {source.about}" for name, source in SOURCES.items()},
    ),
    ExportOption(
        "differing",
        "--differing",
        "Pairs on which people differ and nobody has settled: label, leave-out, majority or estimate.",
        PageWidget(
            WidgetKind.SELECT,
            "export_differing",
            "Where people differ: {pairs} that nobody has settled",
            PageSection.ANSWERS,
            shown_for="disagreements",
        ),
        str,
        "HOW",
        list_words=_list_resolutions,
    ),
    ExportOption(
        "auto_accepted",
        "--no-accepted",
        "Leave out auto-accepted labels.",
        PageWidget(WidgetKind.CHECKBOX, "auto_accepted", "Include auto-accepted labels", PageSection.ANSWERS),
        is_inverted=True,
        is_used=_may_take_accepted,
    ),
    ExportOption(
        "accepted_precision",
        "--accepted-precision",
        "Only auto-accepted labels with at least this guaranteed precision.",
        PageWidget(
            WidgetKind.PERCENT, "accepted_precision", "Guaranteed precision at least, in %", PageSection.ANSWERS
        ),
        float,
        low=0,
        high=1,
        is_used=_takes_accepted,
    ),
    ExportOption(
        "accepted_confidence",
        "--accepted-confidence",
        "Only auto-accepted labels with a guarantee of at least this confidence.",
        PageWidget(WidgetKind.PERCENT, "accepted_confidence", "Its confidence at least, in %", PageSection.ANSWERS),
        float,
        low=0,
        high=1,
        is_used=_takes_accepted,
    ),
    ExportOption(
        "splits",
        "--splits",
        "train=0.8,val=0.1,test=0.1, stratified; or existing, existing:ATTRIBUTE.",
        PageWidget(WidgetKind.PART, "splits", "Splits", PageSection.SPLITS),
        str,
    ),
    ExportOption(
        "split_by",
        "--split-by",
        "What stays together in one split: folder, similar (near-duplicates), or an attribute.",
        PageWidget(WidgetKind.PART, "split_by", "What stays together in one split", PageSection.SPLITS),
        str,
        is_used=lambda values: bool(values.splits),
    ),
    ExportOption(
        "seed",
        "--seed",
        "Of the splits: the same seed makes the same ones.",
        PageWidget(WidgetKind.PART, "seed", "Seed", PageSection.SPLITS),
        int,
        is_used=lambda values: bool(values.splits),
    ),
    ExportOption(
        "images",
        "--images",
        "Of a folder: none, link, copy or resize [default: as the format needs].",
        PageWidget(WidgetKind.PART, "images_none", "Image files", PageSection.FILES),
        str,
        list_words=lambda: {name: name for name in IMAGE_CHOICES},
        effect=Effect.FILES,
        needs_folder=True,
        void="none",
        refusal="The format {format} is one file and has no room for images: leave out {flag} {value}.",
    ),
    ExportOption(
        "pixels",
        "--pixels",
        "For --images resize: the longer side at most.",
        PageWidget(WidgetKind.PART, "pixels", "Longer side at most, in pixels", PageSection.FILES),
        int,
        low=MIN_PIXELS,
        high=MAX_PIXELS,
        effect=Effect.FILES,
        is_used=lambda values: values.images == "resize",
    ),
    ExportOption(
        "columns.long",
        "--long",
        "CSV: one row per answer instead of one per image.",
        PageWidget(WidgetKind.PART, "shape", "Rows", PageSection.TABLE),
        effect=Effect.FILES,
    ),
    ExportOption(
        "columns.chosen",
        "--columns",
        "CSV: the columns in their order, such as image=file,fox,heron=grey_heron.",
        PageWidget(WidgetKind.PART, "choose_columns", "Choose and rename columns", PageSection.TABLE),
        str,
        parse=parse_columns,
        format=format_columns,
        effect=Effect.FILES,
    ),
    ExportOption(
        "columns.seconds",
        "--seconds",
        "Also how long each answer took.",
        PageWidget(WidgetKind.CHECKBOX, "seconds", "How long each answer took", PageSection.TABLE),
        effect=Effect.FILES,
    ),
    ExportOption(
        "pseudonyms",
        "--pseudonyms",
        "Write 'annotator 1' for a name.",
        PageWidget(
            WidgetKind.CHECKBOX,
            "pseudonyms",
            "Pseudonyms instead of names of people",
            PageSection.TABLE,
            "annotator 1, annotator 2, ...",
        ),
        effect=Effect.CARD,
    ),
    ExportOption(
        "raw",
        "--raw",
        "CSV: keep = + - @ at the start of a name, which spreadsheets run as formulas.",
        PageWidget(
            WidgetKind.CHECKBOX,
            "export_raw",
            "Keep = + - @ at the start of names",
            PageSection.TABLE,
            "Spreadsheets run such names as formulas. Unticked, an apostrophe comes first.",
        ),
        effect=Effect.FILES,
    ),
    ExportOption(
        "croissant",
        "--croissant",
        "Also write croissant.json, a description of the data set for machines (MLCommons).",
        PageWidget(
            WidgetKind.CHECKBOX,
            "export_croissant",
            "Croissant description of the data set",
            PageSection.FILES,
            "Also writes croissant.json and its table of labels, for catalogs and mlcroissant.",
        ),
        effect=Effect.FILES,
    ),
    ExportOption(
        "license",
        "--license",
        "For the data card.",
        PageWidget(WidgetKind.PART, "card_license", "License", PageSection.TERMS),
        str,
        effect=Effect.CARD,
    ),
    ExportOption(
        "cite",
        "--cite",
        "For the data card: how to cite.",
        PageWidget(WidgetKind.PART, "card_cite", "How to cite", PageSection.TERMS),
        str,
        effect=Effect.CARD,
    ),
    ExportOption(
        "event_labels",
        "--event-labels",
        "Also give each image of an event (burst) the event's classes, where nobody has answered.",
        PageWidget(
            WidgetKind.CHECKBOX,
            "export_event_labels",
            "Give images the labels of their event ({count})",
            PageSection.IMAGES,
            "Fills unanswered pairs only. Not every image of an event shows its classes.",
            "event labels",
        ),
        excluded_formats=("camtrap-dp",),
        refusal="{flag} is for other formats: {format} writes labels of events as such. Leave it out.",
    ),
    ExportOption(
        "deployments",
        "--deployments",
        "Of camtrap-dp: a table with deploymentID (the folder), latitude and longitude.",
        PageWidget(
            WidgetKind.PATH,
            "export_deployments",
            "Table of deployments (path on the server)",
            PageSection.CAMERAS,
            "A CSV file with the columns deploymentID (the folder), latitude and longitude.",
        ),
        Path | None,
        parse=lambda path: str(path or ""),
        effect=Effect.FILES,
        formats=("camtrap-dp",),
        refusal="{flag} belongs to --format camtrap-dp; {format} has no place for it.",
    ),
)
