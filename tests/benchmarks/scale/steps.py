"""One step of `bench scale` in a process of its own.

    python -m benchmarks.scale.steps NAME FOLDER IMAGES CLASSES PHOTO_KILOBYTES

Two lines on standard output: `"measured"` when what counts is over, and a JSON object of figures. A step finds what
those before it left in FOLDER: images/, project/, arrays/.
"""

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import bulk

from annotator.errors import AnnotatorError
from annotator.records import ABSENT, PRESENT, Batch, Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.project_contents import ProjectContents
from annotator.store.labels import decisions
from annotator.store.runs import runs

Figures = dict[str, float]
Measured = Callable[[], None]  # called when what counts is over
TRAININGS_PER_STEP = 2  # the first, and one that goes on from what the first has kept in memory
CELLS_PER_DECISION = 500  # cells of a decision
SINGLE_DECISIONS, GRID_DECISIONS, TILES_PER_GRID = 300, 60, 24  # decisions of one cell, and of so many
MANY_KILOBYTES = 10  # of a file
FILES_PER_READ = 100  # files that a thread reads at a time


class Size(NamedTuple):
    """The size of a measured project: its folder, and the numbers of images, of classes and of kilobytes of a photo."""

    folder: Path
    images: int
    classes: int
    kilobytes: int

    @property
    def project(self) -> Path:
        """Return the project's folder of this size."""
        return self.folder / "project"

    @property
    def photos(self) -> Path:
        """Return the folder of the image files of this size."""
        return self.folder / "images"

    @property
    def arrays(self) -> Path:
        """Return the folder of the arrays of this size."""
        return self.folder / "arrays"


def photos(size: Size, report_measured: Measured) -> Figures:
    """Write the image files."""
    from benchmarks.scale.photo_files import write_photos

    write_photos(size.photos, size.images, size.kilobytes)
    if size.kilobytes >= MANY_KILOBYTES and hasattr(os, "sync"):
        os.sync()  # now, not while they are registered
    return {}


def rows(size: Size, report_measured: Measured) -> Figures:
    """Insert rows of the tables instead of image files."""
    size.photos.mkdir()
    db = Database(size.project, create=True)
    _enlarge_cache(db)
    bulk.add_images(db, size.folder, range(1, size.images + 1))
    return {}


def _enlarge_cache(db: Database) -> None:
    """Give the database a large page cache, for unmeasured bulk writes.

    Random contents and uuids fill the indexes in no order, which is slow in a small cache.
    """
    with db.writing() as sql:
        sql.execute(f"PRAGMA cache_size = -{bulk.CACHE_KILOBYTES}")


def register(size: Size, report_measured: Measured) -> Figures:
    """Find and register all files as `annotator init` does; also time reading and hashing them in as many threads."""
    from annotator.store.images.registration import register_folder
    from annotator.store.pictures.files import list_files

    started = time.perf_counter()
    db = Database(size.project, create=True)
    paths = list_files(size.photos, size.project).list_images()
    listed = time.perf_counter() - started
    registered = register_folder(db, size.photos, paths)
    seconds = time.perf_counter() - started
    if registered.added != size.images:
        raise AnnotatorError(f"{registered.added:,} of {size.images:,} images were registered: {registered.bad[:3]}")
    started = time.perf_counter()
    again = register_folder(db, size.photos, paths)
    unchanged = time.perf_counter() - started
    report_measured()
    if again.known != size.images:
        raise AnnotatorError(f"{again.known:,} of {size.images:,} images were known the second time.")
    figures = {"seconds": seconds, "listing_seconds": listed, "unchanged_seconds": unchanged}
    return figures | {"floor_seconds": _time_hashing(size.photos, paths)}


def _time_hashing(folder: Path, paths: Sequence[str]) -> float:
    def hash_files(some: Sequence[str]) -> None:
        for path in some:
            hashlib.sha256((folder / path).read_bytes()).hexdigest()

    started = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for _ in pool.map(
            hash_files, (paths[start : start + FILES_PER_READ] for start in range(0, len(paths), FILES_PER_READ))
        ):
            pass
    return time.perf_counter() - started


def embed(size: Size, report_measured: Measured) -> Figures:
    """Write made-up features in shards, with the function that embedding uses; return the seconds of writing."""
    from benchmarks.scale.synthetic_features import make_features

    size.arrays.mkdir()
    db = Database(size.project)
    least, most, count = db.tuples("SELECT min(id), max(id), count(*) FROM image")[0]
    if (least, most, count) != (1, size.images, size.images):
        raise AnnotatorError(f"The images have the ids {least} to {most}; 1 to {size.images} are wanted.")
    folder, contents = db.paths.features(DEFAULT_BACKBONE), ProjectContents(db)
    made = make_features(folder, contents, size.images, size.classes, arrays=size.arrays)
    return {"writing_seconds": made.seconds}


