"""The data set as it stands: which cells are filled in, and by whom. The page and the command line both come here."""

import glob
import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from annotator.engine import data_card, destination, suggest
from annotator.engine.thresholds import Fill, Limits, expect, thresholds
from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.store import acceptances, classes, decisions, images, overview
from annotator.store.arrays import replacing, sweep
from annotator.store.database import Database
from annotator.store.files import content_of
from annotator.store.formats import EXPORTS
from annotator.store.formats.table import UNKNOWN_CHOICES, Accepted, File, Table

ABANDONED_AFTER = 3600.0  # seconds


@dataclass(frozen=True)
class DataSet:
    """What is exported. fill: what the model fills in, None unless that was asked for."""

    table: Table
    fill: Fill | None


@dataclass(frozen=True)
class Prepared:
    """An export that can be written: everything is read, and nothing stands in its way. card: the data card."""

    data: DataSet
    target: Path
    kind: str
    card: dict


def data_set(db: Database, unknown: str = "keep", limits: Limits | None = None, raw: bool = False) -> DataSet:
    """Everything an export holds, read as it is at one moment.

    unknown    keep: unknown cells stay empty; absent: they become 0 (marked "assumed"); model: the current run fills in
               those it is sure enough of (marked "model"); the others, and classes without a model, stay unknown
    limits     how sure it must be; None: as sure as EXPECTED_ERROR asks
    raw        values of a CSV that a spreadsheet takes for formulas are written as they are

    Raises AnnotatorError for an unknown choice, impossible limits, or `model` without a run.
    """
    limits = limits or Limits()
    if problems := _asked_wrongly(unknown, limits):
        raise AnnotatorError("\n".join(problems))
    with db.reading():
        predictions = suggest.predictions(db)
        if unknown == "model" and predictions is None:
            raise AnnotatorError(
                "There is no run yet to fill unknown cells with. Label some images and run: "
                f"annotator worker {db.paths.project} --once"
            )
        every, all_classes = images.all_images(db), classes.all_classes(db)
        labels = {(label.image_id, label.class_id): label for label in decisions.all_labels(db)}
        flags = {row["id"]: row["note"] for row in overview.flagged(db)}
        accepted, missing = _accepted(db), images.missing_ids(db)
    probabilities = suggest.aligned(predictions, every, all_classes)
    fill, limits_of_classes = None, (np.full(len(all_classes), np.nan),) * 2
    if unknown == "model":
        open_ = _open(every, all_classes, [*labels, *accepted])
        calibrated = predictions.run.calibration is not None
        limits_of_classes = thresholds(probabilities, open_, limits, calibrated)
        names = [one.name for one in all_classes]
        fill = Fill(limits, calibrated, expect(names, probabilities, open_, *limits_of_classes))
    table = Table(every, all_classes, labels, probabilities, unknown, *limits_of_classes, flags, accepted, raw, missing)
    return DataSet(table, fill)


def prepare(
    db: Database,
    target: Path,
    kind: str,
    unknown: str = "keep",
    limits: Limits | None = None,
    *,
    raw: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Check everything that could stand in the way of an export, and read what it holds; nothing is written.

    overwrite    also replace files that no export has written

    Raises AnnotatorError for an unknown format, for all that is wrong with the target at once, and as `data_set` does.
    """
    if kind not in EXPORTS:
        raise AnnotatorError(f"No format is called {kind!r}. {did_you_mean(kind, EXPORTS)}")
    paths = [*(file.path(target) for file in EXPORTS[kind]), *data_card.paths(target)]
    problems = _asked_wrongly(unknown, limits or Limits()) + destination.problems(paths, overwrite)
    if problems:
        raise several("Nothing was exported:", problems)
    with db.reading():
        data = data_set(db, unknown, limits, raw)
        card = data_card.card(db, data, [file.path(target).name for file in EXPORTS[kind]])
    return Prepared(data, target, kind, card)


def write(export: Prepared) -> list[Path]:
    """Write the data set and its data card beside it: all files or none; returns them. Raises DiskFull."""
    target, table = export.target, export.data.table
    sweep(target.parent, ABANDONED_AFTER, f".{glob.escape(target.stem)}.*")  # what an export that was killed has left
    written: dict[Path, str] = {}
    # Left in reverse order, so that the table is renamed last: whoever finds a new one finds the rest beside it.
    with ExitStack() as stack:

        def put(path: Path, write_to: Callable[[TextIO], object]) -> None:
            part = stack.enter_context(replacing(path))
            with part.open("x", newline="", encoding="utf-8") as file:
                write_to(file)
            written[path] = content_of(part)

        for one in EXPORTS[export.kind]:
            put(one.path(target), lambda file, one=one: one.write(table, file))
        card_md, card_json = data_card.paths(target)
        put(card_md, lambda file: file.write(data_card.markdown(export.card)))
        sealed = destination.sealed(export.card, card_json, {path.name: told for path, told in written.items()})
        put(card_json, lambda file: file.write(json.dumps(sealed, indent=2, ensure_ascii=False) + "\n"))
    return list(written)


def export(db: Database, target: Path, kind: str, *options, **named) -> tuple[DataSet, list[Path]]:
    """`prepare` and `write` in one; returns what was written and where."""
    prepared = prepare(db, target, kind, *options, **named)
    return prepared.data, write(prepared)


def content(file: File, table: Table) -> bytes:
    """What `write` writes to this file, to be downloaded."""
    text = io.StringIO(newline="")
    file.write(table, text)
    return text.getvalue().encode()


def _asked_wrongly(unknown: str, limits: Limits) -> list[str]:
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
    promises = {one.id: one for one in acceptances.acceptances(db)}
    return {
        cell: Accepted(state, score, one.run_id, one.threshold, one.precision, one.confidence)
        for cell, (state, made, score) in acceptances.accepted_cells(db).items()
        if (one := promises.get(made))
    }
