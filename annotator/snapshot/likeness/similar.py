"""How much images are like one image or several, by the features of the network in use: an order of the Gallery.

Similarity is the cosine of the angle between the roots of the features of two images, counted from their mean (without
that, features that are never negative make all images alike; with roots no single large feature decides). Up to
MOST_READ images it is exact, over the features as they are stored; with more, over the worker's int8 codes of the same
(store/features/image_codes.py), which lie in one file, and exact again for the likest of these (similar_exactly.py).
Several examples are one direction, the mean of theirs (Rocchio, "Relevance feedback in information retrieval", in: The
SMART Retrieval System, 1971). A picture from elsewhere, a part of an image, and words are looked at by the worker
(store/networks/search_examples.py).
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import positions
from annotator.snapshot.likeness.similar_exactly import MEAN_OF, Exact, root
from annotator.store.database.database import Database
from annotator.store.features.basis import StoredBasis
from annotator.store.features.cache import FeatureCache
from annotator.store.features.contents import ProjectContents
from annotator.store.features.image_codes import FOLDER, INDEX, read_codes
from annotator.store.features.rows import Rows
from annotator.store.features.shards import shard_files
from annotator.store.networks import configuration, search_examples
from annotator.store.networks.search_examples import Answer

MOST_READ = 50_000  # images whose features are read for each example
ROWS = 2048  # read at once
PART = 1 << 17  # rows that one thread takes
THREADS = 2  # more gain little: memory is read as fast as it goes
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


def is_possible(db: Database) -> bool:
    """Return whether any image is analyzed with the network in use."""
    name, files = stamp(db)
    return files > 0 or (db.paths.features(name) / FOLDER / INDEX).exists()


def similarities(db: Database, image_ids: np.ndarray, examples: Sequence[int], other: str = "") -> np.ndarray:
    """Return how much images are like one example or several.

    Args:
        db: The project's database.
        image_ids: (N,) int64.
        examples: The ids of 1 to MOST_EXAMPLES images; not used with `other`.
        other: The id of an example that is no image of the project (store/networks/search_examples.py).

    Returns:
        (N,) float32 from -1 to 1, the examples themselves 1; nan for images that are not analyzed yet. For words from 0
        to 1, the image that they fit best; nan for images that were not analyzed when the worker compared them.

    Raises:
        AnnotatorError: An example is unknown, or none is analyzed yet.
    """
    wanted = () if other else tuple(sorted(set(examples)))
    ids, values = db.caches.get(
        "similar", (*stamp(db), wanted, other), lambda: _of_other(db, other) if other else _read(db, wanted), KEPT
    )
    if np.array_equal(ids, image_ids):  # the usual case of a whole list: looking a million ids up takes longer
        return values.copy()
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
    space = _space(db)
    rows, known = positions(examples, space.image_ids)
    if not known.any():
        waiting = "The image is not analyzed yet" if len(space.image_ids) else "No image is analyzed yet"
        raise AnnotatorError(f"{waiting}, so nothing can be compared with it. The worker does that; try again soon.")
    values = space.cosines(space.direction(rows[known]))
    if space.exact is not None:
        space.exact.correct(values, space.exact.direction(rows[known]))
    values[rows[known]] = 1
    return space.image_ids, values


def vectors(db: Database, image_ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return those of some images that are analyzed, (n,) int64, and their directions (n, K) float32 of length 1."""
    space, ids = _space(db), np.asarray(image_ids, np.int64)
    rows, known = positions(ids, space.image_ids)
    return ids[known], space.directions(rows[known])


def is_of_words(db: Database, key: str) -> bool:
    """Return whether an example from elsewhere is words."""
    asked = search_examples.find(db, key)
    return asked is not None and asked.kind == search_examples.WORDS