def answers(size: Size, report_measured: Measured) -> Figures:
    """Add the classes, and earlier answers of people: one label an image, grids, complete images."""
    from benchmarks.scale.synthetic_features import read_made_up

    db, made = Database(size.project), read_made_up(size.arrays)
    _enlarge_cache(db)
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(size.classes)])
    clicked, columns = np.nonzero((made.labels == PRESENT) & ~made.unbiased)
    clicked, first = np.unique(clicked, return_index=True)
    bulk.insert_clicks(db, clicked + 1, columns[first] + 1)
    for column in range(size.classes):
        chosen = np.flatnonzero(made.unbiased[:, column])
        states = np.where(made.truth[chosen, column], PRESENT, ABSENT)
        cells = [(int(row) + 1, column + 1, int(state), None) for row, state in zip(chosen, states, strict=True)]
        for start in range(0, len(cells), CELLS_PER_DECISION):
            decisions.save(db, [Batch(str(uuid.uuid4()), "Bench", "grid", cells[start : start + CELLS_PER_DECISION])])
    with db.writing() as sql:
        sql.execute("ANALYZE")
    return {}


def train(size: Size, report_measured: Measured) -> Figures:
    """Train the default method twice."""
    from benchmarks.scale.synthetic_features import read_made_up
    from benchmarks.scale.training_phases import measure_trainings

    return measure_trainings(Database(size.project), read_made_up(size.arrays), TRAININGS_PER_STEP, report_measured)


def rank(size: Size, report_measured: Measured) -> Figures:
    """Make the rankings of the current run again, as after each training."""
    from annotator.snapshot import rankings
    from annotator.store.database.arrays import open_array

    db = Database(size.project)
    run = runs.load_current_run(db)
    if run is None:
        raise AnnotatorError("There is no run to rank.")
    folder = db.paths.run(run.id)
    image_ids, probabilities = (
        np.asarray(open_array(folder / f"{name}.npy")) for name in ("image_ids", "probabilities")
    )
    started = time.perf_counter()
    ranked = rankings.build(db, run.last_decision_id, image_ids, np.array(run.class_ids), probabilities)
    (size.folder / "rankings").mkdir()
    rankings.save(size.folder / "rankings", ranked)
    return {"seconds": time.perf_counter() - started}


def decide(size: Size, report_measured: Measured) -> Figures:
    """Store single decisions and grids, each in a durable transaction; also time appending to a bare file."""
    db, chance = Database(size.project), np.random.default_rng(6)
    chosen = chance.integers(1, size.images + 1, SINGLE_DECISIONS).tolist()
    columns = chance.integers(1, size.classes + 1, SINGLE_DECISIONS).tolist()
    single = _time_decisions(
        db,
        [
            Decision(str(uuid.uuid4()), "label", "Ann", "click", image, column, PRESENT, milliseconds=900)
            for image, column in zip(chosen, columns, strict=True)
        ],
    )
    batches = []
    for column in columns[:GRID_DECISIONS]:
        images = chance.choice(size.images, TILES_PER_GRID, replace=False) + 1
        cells = [(image, column, PRESENT, None) for image in images.tolist()]
        batches.append(Batch(str(uuid.uuid4()), "Ann", "grid", cells))
    grids = _time_decisions(db, batches)
    report_measured()
    with (size.folder / "lines").open("ab") as file:
        started = time.perf_counter()
        for _ in range(SINGLE_DECISIONS):
            file.write(bytes(100))
            file.flush()
            os.fsync(file.fileno())
        floor = time.perf_counter() - started
    return {
        "seconds": single + grids,
        "per_second": SINGLE_DECISIONS / single,
        "cells_per_second": GRID_DECISIONS * TILES_PER_GRID / grids,
        "floor_per_second": SINGLE_DECISIONS / floor,
    }


def _time_decisions(db: Database, entries: Sequence[Decision | Batch]) -> float:
    started = time.perf_counter()
    for decision in entries:
        saved = decisions.save(db, [decision])
        if saved.refused:
            raise AnnotatorError(f"A decision was refused: {saved.refused}")
    return time.perf_counter() - started


def export(size: Size, report_measured: Measured) -> Figures:
    """Export all labels as csv, with the data card."""
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.export_writer import prepare_export, write_export

    target = size.folder / "labels.csv"
    started = time.perf_counter()
    with prepare_export(Database(size.project), target, "csv", Choices(images="none"), lossy=True) as prepared:
        write_export(prepared)
    return {"seconds": time.perf_counter() - started, "mb": target.stat().st_size / 1e6}


STEP_FUNCTIONS: dict[str, Callable[[Size, Measured], Figures]] = {
    step.__name__: step for step in (photos, rows, register, embed, answers, train, rank, decide, export)
}


def run_step(name: str, size: Size) -> None:
    """Run a step, and print its figures."""
    is_over = False

    def report_measured() -> None:
        nonlocal is_over
        if not is_over:
            sys.stdout.write('"measured"\n')
            sys.stdout.flush()
        is_over = True

    started, computed = time.perf_counter(), time.process_time()
    figures = STEP_FUNCTIONS[name](size, report_measured)
    report_measured()
    taken = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - computed}
    sys.stdout.write(json.dumps(taken | figures) + "\n")


if __name__ == "__main__":
    run_step(sys.argv[1], Size(Path(sys.argv[2]), *map(int, sys.argv[3:])))
