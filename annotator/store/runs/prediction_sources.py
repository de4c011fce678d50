"""Scores of external models: one named source each, one set of array files per version.

    predictions/<source>/<version>/image_ids.npy    (n,) int64, ascending
                                  /scores.npy       (n, C), nan for none, classes ascending as in the row
                                  /boxes.npy        optional

One row publishes a version, so readers see all or nothing. Classes also get scores of classes merged into them.
"""

import json
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlite_utils
from filelock import FileLock

from annotator.errors import AnnotatorError, did_you_mean
from annotator.indexing import CellIndex, Ids
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.store.database.arrays import open_array, replace_file_atomically
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.runs import prediction_boxes
from annotator.store.runs.prediction_boxes import NO_BOXES

PROBABILITY, SCORE = "probability", "score"
SCALES = (PROBABILITY, SCORE)
MAX_NAME_CHARACTERS = 60  # letters
CHUNK_ROWS = 8192  # images written or read at once
BLOCKS_PER_REMAP = 16  # blocks after which the file is mapped anew, so that its pages leave the memory
MAX_SOURCES = 8  # sources that a project may have at a time: each is a column more in every training
MAX_CACHED_VERSIONS = 2 * MAX_SOURCES
# the source of what a text-image network guesses from the names alone (name_texts.py)
CLASS_NAMES_SOURCE = "class names"
NAMES_OFF_SETTING = "names_off"  # the setting that says whether it does
NEWEST_GUESS_SETTING = "guessed_from_names"  # the setting that says what it guessed last

ScoreBlock = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Image ids (k,), class ids (c,), scores (k, c) float, nan where the source says nothing."""


@dataclass(frozen=True)
class PredictionSource:
    """An external model and the current version of its scores."""

    id: int
    name: str
    # PROBABILITY in [0, 1], or SCORE, which only orders within a class
    scale: str
    annotator: str
    # unix seconds
    added_at: float
    version: int
    # ascending, one per column
    class_ids: Sequence[int]
    images: int
    cells: int


@dataclass(frozen=True, eq=False)
class SourceScores(CellIndex):
    """The memory-mapped scores of one version of a source, (n, C), nan for none."""

    scores: np.ndarray
    source: PredictionSource


_SOURCE_COLUMNS_SQL = "id, name, scale, annotator, added_at, version, class_ids, images, cells"
_IS_LIVE_SQL = "version > 0 AND removed_at IS NULL"


def load_sources(db: Database) -> list[PredictionSource]:
    """Return the project's external models (prediction sources) in order of addition."""
    rows = db.tuples(f"SELECT {_SOURCE_COLUMNS_SQL} FROM prediction_source WHERE {_IS_LIVE_SQL} ORDER BY id")
    return [
        PredictionSource(id_, name, scale, annotator, at, version, json.loads(class_ids), images, cells)
        for id_, name, scale, annotator, at, version, class_ids, images, cells in rows
    ]


def find(db: Database, name: str) -> PredictionSource:
    """Return the external model with this name. Raises AnnotatorError if unknown."""
    named = {source.name: source for source in load_sources(db)}
    if name not in named:
        raise AnnotatorError(f"No predictions are called {name!r}. {did_you_mean(name, named)}")
    return named[name]


def load_versions(db: Database) -> tuple[tuple[int, int], ...]:
    """Return the (source, version) pairs of external models' scores for a new training."""
    return tuple(db.tuples(f"SELECT id, version FROM prediction_source WHERE {_IS_LIVE_SQL} ORDER BY id"))


