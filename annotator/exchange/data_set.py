"""Reading the data set as of one moment: every cell, and who or what gave its value."""

from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.formats.table import UNKNOWN_CHOICES, Accepted, Note, Table
from annotator.exchange.thresholds import Fill, Limits, expect, thresholds
from annotator.records import Class, Image
from annotator.snapshot import suggestions
from annotator.snapshot.predictions import read_predictions
from annotator.store import auto_accepted, classes, decisions, images, overview
from annotator.store.comments import comments
from annotator.store.database import Database


@dataclass(frozen=True)
class DataSet:
    """What is exported. fill: the cells that the model fills in, None without `--unknown model`."""

    table: Table
    fill: Fill | None


def data_set(db: Database, unknown: str = "keep", limits: Limits | None = None, raw: bool = False) -> DataSet:
    """Everything an export holds, read in one transaction.

    unknown    keep: unknown cells stay empty; absent: they become 0 (marked "assumed"); model: the current run fills in
               those it is sure enough of (marked "model"); the others, and classes without a model, stay unknown
    limits     thresholds, or the expected error they are derived from; None: EXPECTED_ERROR
    raw        values of a CSV that a spreadsheet takes for formulas are written unescaped

    Raises AnnotatorError for an unknown choice, impossible limits, or `model` without a run.
    """
    limits = limits or Limits()
    if problems := problems_of(unknown, limits):
        raise AnnotatorError("\n".join(problems))
    with db.reading():
        predictions = read_predictions(db)
        if unknown == "model" and predictions is None:
            raise AnnotatorError(
                "There is no run yet to fill unknown cells with. Label some images and run: "
                f"annotator worker {db.paths.project} --once"
            )
        all_images, all_classes = images.all_images(db), classes.all_classes(db)
        labels = {(label.image_id, label.class_id): label for label in decisions.all_labels(db)}
        notes = _notes(db)
        accepted, missing = _accepted(db), images.missing_ids(db)
    probabilities = suggestions.aligned(predictions, all_images, all_classes)
    fill, present_from, absent_to = None, np.full(len(all_classes), np.nan), np.full(len(all_classes), np.nan)
    if unknown == "model" and predictions is not None and probabilities is not None:
        open_ = _open(all_images, all_classes, [*labels, *accepted])
        calibrated = predictions.run.calibration is not None
        present_from, absent_to = thresholds(probabilities, open_, limits, calibrated)
        names = [class_.name for class_ in all_classes]
        fill = Fill(limits, calibrated, expect(names, probabilities, open_, present_from, absent_to))
    table = Table(
        all_images,
        all_classes,
        labels,
        probabilities,
        unknown,
        present_from,
        absent_to,
        notes,
        accepted,
        raw,
        missing,
    )
    return DataSet(table, fill)


def problems_of(unknown: str, limits: Limits) -> list[str]:
    """What is wrong with these choices, in sentences."""
    problems = limits.problems()
    if unknown not in UNKNOWN_CHOICES:
        problems.append(f"--unknown cannot be {unknown!r}. {did_you_mean(unknown, UNKNOWN_CHOICES)}")
    return problems


def _open(images: list[Image], classes: list[Class], known: list[tuple[int, int]]) -> np.ndarray:
    """(N, C) bool: the cells without an answer that were not auto-accepted either."""
    open_ = np.ones((len(images), len(classes)), bool)
    rows = {image.id: row for row, image in enumerate(images)}
    columns = {class_.id: column for column, class_ in enumerate(classes)}
    cells = [(rows[image_id], columns[class_id]) for image_id, class_id in known if image_id in rows]
    if cells:
        open_[tuple(np.array(cells).T)] = False
    return open_


def _notes(db: Database) -> dict[int, list[Note]]:
    """The flags and comments of all images that have any, the oldest first."""
    rows = [("flag", row) for row in overview.flagged(db)] + [("comment", row) for row in comments(db)]
    notes: dict[int, list[Note]] = {}
    for kind, row in sorted(rows, key=lambda note: note[1]["at"]):
        notes.setdefault(row["id"], []).append(Note(kind, row["note"], row["annotator"], row["at"]))
    return notes


def _accepted(db: Database) -> dict[tuple[int, int], Accepted]:
    by_id = {acceptance.id: acceptance for acceptance in auto_accepted.acceptances(db)}
    return {
        cell: Accepted(state, score, made.run_id, made.threshold, made.precision, made.confidence)
        for cell, (state, acceptance_id, score) in auto_accepted.accepted_cells(db).items()
        if (made := by_id.get(acceptance_id))
    }
