"""Data cards of exports in Markdown and JSON, after Gebru et al. 2021, "Datasheets for Datasets"."""

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator import __version__
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet
from annotator.humanize import format_count
from annotator.quality.certificate_records import describe_mistake_allowance, describe_repeats
from annotator.quality.certification import DEFAULT_TARGET_RECALL, Certificate, CertificateRow, compute_certificate
from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, Interval, describe_count, describe_share
from annotator.records import Run
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.imports.past_imports import Import, load_imports
from annotator.store.networks import configuration
from annotator.store.runs import runs

TextEscaper = Callable[[str], str]
_MARKUP = re.compile(r"[\\`*|]|(?<=\])(?=[(\[:])|(?<=!)(?=\[)")

MAX_MISSING_NAMED = 20  # missing images named in the Markdown card; the JSON card names all
MAX_FILES_NAMED = 50  # files named in the card of a folder

ASSUMPTIONS = (
    "Answers of people are assumed to be right, except where a figure states otherwise. Where an audit asked about "
    "answered pairs again, the share of answers that changed lowers the precision of all classes equally.",
    "Pairs on which two people disagree count as right or wrong, whichever makes the interval wider.",
)
BLIND_AUDIT_SENTENCE = "People who answered an audit saw neither predictions nor earlier answers."
LIMITATIONS = (
    "The certificate covers answers of people and auto-accepted ones. Pairs that the export fills in (as assumed, "
    "or by the model at a threshold) are not part of it.",
    "It covers these images only, not images outside the project or images that could not be read.",
)
CONFIDENCE_SENTENCE = (
    "Each interval of images has a confidence of 95 %, however often it is looked at while audits are answered. That "
    "the intervals of all classes hold at once is less likely."
)
SAMPLING_SENTENCE = (
    "For each class, the unanswered pairs were divided into strata{by}, and from each stratum a simple random sample "
    "was drawn without replacement{accepted}. Labels that were given afterwards are credited to the stratum of their "
    "pair."
)
RELABEL_SENTENCE = (
    "Of the answered pairs, a simple random sample was asked again without showing the answers: half of it labeled "
    "present, half absent, as far as there were so many."
)
NO_SAMPLE_SENTENCE = (
    "No answer of an audit counts here: no random sample says how complete and how correct the labels are."
)


@dataclass(frozen=True)
class QualityFacts:
    """Facts about label quality and model for a data card, read in the data set's transaction."""

    certificate: Certificate
    run: Run | None
    method: str
    parameters: dict[str, Any]
    backbone: str
    # sha256 of the classes' example images, by image id
    examples: dict[int, str]
    imports: Sequence[Import]


def load_quality(db: Database) -> QualityFacts:
    """Load these facts: quality report, current model, configuration and example images."""
    return QualityFacts(
        compute_certificate(db),
        runs.load_current_run(db),
        configuration.get_method(db),
        configuration.get_parameters(db),
        configuration.get_backbone(db),
        {key: image.sha256 for key, image in images.load_images(db, _list_example_ids(db)).items()},
        [one for one in reversed(load_imports(db)) if one.undone_at is None],
    )


def _list_example_ids(db: Database) -> set[int]:
    return {image_id for class_ in classes.load_active_classes(db) for image_id in class_.examples}


