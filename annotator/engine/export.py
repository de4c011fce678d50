"""The data set as it stands: which cells are filled in, and by whom."""

import glob
import math
import os
from pathlib import Path

import numpy as np

from annotator.engine import data_card, suggest
from annotator.errors import AnnotatorError, did_you_mean
from annotator.records import PRESENT
from annotator.store import acceptances, classes, decisions, images, overview
from annotator.store.arrays import sweep
from annotator.store.database import Database
from annotator.store.formats import EXPORTS
from annotator.store.formats.table import UNKNOWN_CHOICES, Accepted, Table
from models.metrics import best_threshold

ABANDONED_AFTER = 3600.0  # seconds


def build_table(db: Database, unknown: str = "keep", threshold: float | None = None) -> Table:
    """Everything an export holds, read as it is now.

    unknown      keep: unknown cells stay empty; absent: they become 0 (marked "assumed"); model: the current run
                 fills them at the threshold (marked "model"; a class without a model stays unknown)
    threshold    None: the one that probably gives all labels their largest F1 (models.metrics.best_threshold)

    Raises AnnotatorError for an unknown choice, a threshold outside 0 .. 1, or `model` without a run.
    """
    if unknown not in UNKNOWN_CHOICES:
        raise AnnotatorError(f"--unknown cannot be {unknown!r}. {did_you_mean(unknown, UNKNOWN_CHOICES)}")
    if threshold is not None and not (math.isfinite(threshold) and 0 <= threshold <= 1):
        raise AnnotatorError(f"The threshold {threshold} is not a probability: it must lie between 0 and 1.")
    found = suggest.predictions(db)
    if unknown == "model" and found is None:
        raise AnnotatorError(
            "There is no run yet to fill unknown cells with. Label some images and run: "
            f"annotator worker {db.paths.project} --once"
        )
    everything, all_classes = images.all_images(db), classes.all_classes(db)
    labels = {(label.image_id, label.class_id): label for label in decisions.all_labels(db)}
    probabilities = suggest.aligned(found, everything, all_classes)
    if threshold is None:
        threshold = _best_threshold(everything, all_classes, labels, probabilities)
    flags = {row["id"]: row["note"] for row in overview.flagged(db)}
    return Table(everything, all_classes, labels, probabilities, unknown, threshold, flags, _accepted(db))


def _best_threshold(everything: list, all_classes: list, labels: dict, probabilities: np.ndarray | None) -> float:
    if probabilities is None:
        return 0.5
    open_ = np.ones(probabilities.shape, bool)
    rows = {one.id: row for row, one in enumerate(everything)}
    columns = {one.id: column for column, one in enumerate(all_classes)}
    known = [(rows[image_id], columns[class_id]) for image_id, class_id in labels if image_id in rows]
    if known:
        open_[tuple(np.array(known).T)] = False
    present = sum(label.state == PRESENT for label in labels.values())
    return best_threshold(present, probabilities[open_])


def _accepted(db: Database) -> dict[tuple[int, int], Accepted]:
    promises = {one.id: one for one in acceptances.acceptances(db)}
    return {
        cell: Accepted(state, score, one.run_id, one.threshold, one.precision, one.confidence)
        for cell, (state, made, score) in acceptances.accepted_cells(db).items()
        if (one := promises.get(made))
    }


def export(
    db: Database, target: Path, kind: str, unknown: str = "keep", threshold: float | None = None
) -> tuple[Table, list[Path]]:
    """Write the data set, and its data card beside it; returns what was written and where.

    Raises AnnotatorError for an unknown format, a target that is a folder, or whose folder is missing; DiskFull.
    """
    if kind not in EXPORTS:
        raise AnnotatorError(f"No format is called {kind!r}. {did_you_mean(kind, EXPORTS)}")
    if target.is_dir():
        raise AnnotatorError(f"{target} is a folder. Name a file in it, for example {target / f'labels.{kind}'}")
    if not target.parent.is_dir():
        raise AnnotatorError(f"There is no folder {target.parent} to write {target.name} to. Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise AnnotatorError(f"The folder {target.parent} may not be written. Check its rights.")
    table = build_table(db, unknown, threshold)
    sweep(target.parent, ABANDONED_AFTER, f".{glob.escape(target.stem)}.*")  # what an export that was killed has left
    written = EXPORTS[kind](table, target)
    return table, written + data_card.write(db, table, target, written)
