"""Probability files of a run's versions, each with only its changed classes.

    runs/<id>/probabilities.npy          (N, C) float16, of the training
    runs/<id>/v<n>/columns.npy           (k, N) float16, changed classes
    runs/<id>/v<n>/columns_of.npy        (C + 1, 2) int64, where each class is stored
    runs/<id>/v<n>/probabilities.npy     or all classes

A row of columns_of.npy has a version and the row of its columns.npy, or -1 for the base version's probabilities.npy.
The last row has the base version. One answer at a million images thus writes 2 MB instead of 200.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from annotator.settings import Paths
from annotator.store.database.arrays import open_array, save_array, save_rows
from annotator.store.database.database import Database
from spmll.rows import Rows

WHOLE_FILE, COLUMNS_FILE, COLUMN_PLACES_FILE = "probabilities.npy", "columns.npy", "columns_of.npy"
MAX_MAPPED_VERSIONS = 4  # arrays of all classes
WHOLE_VERSION_RATIO = 4  # a version that changes more than one column in so many is written with all columns


class LayeredProbabilities:
    """A read-only array of probabilities (N, C), some columns of which are in other arrays.

    Indexing by one row and one column key returns a copy.
    """

    def __init__(self, base: np.ndarray, columns: dict[int, np.ndarray]):
        """Replace some columns of `base`, (N, C), with `columns`: column -> (N,)."""
        self.base, self.columns = base, columns
        self.shape, self.dtype, self.ndim = base.shape, base.dtype, base.ndim
        self._is_elsewhere = np.zeros(self.shape[1], bool)
        self._is_elsewhere[list(columns)] = True

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def __getitem__(self, key: Any, /) -> np.ndarray:
        rows, columns = cast(tuple[Any, Any], key) if isinstance(key, tuple) else (key, slice(None))
        places = np.asarray(cast(np.ndarray, np.arange(self.shape[1])[columns]))
        if not places.ndim:
            return self._get_column(int(places))[rows]
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self._get_product(rows, places)
        numbers: np.ndarray = np.asarray(rows)
        if numbers.ndim == 2 and numbers.shape[1] == 1 and places.shape[0] == 1:  # numpy.ix_
            return self._get_product(numbers[:, 0], places[0])
        return self._get_cells(numbers, places)

    def _get_column(self, column: int) -> np.ndarray:
        return self.columns[column] if column in self.columns else self.base[:, column]

    def _get_product(self, rows: Any, columns: np.ndarray) -> np.ndarray:
        """Return the probabilities of these rows and columns, as (n, c), or (c,) for one row."""
        elsewhere = self._is_elsewhere[columns]
        if not elsewhere.any():
            return np.array(self.base[rows][..., columns])
        count = np.empty(self.shape[0], np.bool_)[rows].shape
        found = np.empty((*count, len(columns)), self.dtype)
        if len(columns) == self.shape[1] and not elsewhere.all():
            found[...] = self.base[rows][..., columns]
        elif not elsewhere.all():
            found[..., ~elsewhere] = self.base[rows][..., columns[~elsewhere]]
        for place in np.flatnonzero(elsewhere).tolist():
            found[..., place] = self.columns[int(columns[place])][rows]
        return found

    def _get_cells(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return one probability per pair of row and column, broadcast."""
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows, columns = np.broadcast_arrays(rows, columns)
        found = np.array(self.base[rows, columns])
        for column in np.unique(columns[self._is_elsewhere[columns]]).tolist():
            at = columns == column
            found[at] = self.columns[column][rows[at]]
        return found