def build_card(
    data: DataSet, quality: QualityFacts, files: list[str], choices: Choices, tag: str = "", lost: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the data card as JSON values. Read `quality` in the transaction of `data`.

    `tag` is the version name, or "". `lost` are sentences about what the format cannot hold.
    """
    view, tallies, certified, run = data.view, data.tallies, quality.certificate, quality.run
    row_of_class = {row.class_id: row for row in certified.classes}
    return {
        "files": files,
        "tag": tag or None,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "made_with": f"annotator {__version__}",
        "license": choices.license or None,
        "cite": choices.cite or None,
        "images": view.images,
        "images_missing": [{"image": name, "reason": reason} for name, reason in tallies.missing],
        "choices": choices.as_json(),
        "choices_in_words": list(data.sentences),
        "lost": list(lost),
        "unknown_cells": choices.unknown,
        "filled_in_by_model": data.fill and asdict(data.fill) | {"in_words": data.fill.sentences()},
        "splits": data.splits,
        "classes": [
            {
                "name": class_.name,
                "description": class_.description,
                "key": class_.key,
                "position": class_.position,
                "heading": class_.heading,
                "colour": class_.colour,
                "synonyms": class_.synonyms,
                "examples": [quality.examples[one] for one in class_.examples if one in quality.examples],
                "cells": [
                    {"state": state, "source": source, "cells": many}
                    for state, source, many in tallies.counts_of_class(column)
                ],
                "certificate": _select_certificate_fields(row_of_class[class_.id]),
            }
            for column, class_ in enumerate(view.classes)
        ],
        "co_occurrence": [
            {"classes": [view.classes[one].name, view.classes[other].name], "images": many}
            for one, other, many in tallies.pairs()
        ],
        "answers": [
            {"annotator": annotator, "source": source, "month": month, "cells": many}
            for (annotator, source, month), many in _count_by_month(data)
        ],
        "imported_answers_come_from": [
            {"annotator": annotator, "source": source, "cells": many}
            for (annotator, source), many in sorted(tallies.origins.items())
        ],
        "imports": [_describe_import(one) for one in quality.imports],
        "model": {"method": quality.method, "parameters": quality.parameters, "backbone": quality.backbone}
        | ({"run": run.id, "version": run.version, "images_trained_on": run.images} if run else {"run": None}),
        "certificate": {
            "overall": _select_certificate_fields(certified.overall),
            "confidence": 0.95,
            "stopping_rule": certified.sentence(),
            "target": DEFAULT_TARGET_RECALL,
            "assuming": certified.allowance,
            "relabels": asdict(certified.relabels),
            "relabels_in_words": describe_repeats(certified.relabels),
            "compared": certified.compared,
            "lacks": certified.lacks,
            "ruled_out": [
                certified.ruled_out[class_.id] for class_ in view.classes if class_.id in certified.ruled_out
            ],
            "last_decision": certified.last_decision_id,
        }
        | ({} if certified.events is None else {"events": certified.events, "in_events": certified.in_events()}),
        "audits": [audit.as_json() for audit in certified.audits],
        "how_audits_are_drawn": describe_sampling(certified),
        "assumed": [
            *ASSUMPTIONS,
            describe_mistake_allowance(certified),
            *([BLIND_AUDIT_SENTENCE] if certified.audits else []),
        ],
        "limits": [*LIMITATIONS, *([CONFIDENCE_SENTENCE] if _has_intervals(certified) else [])],
    }


def _describe_import(one: Import) -> dict[str, Any]:
    # Folders of the computer that a file came from are nobody's business.
    name = one.source.replace("\\", "/").rstrip("/").rpartition("/")[2]
    reading = one.counts.get("reading", {})
    return {
        "source": name,
        "format": one.format,
        "answers": one.counts.get("answers", 0),
        "options": reading.get("options", []),
        "fields": [{"field": field, "role": role, "why": why} for field, role, why in reading.get("fields", [])],
    }


def describe_sampling(certified: Certificate) -> str:
    """Describe the random samples of a quality report in sentences."""
    if not certified.audits:
        waiting = certified.overall.waiting
        return (
            f"{NO_SAMPLE_SENTENCE} {format_count(waiting, 'drawn pair waits', 'drawn pairs wait')} for answers."
            if waiting
            else NO_SAMPLE_SENTENCE
        )
    again = [RELABEL_SENTENCE] if certified.relabels.total else []
    if not certified.overall.audited and again:
        return RELABEL_SENTENCE
    with_run = sum(audit.run_id is not None for audit in certified.audits)
    where = "" if with_run == len(certified.audits) else " where there was a model"
    sampled = SAMPLING_SENTENCE.format(
        by=f" by the model's probability{where}" if with_run else "",
        accepted="; auto-accepted pairs are strata of their own"
        if certified.overall.accepted
        else "; so are the pairs of classes that a person ruled out"
        if certified.ruled_out
        else "",
    )
    return " ".join([sampled, *again])


def _has_intervals(certified: Certificate) -> bool:
    return bool(certified.audits or certified.compared)


def _count_by_month(data: DataSet) -> list[tuple[tuple[str, str, str], int]]:
    view = data.view
    return sorted(
        (
            ((view.annotators[person], view.sources[source], str(np.datetime64(month, "M"))), many)
            for (person, source, month), many in data.tallies.months.items()
        ),
        key=lambda row: (row[0][2], row[0]),
    )


def paths(target: Path, is_folder: bool = False) -> list[Path]:
    """Return the paths of an export's data card in Markdown and in JSON."""
    if is_folder:
        return [target / name for name in ("data_card.md", "data_card.json")]
    return [target.with_name(target.stem + ending) for ending in (".card.md", ".card.json")]


def _format_missing(rows: list[dict[str, Any]], text: TextEscaper) -> list[str]:
    if not rows:
        return []
    names = ", ".join(text(row["image"]) for row in rows[:MAX_MISSING_NAMED])
    rest = f" and {len(rows) - MAX_MISSING_NAMED:,} more" if len(rows) > MAX_MISSING_NAMED else ""
    return [
        f"{format_count(len(rows), 'image is', 'images are')} missing: the files are gone or unreadable. Their labels "
        f"are in the data set. Missing: {names}{rest}.",
        "",
    ]


def format_markdown(card: dict[str, Any], text: TextEscaper | None = None) -> str:
    """Format a data card as Markdown. `text` escapes names, None for general Markdown."""
    text = text or _escape_markdown
    certified, model = card["certificate"], card["model"]
    run = f"run {model['run']}, version {model['version']}" if model["run"] else "no run yet"
    sources: Counter[tuple[str, str]] = Counter()
    for class_ in card["classes"]:
        for cell in class_["cells"]:
            sources[cell["state"], cell["source"] or "nobody"] += cell["cells"]
    lines = [
        f"# Data card of {', '.join(text(name) for name in card['files'])}",
        "",
        f"{format_count(card['images'], 'image')}, {format_count(len(card['classes']), 'class', 'classes')}. Made "
        f"{card['made_at']} with {card['made_with']}. Suggestions by the method `{model['method']}` on "
        f"`{model['backbone']}` ({run}).",
        "",
        *_format_missing(card["images_missing"], text),
        *_format_terms(card, text),
        *_format_choices(card, text),
        "## Where the labels came from",
        "",
        "| answer | from | count |",
        "|---|---|---:|",
        *(f"| {state} | {text(source)} | {cells:,} |" for (state, source), cells in sources.most_common()),
        "",
        *_format_ruled_out(certified["ruled_out"], text),
        *_format_answers(card["answers"], text),
        *_format_origins(card["imported_answers_come_from"], text),
        *_format_imports(card["imports"], text),
        *_format_filled_cells(card["filled_in_by_model"], text),
        *_format_splits(card, text),
        *_format_co_occurrence(card["co_occurrence"], text),
        "## How complete and how correct they are",
        "",
        f"{certified['stopping_rule']}. {_figures_heading(card)}:",
        "",
        *_format_class_table(card, text),
        "",
        *([certified["in_events"], ""] if "in_events" in certified else []),
        *([f"{certified['relabels_in_words']}.", ""] if certified["relabels_in_words"] else []),
        *(f"* {text(sentence)}" for sentence in certified["lacks"]),
        "",
        "## How this is known",
        "",
        card["how_audits_are_drawn"],
        "",
        *(
            f"* Audit {audit['id']}: {format_count(audit['cells'], 'pair')}"
            f"{' of whole events' * ('by_event' in audit)}, sampled "
            f"{time.strftime('%Y-%m-%d', time.gmtime(audit['drawn_at']))}."
            for audit in card["audits"]
        ),
        "",
        "Assumed:",
        "",
        *(f"* {sentence}" for sentence in card["assumed"]),
        "",
        "Limits:",
        "",
        *(f"* {sentence}" for sentence in card["limits"]),
    ]
    return "\n".join(lines) + "\n"


def _figures_heading(card: dict[str, Any]) -> str:
    if card["audits"] or card["certificate"]["compared"]:
        return "Estimates with 95 % intervals"
    if card["certificate"]["overall"]["unknown"]:
        return "What is known without an audit"
    return "Every pair has an answer and no audit has checked them. Figures with 95 % intervals"


def _format_terms(card: dict[str, Any], text: TextEscaper) -> list[str]:
    given = [("Version", card["tag"]), ("License", card["license"]), ("Cite as", card["cite"])]
    lines = [f"* {name}: {text(value)}" for name, value in given if value]
    return [*lines, ""] if lines else []


def _format_choices(card: dict[str, Any], text: TextEscaper) -> list[str]:
    sentences = [*card["choices_in_words"], *card["lost"]]
    choices = [f"* `{name}`: {text(json.dumps(value, ensure_ascii=False))}" for name, value in card["choices"].items()]
    if not choices and not sentences:
        return []
    return ["## What was chosen", "", *choices, *(f"* {text(sentence)}" for sentence in sentences), ""]


def _format_ruled_out(sentences: list[str], text: TextEscaper) -> list[str]:
    return [*(f"* {text(sentence)}" for sentence in sentences), ""] if sentences else []


def _format_answers(answers: list[dict[str, Any]], text: TextEscaper) -> list[str]:
    if not answers:
        return []
    return [
        "## Who answered, how, and when",
        "",
        "| month | who | how | count |",
        "|---|---|---|---:|",
        *(
            f"| {row['month']} | {text(row['annotator'])} | {text(row['source'])} | {row['cells']:,} |"
            for row in answers
        ),
        "",
    ]


def _format_origins(origins: list[dict[str, Any]], text: TextEscaper) -> list[str]:
    if not origins:
        return []
    return [
        "## Who gave the imported answers",
        "",
        "| who | how | count |",
        "|---|---|---:|",
        *(f"| {text(row['annotator'])} | {text(row['source'])} | {row['cells']:,} |" for row in origins),
        "",
    ]


def _format_imports(imports: list[dict[str, Any]], text: TextEscaper) -> list[str]:
    lines: list[str] = []
    for one in imports:
        options = f", read with {text(shlex.join(one['options']))}" if one["options"] else ""
        lines += [f"**{text(one['source'])}** ({text(one['format'])}): {one['answers']:,} answers{options}.", ""]
        if one["fields"]:
            rows = [f"| {text(row['field'])} | {text(row['role'])} | {text(row['why'])} |" for row in one["fields"]]
            lines += ["| field | read as | why |", "|---|---|---|", *rows, ""]
    return ["## How the imported files were read", "", *lines] if lines else []


def _format_splits(card: dict[str, Any], text: TextEscaper) -> list[str]:
    splits = card["splits"]
    if not splits:
        return []
    names = [split["name"] for split in splits]
    return [
        "## Splits",
        "",
        f"| class | {' | '.join(text(name) for name in names)} |",
        f"|---|{'---:|' * len(names)}",
        _format_row("**images**", [split["images"] for split in splits]),
        *(
            _format_row(text(name), [split["present"][name] for split in splits])
            for name in (class_["name"] for class_ in card["classes"])
        ),
        "",
    ]


def _format_row(name: str, counts: list[int]) -> str:
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"


def _format_co_occurrence(pairs: list[dict[str, Any]], text: TextEscaper) -> list[str]:
    if not pairs:
        return []
    return [
        "## Classes on the same image",
        "",
        "| class | class | images |",
        "|---|---|---:|",
        *(f"| {text(row['classes'][0])} | {text(row['classes'][1])} | {row['images']:,} |" for row in pairs),
        "",
    ]


def _format_filled_cells(fill: dict[str, Any] | None, text: TextEscaper) -> list[str]:
    if fill is None:
        return []
    return [
        "## What the model filled in",
        "",
        *fill["in_words"],
        "",
        "| class | present from | count | expected wrong | absent up to | count | expected wrong | unanswered |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {text(row['name'])} | {_format_threshold(row['present_from'])} | {row['present']:,} | "
            f"{row['wrong_present']:,.1f} | {_format_threshold(row['absent_to'])} | {row['absent']:,} | "
            f"{row['wrong_absent']:,.1f} | {row['unknown']:,} |"
            for row in fill["classes"]
        ),
        "",
    ]


