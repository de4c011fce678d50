"""The data card: what an exported data set is, where its labels came from, how good they are, and how that is known.

It is written beside the data set as Markdown and as JSON, with the same content. The questions are those of Gebru et
al. 2021, "Datasheets for Datasets".
"""

import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from annotator import __version__
from annotator.exchange.data_set import DataSet
from annotator.quality.certificate import TARGET, Certificate, Row, certificate
from annotator.quality.evidence import Interval, counts, percents
from annotator.records import Run
from annotator.store import configuration, runs
from annotator.store.database import Database

MISSING_NAMED = 20  # in the card for people; the other one has all

ASSUMED = (
    "What people decided is taken as true. Where people looked twice, the share of answers they took back lowers "
    "precision, of all classes by the same share.",
    "Cells on which two people disagree count as right or wrong, whichever makes the interval wider.",
    "People who answered drawn cells were not told what the model thinks or what had been said before.",
)
LIMITS = (
    "The certificate is about the labels of people and those accepted automatically. Cells that an export fills in "
    "otherwise (as assumed, or by the model at a threshold) are not part of it.",
    "It is about these images. It says nothing of images that were not in the project, or could not be read.",
    "Its intervals hold 95 times of 100 each, not all of them at once.",
)
DRAWN = (
    "Cells that nobody had decided were cut into strata by the model's probability, of every class anew, and in each "
    "stratum a simple random sample was drawn without replacement; cells that the model had filled in are strata of "
    "their own. What people labeled afterwards is credited to the stratum it lay in."
)


@dataclass(frozen=True)
class Quality:
    """What a card says besides the labels; read in the transaction that reads the data set."""

    certificate: Certificate
    run: Run | None
    method: str
    parameters: dict[str, Any]
    backbone: str


def quality(db: Database) -> Quality:
    """The certificate, the current run and the configuration."""
    return Quality(
        certificate(db),
        runs.current_run(db),
        configuration.method(db),
        configuration.parameters(db),
        configuration.backbone(db),
    )


def card(data: DataSet, quality: Quality, files: list[str]) -> dict[str, Any]:
    """The card as one JSON value.

    quality  read together with `data`
    files    names of the files of the data set that it describes
    """
    table, certified, run = data.table, quality.certificate, quality.run
    cell_counts: list[Counter[tuple[str, str]]] = [Counter() for _ in table.classes]
    for _, cells in table.rows():
        for counter, cell in zip(cell_counts, cells, strict=True):
            counter[cell.state or "unknown", cell.source] += 1
    row_of_class = {row.class_id: row for row in certified.classes}
    return {
        "files": files,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "made_with": f"annotator {__version__}",
        "images": len(table.images),
        "images_missing": [
            {"image": image.name, "reason": table.missing[image.id]}
            for image in table.images
            if image.id in table.missing
        ],
        "unknown_cells": table.unknown,
        "filled_in_by_model": data.fill and asdict(data.fill) | {"in_words": data.fill.sentences()},
        "classes": [
            {
                "name": class_.name,
                "description": class_.description,
                "cells": [
                    {"state": state, "source": source, "cells": many}
                    for (state, source), many in sorted(counter.items())
                ],
                "certificate": _certified(row_of_class[class_.id]),
            }
            for class_, counter in zip(table.classes, cell_counts, strict=True)
        ],
        "model": {"method": quality.method, "parameters": quality.parameters, "backbone": quality.backbone}
        | ({"run": run.id, "version": run.version, "images_trained_on": run.images} if run else {"run": None}),
        "certificate": {
            "overall": _certified(certified.overall),
            "confidence": 0.95,
            "stopping_rule": certified.sentence(),
            "target": TARGET,
            "relabels": asdict(certified.relabels),
            "lacks": certified.lacks,
            "last_decision": certified.last_decision_id,
        },
        "audits": [asdict(audit) for audit in certified.audits],
        "how_audits_are_drawn": DRAWN,
        "assumed": list(ASSUMED),
        "limits": list(LIMITS),
    }


def paths(target: Path) -> list[Path]:
    """Where the card lies beside a data set that is written to `target`: for people, and for programs."""
    return [target.with_name(target.stem + ending) for ending in (".card.md", ".card.json")]