def open_probabilities(db: Database, run_id: int, version: int) -> Rows:
    """Return mapped probabilities (N, C) float16. Raises OSError, ValueError if damaged."""
    place = _locate_columns(db.paths, run_id, version)
    if place is None:
        return _open_whole(db, run_id, version)
    base, versions, places = place
    whole = _open_whole(db, run_id, base)
    if whole.ndim != 2 or whole.shape[1] != len(versions):
        raise ValueError(f"version {version} of run {run_id} has {len(versions)} columns, and version {base} others")
    cached = db.caches.get("columns of probabilities", run_id, _create_empty_columns, 1)
    before, stored = cached.copy(), _create_empty_columns()
    columns: dict[int, np.ndarray] = {}
    for column in np.flatnonzero(places >= 0).tolist():
        made, at = int(versions[column]), int(places[column])
        if made not in stored:
            opened = before.get(made)
            stored[made] = (
                np.asarray(open_array(db.paths.run(run_id, made) / COLUMNS_FILE, np.float16, 2))
                if opened is None
                else opened
            )
        if stored[made].shape[1:] != whole.shape[:1] or at >= len(stored[made]):
            raise ValueError(f"version {version} of run {run_id}: column {column} is not in version {made}")
        columns[column] = stored[made][at]
    for made in before.keys() - stored.keys():  # gone files would keep their room on the disk
        cached.pop(made, None)
    cached.update(stored)
    return LayeredProbabilities(whole, columns)


def save_columns(
    db: Database, run_id: int, version: int, before: int, columns: Sequence[int], values: np.ndarray
) -> None:
    """Write a version that differs from version `before` in some columns. Raises DiskFull.

    Args:
        columns: (k,) changed columns.
        values: (k, N) float16.
    """
    folder = db.paths.run(run_id, version)
    place = _locate_columns(db.paths, run_id, before)
    if place is None:
        classes = _open_whole(db, run_id, before).shape[1]
        place = before, np.full(classes, before), np.full(classes, -1)
    base, versions, places = place
    versions, places = versions.copy(), places.copy()
    versions[list(columns)], places[list(columns)] = version, np.arange(len(columns))
    (folder / WHOLE_FILE).unlink(missing_ok=True)  # of a worker that was killed before it published this version
    save_array(folder / COLUMNS_FILE, values, sync=False)
    save_array(folder / COLUMN_PLACES_FILE, np.stack([np.append(versions, base), np.append(places, -1)], 1), sync=False)


def save_whole(db: Database, run_id: int, version: int, rows: Rows) -> None:
    """Write a version with all columns. Raises DiskFull."""
    save_rows(db.paths.run(run_id, version) / WHOLE_FILE, rows, np.float16, sync=False)


def should_write_whole(db: Database, run_id: int, version: int, columns: int) -> bool:
    """Return whether the next version, with `columns` changed columns, should store all columns.

    It should after many changes (WHOLE_VERSION_RATIO), or if files would hold over two columns per class.
    """
    place = _locate_columns(db.paths, run_id, version)
    if place is None:
        return WHOLE_VERSION_RATIO * columns > _open_whole(db, run_id, version).shape[1]
    _, versions, places = place
    stored = sum(
        len(open_array(db.paths.run(run_id, made) / COLUMNS_FILE)) for made in set(versions[places >= 0].tolist())
    )
    return WHOLE_VERSION_RATIO * columns > len(versions) or stored + columns > 2 * len(versions)


def find_needed_versions(paths: Paths, run_id: int, version: int) -> set[int]:
    """Return the versions whose files are needed to read this one."""
    try:
        place = _locate_columns(paths, run_id, version)
    except (OSError, ValueError):  # damaged: a training follows
        place = None
    if place is None:
        return {version}
    base, versions, places = place
    return {version, base, *versions[places >= 0].tolist()}


def _locate_columns(paths: Paths, run_id: int, version: int) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return (base version, version per column (C,), place per column (C,)), or None if all columns are stored."""
    folder = paths.run(run_id, version)
    if version == 0 or (folder / WHOLE_FILE).exists():
        return None
    stored = np.array(open_array(folder / COLUMN_PLACES_FILE))
    if stored.ndim != 2 or stored.shape[1] != 2 or stored.dtype != np.int64 or not len(stored):
        raise ValueError(f"{folder / COLUMN_PLACES_FILE} is damaged")
    return int(stored[-1, 0]), stored[:-1, 0], stored[:-1, 1]


def _create_empty_columns() -> dict[int, np.ndarray]:
    return {}


def _open_whole(db: Database, run_id: int, version: int) -> np.ndarray:
    return db.caches.get(
        "whole probabilities",
        (run_id, version),
        lambda: np.asarray(open_array(db.paths.run(run_id, version) / WHOLE_FILE, np.float16, 2)),
        MAX_MAPPED_VERSIONS,
    )