def add(
    db: Database,
    name: str,
    scale: str,
    by: str,
    image_ids: np.ndarray,
    class_ids: Ids,
    blocks: Callable[[], Iterable[ScoreBlock]],
    *,
    boxes: np.ndarray = NO_BOXES,
    replace: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> PredictionSource:
    """Add an external model's scores to a new or existing source, replacing older scores of the same cells.

    Memory stays flat: blocks are written one by one.

    Args:
        scale: One of SCALES.
        by: Author of the change.
        image_ids: All images of the blocks, in any order.
        class_ids: All classes of the blocks, in any order.
        blocks: Returns the blocks, called several times. A cell's highest score counts.
        boxes: (n,) BOX_DTYPE, boxes of cells with a score in the blocks.
        replace: Delete all earlier scores of the source.
        progress: Called with (blocks written, 0).

    Raises:
        AnnotatorError: The name or scale is invalid, the source has another scale, or there are too many sources.
        DiskFull: The arrays cannot be written.
    """
    db.check_writable()
    with _lock_predictions(db):
        source_id, before = _begin_source(db, name, scale, by, replace)
        old = _open_source(db, before) if before and not replace else None
        if before and not replace and old is None:
            raise AnnotatorError(
                f"The arrays of the predictions {name!r} are gone or damaged. Add them whole: --replace"
            )
        rows = added = np.unique(np.asarray(image_ids, np.int64))
        columns = np.unique(np.asarray(class_ids, np.int64))
        if old is not None:
            rows, columns = np.union1d(rows, old.image_ids), np.union1d(columns, old.class_ids)
        index, version = CellIndex(rows, columns), _get_newest_version(db, source_id) + 1
        folder = db.paths.predictions(source_id, version)
        shutil.rmtree(folder, ignore_errors=True)
        make_folder_in_project(folder)
        try:
            with replace_file_atomically(folder / "scores.npy") as part:
                _write_version(db, part, np.dtype(np.float16 if scale == PROBABILITY else np.float32), index, old)
                _apply_blocks(part, index, blocks, old is not None, progress)
                images, cells = _count_all_scored(db, part, index, added, old)
            with replace_file_atomically(folder / "image_ids.npy") as part, part.open("wb") as file:
                np.save(file, rows, allow_pickle=False)
            earlier = (
                prediction_boxes.open_boxes(db.paths.predictions(source_id, old.source.version)) if old else NO_BOXES
            )
            prediction_boxes.write(folder, boxes, prediction_boxes.drop_rescored(earlier, blocks()))
            _publish_version(db, source_id, scale, by, version, columns, images, cells)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        for path in db.paths.predictions(source_id).iterdir():
            if path.name.isdigit() and int(path.name) < version - 1:  # a reader may be about to open the one before
                shutil.rmtree(path, ignore_errors=True)
    return find(db, name)


def remove_source(db: Database, name: str) -> PredictionSource:
    """Remove a source and its arrays. Raises AnnotatorError if unknown.

    Removing CLASS_NAMES_SOURCE also turns off predictions from class names, and discards the newest one.
    """
    with _lock_predictions(db):
        source = find(db, name)
        with db.writing() as sql:
            sql.execute("UPDATE prediction_source SET removed_at = ? WHERE id = ?", [time.time(), source.id])
            if name == CLASS_NAMES_SOURCE:
                db.set_setting(NAMES_OFF_SETTING, True)  # else the worker would add it again
                db.set_setting(NEWEST_GUESS_SETTING, {})
        shutil.rmtree(db.paths.predictions(source.id), ignore_errors=True)
    return source


def open_scores(db: Database, keys: Iterable[tuple[int, int]] | None = None) -> list[SourceScores]:
    """Return the readable scores of (source, version) pairs of external models (None: all current ones)."""
    keys = load_versions(db) if keys is None else keys
    return [scores for key in keys if (scores := _open_cached(db, key)) is not None]


def load_cell_scores(db: Database, image_ids: Ids, class_ids: Ids) -> list[tuple[PredictionSource, np.ndarray]]:
    """Return every external model with its scores of these cells: (n,) float64, nan for none."""
    every = open_scores(db)
    if not every:
        return []
    merged = load_merged_classes(db)
    wanted = np.asarray(class_ids, np.int64)
    result: list[tuple[PredictionSource, np.ndarray]] = []
    for scores in every:
        rows, known = scores.find_rows(image_ids)
        values = np.full(len(rows), np.nan)
        for class_id in set(wanted.tolist()):
            columns = _find_columns(scores, class_id, merged)
            at = np.flatnonzero(known & (wanted == class_id))
            for column in columns:
                values[at] = np.fmax(values[at], scores.scores[rows[at], column])
        result.append((scores.source, values))
    return result


def load_aligned_scores(db: Database, scores: SourceScores, image_ids: Ids, class_ids: Sequence[int]) -> np.ndarray:
    """Return an external model's scores of images and classes: (N, C) in the file's dtype, nan for none."""
    merged = load_merged_classes(db)
    rows, known = scores.find_rows(image_ids)
    result = np.full((len(rows), len(class_ids)), np.nan, scores.scores.dtype)
    columns = [_find_columns(scores, class_id, merged) for class_id in class_ids]
    used = sorted({column for several in columns for column in several})
    place = {column: at for at, column in enumerate(used)}
    to_rows = np.flatnonzero(known)
    for start in range(0, len(to_rows), CHUNK_ROWS):
        at = to_rows[start : start + CHUNK_ROWS]
        block = np.asarray(scores.scores[rows[at]])[:, used]
        for to, several in enumerate(columns):
            for column in several:
                result[at, to] = np.fmax(result[at, to], block[:, place[column]])
    return result


def log_scores(sql: sqlite_utils.Database, db: Database, answered: Sequence[tuple[int, int, int]]) -> None:
    """Store external models' scores of (decision, image, class) cells, in the transaction of the decisions."""
    if not answered:
        return
    decision_ids, image_ids, class_ids = np.array(answered, np.int64).T
    for source, values in load_cell_scores(db, image_ids, class_ids):
        at = np.flatnonzero(~np.isnan(values))
        rows = zip(decision_ids[at].tolist(), values[at].tolist(), strict=True)
        sql.conn.executemany(
            "INSERT OR IGNORE INTO prediction_score VALUES (?, ?, ?, ?)",
            [(decision_id, source.id, source.version, score) for decision_id, score in rows],
        )


def load_logged_scores(db: Database, image_id: int) -> dict[int, list[tuple[str, float]]]:
    """Return the logged scores of external models: decision -> [(source name, score)]."""
    result: dict[int, list[tuple[str, float]]] = {}
    for decision_id, name, score in db.tuples(
        """SELECT p.decision_id, s.name, p.score FROM decision d JOIN prediction_score p ON p.decision_id = d.id
        JOIN prediction_source s ON s.id = p.prediction_source_id WHERE d.image_id = ? ORDER BY d.id, s.id""",
        [image_id],
    ):
        result.setdefault(decision_id, []).append((name, round(score, 4)))
    return result


def _find_columns(scores: SourceScores, class_id: int, merged: dict[int, list[int]]) -> list[int]:
    columns, known = scores.find_columns([class_id, *merged.get(class_id, ())])
    return columns[known].tolist()


def load_merged_classes(db: Database) -> dict[int, list[int]]:
    """Return class -> classes merged into it, directly or indirectly."""
    into = dict(db.tuples("SELECT id, merged_into FROM class WHERE archived = 1 AND merged_into NOT NULL"))
    result: dict[int, list[int]] = {}
    for class_id in into:
        target, steps = into[class_id], 0
        while target in into and steps < len(into):
            target, steps = into[target], steps + 1
        result.setdefault(target, []).append(class_id)
    return result


def _open_cached(db: Database, key: tuple[int, int]) -> SourceScores | None:
    return db.caches.get("predictions from elsewhere", key, lambda: _open_version(db, key), MAX_CACHED_VERSIONS)


def _open_source(db: Database, source: PredictionSource) -> SourceScores | None:
    return _open_cached(db, (source.id, source.version))


def _open_version(db: Database, key: tuple[int, int]) -> SourceScores | None:
    source = next((source for source in load_sources(db) if (source.id, source.version) == key), None)
    if source is None:
        return None
    folder = db.paths.predictions(*key)
    try:
        image_ids, scores = (
            np.array(open_array(folder / "image_ids.npy", np.int64, 1)),
            open_array(folder / "scores.npy"),
        )
    except (OSError, ValueError, EOFError):
        return None
    if scores.shape != (len(image_ids), len(source.class_ids)):
        return None
    return SourceScores(image_ids, np.array(source.class_ids, np.int64), np.asarray(scores), source)


@contextmanager
def _lock_predictions(db: Database) -> Generator[None]:
    """Lock all predictions for one writing process."""
    folder = db.paths.predictions(0).parent
    make_folder_in_project(folder)
    with FileLock(folder / ".lock"):
        yield


def _begin_source(db: Database, name: str, scale: str, by: str, replace: bool) -> tuple[int, PredictionSource | None]:
    """Return the id of a new or existing external model, and its current state."""
    if scale not in SCALES:
        raise AnnotatorError(f"There is no scale {scale!r}. {did_you_mean(scale, SCALES)}")
    if not (name.isprintable() and name == name.strip() and 0 < len(name) <= MAX_NAME_CHARACTERS):
        raise AnnotatorError(
            f"Predictions cannot be called {name[:80]!r}: a name has 1 to {MAX_NAME_CHARACTERS} letters, no blank at "
            "its ends and no line breaks."
        )
    live = load_sources(db)
    before = next((source for source in live if source.name == name), None)
    if before is None and len(live) >= MAX_SOURCES:
        raise AnnotatorError(
            f"There are {len(live)} sources of predictions; {MAX_SOURCES} can be used at a time. Remove one: annotator "
            f"predictions {db.paths.project} --remove {live[0].name!r}"
        )
    if before and before.scale != scale and not replace:
        raise AnnotatorError(
            f"The predictions {name!r} hold a {before.scale} of each cell, not a {scale}. Say --scale {before.scale}, "
            "give these another name, or --replace all of them."
        )
    with db.writing() as sql:
        row = sql.execute("SELECT id FROM prediction_source WHERE name = ?", [name]).fetchone()
        if row:
            return row[0], before
        values = [name, scale, by, time.time()]
        insert = "INSERT INTO prediction_source (name, scale, annotator, added_at) VALUES (?, ?, ?, ?)"
        return get_inserted_id(sql.execute(insert, values)), None


def _get_newest_version(db: Database, source_id: int) -> int:
    return db.value("SELECT version FROM prediction_source WHERE id = ?", [source_id])


def _publish_version(
    db: Database, source_id: int, scale: str, by: str, version: int, columns: np.ndarray, images: int, cells: int
) -> None:
    with db.writing() as sql:
        sql.execute(
            """UPDATE prediction_source SET version = ?, class_ids = ?, images = ?, cells = ?, scale = ?,
            annotator = ?, added_at = ?, removed_at = NULL WHERE id = ?""",
            [version, json.dumps(columns.tolist()), images, cells, scale, by, time.time(), source_id],
        )


def _write_version(db: Database, path: Path, dtype: np.dtype, index: CellIndex, old: SourceScores | None) -> None:
    """Write a version's score file with the previous version's scores, and nan in new cells."""
    before = db.paths.predictions(old.source.id, old.source.version) / "scores.npy" if old else None
    if (
        old
        and before
        and np.array_equal(old.image_ids, index.image_ids)
        and np.array_equal(old.class_ids, index.class_ids)
    ):
        shutil.copyfile(before, path)
        return
    shape = (len(index.image_ids), len(index.class_ids))
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, shape[0], CHUNK_ROWS):
            ids = index.image_ids[start : start + CHUNK_ROWS]
            if old and before:  # mapped anew for each block
                file.write(old.align(open_array(before), ids, index.class_ids).astype(dtype, copy=False).tobytes())
            else:
                file.write(np.full((len(ids), shape[1]), np.nan, dtype).tobytes())