def _format_threshold(threshold: float | None) -> str:
    return "never" if threshold is None else f"{threshold:g}"


def _escape_markdown(text: str) -> str:
    """Return the text on one line, escaped so that it cannot end a table cell or create HTML, images or links."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("<", "&lt;")


def _select_certificate_fields(row: CertificateRow) -> dict[str, Any]:
    figures = ("recall", "recall_allowing", "precision", "missing", "overlooked")
    keys = ("people", "accepted", "unknown", "audited", "asked_again", "audit_answers", "seconds", "events", *figures)
    return {name: value for name, value in row.as_json().items() if name in keys}


def _format_class_table(card: dict[str, Any], text: TextEscaper) -> list[str]:
    kinds = ["recall", "recall_allowing", "precision"]
    names = {"recall": f"recall {IF_ANSWERS_ARE_RIGHT}", "recall_allowing": f"recall {card['certificate']['assuming']}"}
    titles = (names.get(kind, kind) for kind in kinds)
    return [
        f"| class | labeled | auto-accepted | {' | '.join(titles)} | missing | audited |",
        f"|---|---:|---:|{'---|' * len(kinds)}---|---:|",
        *(_format_class_row(text(class_["name"]), class_["certificate"], kinds) for class_ in card["classes"]),
        _format_class_row("**all classes**", card["certificate"]["overall"], kinds),
    ]


def _format_class_row(name: str, row: dict[str, Any], kinds: list[str]) -> str:
    *shares, missing = (_parse_interval(row[kind]) for kind in (*kinds, "missing"))
    people, accepted = f"{row['people']:,}", f"{row['accepted']:,}"
    figures = (*map(describe_share, shares), describe_count(missing), f"{row['audit_answers']:,}")
    return f"| {' | '.join((name, people, accepted, *figures))} |"


def _parse_interval(json: dict[str, Any]) -> Interval:
    return Interval(json["estimate"], json["low"] or 0.0, json["high"] or 0.0, json.get("reason", ""))
