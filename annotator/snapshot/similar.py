"""How much images are like one image or several, by the features of the network in use: an order of the Gallery.

Similarity is the cosine of the angle between the roots of the features of two images, counted from their mean (without
that, features that are never negative make all images alike; with roots no single large feature decides). Up to
MOST_READ images it is exact, over the features as they are stored; with more, over the worker's int8 codes of the same
(store/features/image_codes.py), which lie in one file. Several examples are one direction, the mean of theirs (Rocchio,
"Relevance feedback in information retrieval", in: The SMART Retrieval System, 1971).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import positions
from annotator.store.database.database import Database
from annotator.store.features.cache import FeatureCache
from annotator.store.features.contents import ProjectContents
from annotator.store.features.image_codes import FOLDER, INDEX, KeptCodes, read_codes
from annotator.store.features.rows import Rows
from annotator.store.features.shards import shard_files
from annotator.store.networks import configuration

MOST_READ = 50_000  # images whose features are read for each example
ROWS = 4096  # read at once
MEAN_OF = 4096  # images whose mean the features are counted from
KEPT = 8  # questions whose similarities are kept
MOST_EXAMPLES = 16


@dataclass(eq=False)
class _Features:
    """The features of one network, as the page reads them; the lock is held while they are read."""

    cache: FeatureCache
    lock: threading.Lock = field(default_factory=threading.Lock)


def stamp(db: Database) -> tuple[str, int]:
    """Return what changes as images are analyzed: the network in use, and the number of files of its features."""
    name = configuration.backbone(db)
    return name, len(shard_files(db.paths.features(name)))


def similarities(db: Database, image_ids: np.ndarray, examples: Sequence[int]) -> np.ndarray:
    """Return how much images are like one example or several.

    Args:
        db: The project's database.
        image_ids: (N,) int64.
        examples: The ids of 1 to MOST_EXAMPLES images.

    Returns:
        (N,) float32 from -1 to 1, the examples themselves 1; nan for images that are not analyzed yet.

    Raises:
        AnnotatorError: An example is unknown, or none is analyzed yet.
    """
    wanted = tuple(sorted(set(examples)))
    ids, values = db.caches.get("similar", (*stamp(db), wanted), lambda: _read(db, wanted), KEPT)
    rows, known = positions(image_ids, ids)
    result = np.full(len(image_ids), np.nan, np.float32)
    result[known] = values[rows[known]]
    return result


def _read(db: Database, examples: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all analyzed images, ascending, and how much each is like the examples."""
    if len(examples) > MOST_EXAMPLES:
        raise AnnotatorError(f"{len(examples):,} examples are too many: take {MOST_EXAMPLES} at most.")
    marks = ",".join("?" * len(examples))
    there = {image_id for (image_id,) in db.tuples(f"SELECT id FROM image WHERE id IN ({marks})", list(examples))}
    if gone := [example for example in examples if example not in there]:
        raise AnnotatorError(f"There is no image {gone[0]}. Was it removed, or is the address of another project?")
    folder = db.paths.features(configuration.backbone(db))
    kept = db.caches.get("similar features", folder, lambda: _Features(FeatureCache(folder, ProjectContents(db))), 1)
    with kept.lock:
        kept.cache.refresh()
        ids, features = kept.cache.image_ids, kept.cache.features
    codes = _codes(db, folder) if len(ids) > MOST_READ else None
    if codes is not None:
        ids = codes.image_ids
    elif len(ids) > MOST_READ:
        raise AnnotatorError(
            f"With more than {MOST_READ:,} images likeness needs the codes that the worker writes once it has learned "
            "from answers; there are none yet. Use another order until then."
        )
    rows, known = positions(examples, ids, np.argsort(ids, kind="stable"))
    if not known.any():
        waiting = "The image is not analyzed yet" if len(ids) else "No image is analyzed yet"
        raise AnnotatorError(f"{waiting}, so nothing can be compared with it. The worker does that; try again soon.")
    if codes is not None:
        scales = codes.basis.scales.astype(np.float32)
        values = _cosines(codes.codes, rows[known], np.zeros(len(scales), np.float32), scales)
    else:
        roots = _Roots(features)
        mean = roots[:MEAN_OF].mean(0)
        values = _cosines(roots, rows[known], mean, np.ones(len(mean), np.float32))
    order = np.argsort(ids, kind="stable")
    return ids[order], values[order]


def _codes(db: Database, folder: Path) -> KeptCodes | None:
    """Return the stored codes, which are checked once for each index; None where there are none."""
    try:
        state = (folder / FOLDER / INDEX).stat()
    except OSError:
        return None
    return db.caches.get("similar codes", (folder, state.st_mtime_ns, state.st_size), lambda: read_codes(folder), 1)


class _Roots:
    """Rows (N, D) of features, of which the roots are read."""

    def __init__(self, features: Rows):
        self._features = features

    def __len__(self) -> int:
        return len(self._features)

    def __getitem__(self, rows: slice) -> np.ndarray:
        block = np.asarray(self._features[rows], np.float32)
        return np.sign(block) * np.sqrt(np.abs(block))


def _cosines(rows: np.ndarray | _Roots, examples: np.ndarray, centre: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the cosines of (rows - centre) * scales with the mean direction of the rows `examples`.

    Returns:
        (N,) float32, 1 at the examples.
    """
    wanted = np.zeros(len(centre), np.float32)
    for example in examples.tolist():
        row = (np.asarray(rows[example : example + 1], np.float32)[0] - centre) * scales
        wanted += row / max(float(np.linalg.norm(row)), 1e-12)
    values = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), ROWS):
        block = np.asarray(rows[start : start + ROWS], np.float32)
        block -= centre
        block *= scales
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
        values[start : start + ROWS] = block @ wanted / np.maximum(lengths, 1e-12)
    values /= max(float(np.linalg.norm(wanted)), 1e-12)
    np.clip(values, -1, 1, out=values)
    values[examples] = 1
    return values
