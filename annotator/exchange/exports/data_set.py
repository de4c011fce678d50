"""Reading of labels and their provenance block by block, in one transaction that new answers do not affect."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.exports import image_files, splits
from annotator.exchange.exports.block_reader import BlockReader, FillRule
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.exports.thresholds import Fill, OpenCells, compute_thresholds, estimate_fill
from annotator.exchange.formats.export_view import IMAGES_PER_BLOCK, Block, Captures, View
from annotator.exchange.formats.shared.camtrap_tables import read_deployments
from annotator.humanize import format_count
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.records import FILLED_BY_MODEL
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.images import excluded_images
from annotator.store.labels import event_labels, export_reads

INVALID_CHOICES_MESSAGE = "These choices cannot be used:"
MAX_CELLS_PER_BLOCK = 1_000_000  # cells in a block, with about 40 bytes each


@dataclass(frozen=True, eq=False)
class DataSet:
    """The labels and images that an export writes."""

    # data as formats receive it, with an empty data card
    view: View
    tallies: Tallies
    fill: Fill | None
    # effects of the choices, for the user
    sentences: list[str]
    # per split: name, images, present (number of images per class)
    splits: list[dict[str, Any]]
    # (N,) int64
    image_ids: np.ndarray


@contextmanager
def open_data_set(
    db: Database, choices: Choices | None = None, *, names_files: bool = False, progress: ProgressCallback | None = None
) -> Generator[DataSet]:
    """Yield the data set with these choices, for this thread and during the `with` block.

    `names_files` fills Block.files with portable image file names. Raises AnnotatorError that lists all impossible
    choices.
    """
    choices = choices or Choices()
    if problems := choices.problems():
        raise combine_problems(INVALID_CHOICES_MESSAGE, problems)
    with db.reading():
        yield _build_data_set(db, choices, names_files, progress or ignore_progress)


def _build_data_set(db: Database, choices: Choices, names_files: bool, progress: ProgressCallback) -> DataSet:
    all_classes = {class_.name: class_ for class_ in classes.load_active_classes(db)}
    people, names = export_reads.load_annotators(db), export_reads.load_attribute_names(db)
    if problems := choices.problems_of_project(all_classes, people, names):
        raise combine_problems(INVALID_CHOICES_MESSAGE, problems)
    chosen = [all_classes[name] for name in choices.classes or all_classes]
    reader = BlockReader(db, choices, chosen, people)
    if choices.unknown == "model" and reader.predictions is None:
        raise AnnotatorError(
            "There is no run yet to fill unknown cells with. Label some images and run: "
            f"annotator worker {db.paths.project} --once"
        )
    ids = export_reads.load_image_ids(db)
    fill = None
    said: list[str] = []
    if aside := excluded_images.load_image_ids(db):
        said.append(_describe_excluded_images(db, len(aside), choices.set_aside))
        if not choices.set_aside:
            ids = ids[~np.isin(ids, list(aside))]
    if choices.only_complete or choices.only_labeled or choices.unknown == "model":
        ids, open_cells = _select_images(reader, ids, choices)
        if choices.unknown == "model" and reader.predictions is not None:
            calibrated = reader.predictions.run.calibration is not None
            limits = compute_thresholds(open_cells, choices.limits, calibrated)
            reader.filled = FillRule(FILLED_BY_MODEL, *limits)
            expected = estimate_fill([class_.name for class_ in chosen], open_cells, *limits)
            fill = Fill(choices.limits, calibrated, expected)
    if choices.unknown == "absent":
        reader.filled = FillRule("absent")
    tallies = Tallies(len(chosen), reader.sources, keep_positives=bool(choices.splits))
    counted_images = 0
    reader.excluded_answers = 0  # `_choose` has counted these answers already
    for block in _read_blocks(reader, ids):
        tallies.add(block)
        counted_images += len(block.images)
        progress(counted_images, len(ids))
    if reader.excluded_answers:
        said.append(f"{format_count(reader.excluded_answers, 'answer')} not chosen: these pairs count as unanswered.")
    split_names, split_of = splits.assign(db, choices, ids, tallies, progress)
    said += splits.describe_splits(split_names, split_of)
    files = image_files.ExportFileNames(db, ids, choices) if names_files else None
    view = View(
        classes=chosen,
        images=len(ids),
        sources=reader.sources,
        annotators=reader.shown_annotators,
        splits=split_names,
        attributes=tuple(names),
        blocks=partial(_add_splits_and_files, reader, ids, split_names, split_of, files),
        raw=choices.raw,
        columns=choices.columns,
        image_mode=choices.images or "none",
        has=frozenset(tallies.has),
        load_captures=partial(_load_captures, db, reader),
        deployments=read_deployments(Path(choices.deployments)) if choices.deployments else {},
        options=choices.list_format_values(),
    )
    counts = splits.count_positives(split_names, split_of, tallies, [class_.name for class_ in chosen])
    return DataSet(view, tallies, fill, said, counts, ids)


def _describe_excluded_images(db: Database, images: int, included: bool) -> str:
    why = "; ".join(f"{reason}: {count:,}" for reason, count in excluded_images.count_by_reason(db))
    words = "in the export, as chosen" if included else "left out"
    return f"{format_count(images, 'image')} set aside, {words} ({why})."


def _load_captures(db: Database, reader: BlockReader, image_ids: Sequence[int]) -> Captures:
    times: dict[int, float] = {}
    for start in range(0, len(image_ids), 500):
        some = [int(one) for one in image_ids[start : start + 500]]
        query = f"SELECT id, captured_at FROM image WHERE captured_at NOT NULL AND id IN ({','.join('?' * len(some))})"
        times |= dict(db.tuples(query, some))
    labels = {
        event: [replace(label, annotator=reader.display_name(label.annotator)) for label in found]
        for event, found in event_labels.load_by_event(db, image_ids).items()
    }
    found = (
        stored_events.load_event_rows(db, image_ids)[:, 0].tolist() if stored_events.has_multi_image_events(db) else []
    )
    events = {
        image_id: stored_events.format_event_name(event)
        for image_id, event in zip(image_ids, found, strict=False)
        if event
    }
    # The names that sources gave come first: labels of events go by them.
    return Captures(times, events | event_labels.load_event_names(db, image_ids), labels)


def _select_images(reader: BlockReader, ids: np.ndarray, choices: Choices) -> tuple[np.ndarray, OpenCells]:
    open_cells = OpenCells(len(reader.classes) if choices.unknown == "model" else 0)
    kept = [np.zeros(0, np.int64)]
    for some in _split_ids(ids, len(reader.classes)):
        cells = reader.read_answers(some)
        keep = np.ones(len(some), bool)
        if choices.only_complete:
            keep &= (cells.states != 0).all(1)
        if choices.only_labeled:
            keep &= (cells.values == 1).any(1)
        kept.append(some[keep])
        if choices.unknown == "model":
            open_cells.add(reader.read_probabilities(some)[keep], cells.states[keep] == 0)
    return np.concatenate(kept), open_cells


def _read_blocks(reader: BlockReader, ids: np.ndarray) -> Iterator[Block]:
    for some in _split_ids(ids, len(reader.classes)):
        yield reader.read_block(some)


def _add_splits_and_files(
    reader: BlockReader,
    ids: np.ndarray,
    split_names: tuple[str, ...],
    split_of: np.ndarray,
    files: "image_files.ExportFileNames | None",
) -> Iterator[Block]:
    named = np.array([*split_names, ""], object)
    start = 0
    for block in _read_blocks(reader, ids):
        end = start + len(block.images)
        of_block = named[split_of[start:end]].tolist() if len(split_of) else block.splits
        yield replace(
            block, splits=of_block, files=files.list_file_names(block.images, start) if files else block.files
        )
        start = end


def _split_ids(ids: np.ndarray, classes: int) -> Iterator[np.ndarray]:
    size = max(1, min(IMAGES_PER_BLOCK, MAX_CELLS_PER_BLOCK // max(1, classes)))
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