def _apply_blocks(
    path: Path, index: CellIndex, blocks: Callable[[], Iterable[ScoreBlock]], had: bool, progress: ProgressCallback
) -> None:
    """Write the blocks into the scores at `path`, replacing older scores if `had`."""
    scores = np.load(path, mmap_mode="r+")
    largest = float(np.finfo(scores.dtype).max)
    number = 0
    for forgets in (True, False) if had else (False,):
        for image_ids, class_ids, values in blocks():
            rows, columns = index.find_rows(image_ids)[0], index.find_columns(class_ids)[0]
            clipped = np.clip(values, -largest, largest).astype(scores.dtype)
            place = np.ix_(rows, columns)
            if forgets:
                i, j = np.nonzero(~np.isnan(values))
                scores[rows[i], columns[j]] = np.nan
            elif len(np.unique(rows)) == len(rows):
                scores[place] = np.fmax(scores[place], clipped)
            else:
                np.fmax.at(scores, place, clipped)
            number += 1
            progress(number, 0)
            if number % BLOCKS_PER_REMAP == 0:
                del scores
                scores = np.load(path, mmap_mode="r+")


def _count_scored(path: Path, rows: np.ndarray) -> np.ndarray:
    count = np.zeros(2, np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        known = ~np.isnan(open_array(path)[rows[start : start + CHUNK_ROWS]])
        count += known.any(1).sum(), known.sum()
    return count


def _count_all_scored(
    db: Database, path: Path, index: CellIndex, image_ids: np.ndarray, old: SourceScores | None
) -> list[int]:
    count = _count_scored(path, index.find_rows(image_ids)[0])
    if old is not None:
        rows, known = old.find_rows(image_ids)
        before = db.paths.predictions(old.source.id, old.source.version) / "scores.npy"
        count += np.array([old.source.images, old.source.cells]) - _count_scored(before, rows[known])
    return count.tolist()
