"""Reading the data set as of one moment, block by block: every cell, and the person or program that gave its value.

Everything is read in one transaction, which stays open while a format writes: people can go on answering, and the
export shows none of the new answers. Only the ids and splits of the images stay in memory; all else is read in blocks.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError, several
from annotator.exchange.exports import image_files, splits
from annotator.exchange.exports.cells import Filled, Reader
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.exports.thresholds import Fill, OpenCells, expect, thresholds
from annotator.exchange.formats.shared.camtrap_tables import deployments
from annotator.exchange.formats.view import BLOCK, Block, Taken, View
from annotator.records import MODEL
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import stored
from annotator.store.images import set_aside
from annotator.store.labels import blocks, event_labels

Progress = Callable[[int, int], None]
WRONG = "These choices cannot be used:"
CELLS_AT_ONCE = 1_000_000  # cells in a block, with about 40 bytes each


@dataclass(frozen=True, eq=False)
class DataSet:
    """The labels and images that an export writes.

    Attributes:
        view: For the formats; its card is empty.
        tallies: Counts over the whole data set.
        fill: The cells that the model fills in, None without `--unknown model`.
        splits: For each split: name, images, present (class -> images); [] without splits.
        said: Sentences about effects of the choices that a person should know.
        image_ids: (N,) int64.
    """

    view: View
    tallies: Tallies
    fill: Fill | None
    said: list[str]
    splits: list[dict[str, Any]]
    image_ids: np.ndarray


@contextmanager
def data_set(
    db: Database, choices: Choices | None = None, *, names_files: bool = False, progress: Progress | None = None
) -> Generator[DataSet]:
    """Yield the data set with these choices; it can be used within the `with` block, in this thread.

    Args:
        db: The project's database.
        choices: What the data set holds; None: the defaults.
        names_files: Images get names of files (Block.files).
        progress: Called with (images counted, images in all).

    Raises AnnotatorError that lists all impossible choices, or for `--unknown model` without a run.
    """
    choices = choices or Choices()
    if problems := choices.problems():
        raise several(WRONG, problems)
    with db.reading():
        yield _read(db, choices, names_files, progress or (lambda done, of: None))


def _read(db: Database, choices: Choices, names_files: bool, progress: Progress) -> DataSet:
    all_classes = {class_.name: class_ for class_ in classes.all_classes(db)}
    people, names = blocks.annotators(db), blocks.attribute_names(db)
    if problems := choices.problems_of_project(all_classes, people, names):
        raise several(WRONG, problems)
    chosen = [all_classes[name] for name in choices.classes or all_classes]
    reader = Reader(db, choices, chosen, people)
    if choices.unknown == "model" and reader.predictions is None:
        raise AnnotatorError(
            "There is no run yet to fill unknown cells with. Label some images and run: "
            f"annotator worker {db.paths.project} --once"
        )
    ids = blocks.image_ids(db)
    fill = None
    said: list[str] = []
    if aside := set_aside.image_ids(db):
        said.append(_aside_in_words(db, len(aside), choices.set_aside))
        if not choices.set_aside:
            ids = ids[~np.isin(ids, list(aside))]
    if choices.only_complete or choices.only_labeled or choices.unknown == "model":
        ids, open_cells = _choose(reader, ids, choices)
        if choices.unknown == "model" and reader.predictions is not None:
            calibrated = reader.predictions.run.calibration is not None
            limits = thresholds(open_cells, choices.limits, calibrated)
            reader.filled = Filled(MODEL, *limits)
            expected = expect([class_.name for class_ in chosen], open_cells, *limits)
            fill = Fill(choices.limits, calibrated, expected)
    if choices.unknown == "absent":
        reader.filled = Filled("absent")
    tallies = Tallies(len(chosen), reader.sources, keep_positives=bool(choices.splits))
    counted_images = 0
    reader.set_aside = 0  # `_choose` has counted these answers already
    for block in _blocks(reader, ids):
        tallies.add(block)
        counted_images += len(block.images)
        progress(counted_images, len(ids))
    if reader.set_aside:
        said.append(f"{counted(reader.set_aside, 'answer')} not chosen: these pairs count as unanswered.")
    split_names, split_of = splits.assign(db, choices, ids, tallies, progress)
    said += splits.said(split_names, split_of)
    files = image_files.Names(db, ids, choices) if names_files else None
    view = View(
        classes=chosen,
        images=len(ids),
        sources=reader.sources,
        annotators=reader.shown_annotators,
        splits=split_names,
        attributes=tuple(names),
        blocks=partial(_with_places, reader, ids, split_names, split_of, files),
        raw=choices.raw,
        columns=choices.columns,
        written=choices.images or "none",
        has=frozenset(tallies.has),
        taken=partial(_taken, db, reader),
        deployments=deployments(Path(choices.deployments)) if choices.deployments else {},
    )
    counts = splits.counts(split_names, split_of, tallies, [class_.name for class_ in chosen])
    return DataSet(view, tallies, fill, said, counts, ids)


def _aside_in_words(db: Database, images: int, included: bool) -> str:
    why = "; ".join(f"{reason}: {count:,}" for reason, count in set_aside.reasons(db))
    words = "in the export, as chosen" if included else "left out"
    return f"{counted(images, 'image')} set aside, {words} ({why})."


def _taken(db: Database, reader: Reader, image_ids: Sequence[int]) -> Taken:
    """Return when images were taken, and in what events; people have the names that the export gives them."""
    times: dict[int, float] = {}
    for start in range(0, len(image_ids), 500):
        some = [int(one) for one in image_ids[start : start + 500]]
        query = f"SELECT id, captured_at FROM image WHERE captured_at NOT NULL AND id IN ({','.join('?' * len(some))})"
        times |= dict(db.tuples(query, some))
    labels = {
        event: [replace(label, annotator=reader.shown(label.annotator)) for label in found]
        for event, found in event_labels.of_images(db, image_ids).items()
    }
    found = stored.of_images(db, image_ids)[:, 0].tolist() if stored.are_some(db) else []
    events = {image_id: stored.event_name(event) for image_id, event in zip(image_ids, found, strict=False) if event}
    # The names that sources gave come first: labels of events go by them.
    return Taken(times, events | event_labels.events_of(db, image_ids), labels)


def _choose(reader: Reader, ids: np.ndarray, choices: Choices) -> tuple[np.ndarray, OpenCells]:
    """Return the ids of the images that fulfil the choices, and the probabilities of their open cells."""
    open_cells = OpenCells(len(reader.classes) if choices.unknown == "model" else 0)
    kept = [np.zeros(0, np.int64)]
    for some in _parts(ids, len(reader.classes)):
        cells = reader.answers(some)
        keep = np.ones(len(some), bool)
        if choices.only_complete:
            keep &= (cells.states != 0).all(1)
        if choices.only_labeled:
            keep &= (cells.values == 1).any(1)
        kept.append(some[keep])
        if choices.unknown == "model":
            open_cells.add(reader.probabilities(some)[keep], cells.states[keep] == 0)
    return np.concatenate(kept), open_cells


def _blocks(reader: Reader, ids: np.ndarray) -> Iterator[Block]:
    for some in _parts(ids, len(reader.classes)):
        yield reader.block(some)


def _with_places(
    reader: Reader,
    ids: np.ndarray,
    split_names: tuple[str, ...],
    split_of: np.ndarray,
    files: "image_files.Names | None",
) -> Iterator[Block]:
    """Yield the blocks with the split and the file name of each image."""
    named = np.array([*split_names, ""], object)
    start = 0
    for block in _blocks(reader, ids):
        end = start + len(block.images)
        of_block = named[split_of[start:end]].tolist() if len(split_of) else block.splits
        yield replace(block, splits=of_block, files=files.of(block.images, start) if files else block.files)
        start = end


def _parts(ids: np.ndarray, classes: int) -> Iterator[np.ndarray]:
    size = max(1, min(BLOCK, CELLS_AT_ONCE // max(1, classes)))
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