def _of_other(db: Database, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all analyzed images, ascending, and how much each is like an example from elsewhere."""
    found = search_examples.read(db, key)
    if found.image_ids is not None and found.values is not None:
        return found.image_ids, _spread(found.values)
    space = _space(db)
    if not len(space.image_ids):
        raise AnnotatorError("No image is analyzed yet, so nothing can be compared. The worker does that; try again.")
    values = space.cosines(space.direction_of(found))
    if space.exact is not None and found.vector is not None:
        space.exact.correct(values, space.exact.direction_of(found.vector))
    return space.image_ids, values


def _spread(values: np.ndarray) -> np.ndarray:
    """Return cosines with words, which hardly differ, from 0 to 1: half precision sorts them."""
    lowest, highest = float(values.min()), float(values.max())
    return (values - lowest) / max(highest - lowest, 1e-12)


def _space(db: Database) -> "_Space":
    """Return all analyzed images in the space in which they are compared."""
    folder = db.paths.features(configuration.backbone(db))
    if coded := _coded(db, folder):
        return coded
    kept = db.caches.get("similar features", folder, lambda: _Features(FeatureCache(folder, ProjectContents(db))), 1)
    with kept.lock:
        kept.cache.refresh()
        ids, features = kept.cache.image_ids, kept.cache.features
    if len(ids) > MOST_READ:
        raise AnnotatorError(
            f"With more than {MOST_READ:,} images likeness needs the codes that the worker writes once it has learned "
            "from answers; there are none yet. Use another order until then."
        )
    roots = _Roots(features)
    mean = roots[:MEAN_OF].mean(0) if len(ids) else np.zeros(0, np.float32)
    return _Space(ids, roots, mean)


def _coded(db: Database, folder: Path) -> "_Space | None":
    """Return the stored codes, which are checked once for each index; None where there are none, or few."""
    try:
        state = (folder / FOLDER / INDEX).stat()
    except OSError:
        return None

    def read() -> _Space | None:
        codes = read_codes(folder)
        if codes is None or len(codes.image_ids) <= MOST_READ:
            return None
        scales = codes.basis.scales.astype(np.float32)
        space = _Space(codes.image_ids, codes.codes, np.zeros(len(scales), np.float32), scales, codes.basis)
        space.exact = Exact.build(folder, codes, space.order)
        return space

    return db.caches.get("similar codes", (folder, state.st_mtime_ns, state.st_size), read, 1)


class _Space:
    """Images as vectors (rows - centre) * scales, of which the lengths are computed once.

    All are compared, some thousand rows at a time, which stay in the cache of a core.

    Attributes:
        image_ids: (N,) int64, ascending.
        order: (N,) int64, the row of each of these images; None: their order is that of the rows.
        exact: Of codes: the features that they were made of.
    """

    def __init__(
        self,
        ids: np.ndarray,
        rows: "np.ndarray | _Roots",
        centre: np.ndarray,
        scales: np.ndarray | None = None,
        basis: StoredBasis | None = None,
    ):
        """Keep the images.

        Args:
            ids: (N,) int64.
            rows: (N, K): codes, or roots of features.
            centre: (K,) float32, in the form of `rows`.
            scales: (K,) float32; None: all 1.
            basis: Of codes: their axes.
        """
        ascending = bool((np.diff(ids) > 0).all())
        self.order = None if ascending else np.argsort(ids, kind="stable")
        self.image_ids = ids if self.order is None else ids[self.order]
        self._rows, self._centre, self._basis = rows, centre, basis
        self._scales = np.ones(len(centre), np.float32) if scales is None else scales
        self._lengths: np.ndarray | None = None
        self.exact: Exact | None = None

    def direction(self, rows: np.ndarray) -> np.ndarray:
        """Return the mean direction (K,) of some images, by their rows in `image_ids`."""
        return self.directions(rows).sum(0)

    def directions(self, rows: np.ndarray) -> np.ndarray:
        """Return images (n, K) float32 of length 1, by their rows in `image_ids`."""
        of_order = rows if self.order is None else self.order[rows]
        vectors = (np.asarray(self._rows[of_order], np.float32) - self._centre) * self._scales
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def direction_of(self, example: Answer) -> np.ndarray:
        """Return the direction (K,) of features (D,). Raises AnnotatorError where they are of another network."""
        assert example.vector is not None
        of_root = root(example.vector)
        centre = self._centre if self._basis is None else self._basis.centre
        if len(of_root) != len(centre):
            raise AnnotatorError(
                f"The example has {len(of_root):,} features and the images have {len(centre):,}: the network was "
                "changed in between. Give it again."
            )
        return of_root - centre if self._basis is None else (of_root - centre) @ self._basis.axes

    def cosines(self, wanted: np.ndarray) -> np.ndarray:
        """Return the cosine of each image with a direction (K,), (N,) float32."""
        weights = self._scales * (wanted / max(float(np.linalg.norm(wanted)), 1e-12))
        offset = float(self._centre @ weights)
        values = np.empty(len(self._rows), np.float32)
        lengths = np.empty(len(values), np.float32) if self._lengths is None else self._lengths

        def part(start: int) -> None:
            for at in range(start, min(start + PART, len(values)), ROWS):
                rows = slice(at, min(at + ROWS, start + PART))
                block = np.asarray(self._rows[rows], np.float32)
                # Not a product of BLAS, whose own threads and these get in each other's way: 3 s instead of 0.1.
                values[rows] = np.einsum("ij,j->i", block, weights) - offset
                if self._lengths is None:
                    lengths[rows] = np.linalg.norm((block - self._centre) * self._scales, axis=1)

        starts = range(0, len(values), PART)
        if len(starts) < 2:
            list(map(part, starts))
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(part, starts))
        self._lengths = lengths
        values /= np.maximum(lengths, 1e-12)
        np.clip(values, -1, 1, out=values)
        return values if self.order is None else values[self.order]


class _Roots:
    """Rows (N, D) of features, of which the roots are read."""

    def __init__(self, features: Rows):
        self._features = features

    def __len__(self) -> int:
        return len(self._features)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return root(np.asarray(self._features[rows], np.float32))
