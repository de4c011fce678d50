"""The data set at one moment: which cells are filled in, and by whom."""

from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.formats.table import UNKNOWN_CHOICES, Accepted, Table
from annotator.exchange.thresholds import Fill, Limits, expect, thresholds
from annotator.snapshot import suggestions
from annotator.snapshot.predictions import read_predictions
from annotator.store import auto_accepted, classes, decisions, images, overview
from annotator.store.database import Database


@dataclass(frozen=True)
class DataSet:
    """What is exported. fill: what the model fills in, None unless that was asked for."""

    table: Table
    fill: Fill | None


def data_set(db: Database, unknown: str = "keep", limits: Limits | None = None, raw: bool = False) -> DataSet:
    """Everything an export holds, read as it is at one moment.

    unknown    keep: unknown cells stay empty; absent: they become 0 (marked "assumed"); model: the current run fills in
               those it is sure enough of (marked "model"); the others, and classes without a model, stay unknown
    limits     how sure it must be; None: as sure as EXPECTED_ERROR asks
    raw        values of a CSV that a spreadsheet takes for formulas are written as they are

    Raises AnnotatorError for an unknown choice, impossible limits, or `model` without a run.
    """
    limits = limits or Limits()
    if problems := asked_wrongly(unknown, limits):
        raise AnnotatorError("\n".join(problems))
    with db.reading():
        predictions = read_predictions(db)
        if unknown == "model" and predictions is None:
            raise AnnotatorError(
                "There is no run yet to fill unknown cells with. Label some images and run: "
                f"annotator worker {db.paths.project} --once"
            )
        every, all_classes = images.all_images(db), classes.all_classes(db)
        labels = {(label.image_id, label.class_id): label for label in decisions.all_labels(db)}
        flags = {row["id"]: row["note"] for row in overview.flagged(db)}
        accepted, missing = _accepted(db), images.missing_ids(db)
    probabilities = suggestions.aligned(predictions, every, all_classes)
    fill, limits_of_classes = None, (np.full(len(all_classes), np.nan),) * 2
    if unknown == "model":
        open_ = _open(every, all_classes, [*labels, *accepted])
        calibrated = predictions.run.calibration is not None
        limits_of_classes = thresholds(probabilities, open_, limits, calibrated)
        names = [one.name for one in all_classes]
        fill = Fill(limits, calibrated, expect(names, probabilities, open_, *limits_of_classes))
    table = Table(every, all_classes, labels, probabilities, unknown, *limits_of_classes, flags, accepted, raw, missing)
    return DataSet(table, fill)


def asked_wrongly(unknown: str, limits: Limits) -> list[str]:
    problems = limits.problems()
    if unknown not in UNKNOWN_CHOICES:
        problems.append(f"--unknown cannot be {unknown!r}. {did_you_mean(unknown, UNKNOWN_CHOICES)}")
    return problems


def _open(every: list, all_classes: list, known: list[tuple[int, int]]) -> np.ndarray:
    """(N, C) bool: the cells that nobody has answered, and that were not accepted."""
    open_ = np.ones((len(every), len(all_classes)), bool)
    rows = {one.id: row for row, one in enumerate(every)}
    columns = {one.id: column for column, one in enumerate(all_classes)}
    cells = [(rows[image_id], columns[class_id]) for image_id, class_id in known if image_id in rows]
    if cells:
        open_[tuple(np.array(cells).T)] = False
    return open_


def _accepted(db: Database) -> dict[tuple[int, int], Accepted]:
    promises = {one.id: one for one in auto_accepted.acceptances(db)}
    return {
        cell: Accepted(state, score, one.run_id, one.threshold, one.precision, one.confidence)
        for cell, (state, made, score) in auto_accepted.accepted_cells(db).items()
        if (one := promises.get(made))
    }