def _missing(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    names = ", ".join(row["image"] for row in rows[:MISSING_NAMED])
    rest = f" and {len(rows) - MISSING_NAMED:,} more" if len(rows) > MISSING_NAMED else ""
    return [
        f"{len(rows):,} images are missing: no file of the project can be shown for them any more. Their labels are in "
        f"the data set. They are {names}{rest}.",
        "",
    ]


def markdown(found: dict[str, Any]) -> str:
    """The card (of `card`) as people read it."""
    certified, model = found["certificate"], found["model"]
    run = f"run {model['run']}, version {model['version']}" if model["run"] else "no run yet"
    sources = Counter()
    for one in found["classes"]:
        for cell in one["cells"]:
            sources[cell["state"], cell["source"] or "nobody"] += cell["cells"]
    lines = [
        f"# Data card of {', '.join(found['files'])}",
        "",
        f"{found['images']:,} images, {len(found['classes']):,} classes. Made {found['made_at']} with "
        f"{found['made_with']}. Suggestions by the method `{model['method']}` on `{model['backbone']}` ({run}).",
        "",
        *_missing(found["images_missing"]),
        "## Where the labels came from",
        "",
        "| cells | from | how many |",
        "|---|---|---:|",
        *(f"| {state} | {source} | {many:,} |" for (state, source), many in sources.most_common()),
        "",
        *_filled(found["filled_in_by_model"]),
        "## How complete and how correct they are",
        "",
        f"{certified['stopping_rule']}. Estimates with 95 % intervals:",
        "",
        "| class | labeled | filled in | recall | precision | missing | audited |",
        "|---|---:|---:|---|---|---|---:|",
        *(_line(_safe(one["name"]), one["certificate"]) for one in found["classes"]),
        _line("**all classes**", certified["overall"]),
        "",
        *(f"* {sentence}" for sentence in certified["lacks"]),
        "",
        "## How this is known",
        "",
        found["how_audits_are_drawn"],
        "",
        *(
            f"* Audit {one['id']}: {one['cells']:,} cells, drawn "
            f"{time.strftime('%Y-%m-%d', time.gmtime(one['drawn_at']))}."
            for one in found["audits"]
        ),
        "",
        "Assumed:",
        "",
        *(f"* {sentence}" for sentence in found["assumed"]),
        "",
        "Limits:",
        "",
        *(f"* {sentence}" for sentence in found["limits"]),
    ]
    return "\n".join(lines) + "\n"


def _filled(fill: dict[str, Any] | None) -> list[str]:
    """The part about cells that the model filled in, with a table of the thresholds."""
    if fill is None:
        return []
    return [
        "## What the model filled in",
        "",
        *fill["in_words"],
        "",
        "| class | present from | cells | expected wrong | absent up to | cells | expected wrong | unknown |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {_safe(one['name'])} "
            f"| {_limit(one['present_from'])} | {one['present']:,} | {one['wrong_present']:,.1f} "
            f"| {_limit(one['absent_to'])} | {one['absent']:,} | {one['wrong_absent']:,.1f} | {one['unknown']:,} |"
            for one in fill["classes"]
        ),
        "",
    ]


def _limit(threshold: float | None) -> str:
    return "never" if threshold is None else f"{threshold:g}"


def _safe(name: str) -> str:
    """A name may hold what Markdown takes for the end of a cell."""
    return name.replace("|", "\\|")


def _certified(row: Row) -> dict[str, Any]:
    kept = ("people", "accepted", "unknown", "audited", "recall", "precision", "missing", "seconds")
    return {name: value for name, value in row.as_json().items() if name in kept}


def _line(name: str, row: dict[str, Any]) -> str:
    recall, precision, missing = (_interval(row[kind]) for kind in ("recall", "precision", "missing"))
    people, accepted = f"{row['people']:,}", f"{row['accepted']:,}"
    told = (name, people, accepted, percents(recall), percents(precision), counts(missing), f"{row['audited']:,}")
    return f"| {' | '.join(told)} |"


def _interval(told: dict[str, Any]) -> Interval:
    """What Interval.as_json told."""
    return Interval(told["estimate"], told["low"] or 0.0, told["high"] or 0.0, told.get("reason", ""))
