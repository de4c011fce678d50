"""Similarity of images to examples, by the current backbone's embeddings.

It is the cosine of the signed square roots of the embeddings, after subtracting their mean, without which nonnegative
embeddings make all images similar. Roots limit the effect of single large values. Above MAX_EXACT_IMAGES it uses int8
codes, exact only at the top. Several examples are averaged (Rocchio, The SMART Retrieval System, 1971).
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import find_positions
from annotator.snapshot.similarity.exact_similarity import MEAN_SAMPLE_IMAGES, ExactFeatures, signed_sqrt
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.sharded_rows import ShardedRows
from annotator.store.features.shards import list_shards
from annotator.store.features.stored_basis import StoredBasis
from annotator.store.features.stored_image_codes import CODES_FOLDER, INDEX_FILE, read_codes
from annotator.store.networks import configuration, search_examples
from annotator.store.networks.search_examples import ExampleAnswer

MAX_EXACT_IMAGES = 50_000  # images whose features are read for each example
ROWS_PER_BLOCK = 2048  # read at once
ROWS_PER_THREAD = 1 << 17  # rows that one thread takes
THREAD_COUNT = 2  # more gain little: memory is read as fast as it goes
MAX_CACHED_QUERIES = 8  # questions whose similarities are kept
MAX_EXAMPLES = 16


@dataclass(eq=False)
class _LockedFeatures:
    """The embeddings of one backbone, locked while they are read."""

    cache: FeatureCache
    lock: threading.Lock = field(default_factory=threading.Lock)


def get_change_key(db: Database) -> tuple[str, int]:
    """Return a cache key of similarities: the current backbone and its number of embedding files."""
    name = configuration.get_backbone(db)
    return name, len(list_shards(db.paths.features(name)))


def has_analyzed_images(db: Database) -> bool:
    """Return whether any image has an embedding by the current backbone."""
    name, files = get_change_key(db)
    return files > 0 or (db.paths.features(name) / CODES_FOLDER / INDEX_FILE).exists()


def compute_similarities(
    db: Database, image_ids: np.ndarray, examples: Sequence[int], example_key: str = ""
) -> np.ndarray:
    """Return the similarity of images to examples.

    Args:
        image_ids: (N,) int64.
        examples: 1 to MAX_EXAMPLES image ids, if `example_key` is empty.

    Returns:
        (N,) float32 in [-1, 1], for text rescaled to [0, 1], nan without an embedding.

    Raises:
        AnnotatorError: If an example is unknown or none has an embedding.
    """
    wanted = () if example_key else tuple(sorted(set(examples)))
    ids, values = db.caches.get(
        "similar",
        (*get_change_key(db), wanted, example_key),
        lambda: _compare_with_example(db, example_key) if example_key else _compare_with_images(db, wanted),
        MAX_CACHED_QUERIES,
    )
    if np.array_equal(ids, image_ids):  # the usual case of a whole list: looking a million ids up takes longer
        return values.copy()
    rows, known = find_positions(image_ids, ids)
    result = np.full(len(image_ids), np.nan, np.float32)
    result[known] = values[rows[known]]
    return result


def _compare_with_images(db: Database, examples: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all images with an embedding, ascending, and their similarities to the examples."""
    if len(examples) > MAX_EXAMPLES:
        raise AnnotatorError(f"{len(examples):,} examples are too many: take {MAX_EXAMPLES} at most.")
    marks = ",".join("?" * len(examples))
    there = {image_id for (image_id,) in db.tuples(f"SELECT id FROM image WHERE id IN ({marks})", list(examples))}
    if gone := [example for example in examples if example not in there]:
        raise AnnotatorError(f"There is no image {gone[0]}. Was it removed, or is the address of another project?")
    space = _load_space(db)
    rows, known = find_positions(examples, space.image_ids)
    if not known.any():
        waiting = "The image is not analyzed yet" if len(space.image_ids) else "No image is analyzed yet"
        raise AnnotatorError(f"{waiting}, so nothing can be compared with it. The worker does that; try again soon.")
    values = space.compute_cosines(space.compute_direction(rows[known]))
    if space.exact is not None:
        space.exact.correct_similarities(values, space.exact.compute_direction(rows[known]))
    values[rows[known]] = 1
    return space.image_ids, values


def load_directions(db: Database, image_ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return which of these images have an embedding, (n,) int64, and their unit vectors, (n, K) float32."""
    space, ids = _load_space(db), np.asarray(image_ids, np.int64)
    rows, known = find_positions(ids, space.image_ids)
    return ids[known], space.compute_directions(rows[known])


def is_text_example(db: Database, key: str) -> bool:
    asked = search_examples.load_request(db, key)
    return asked is not None and asked.kind == search_examples.WORDS


def _compare_with_example(db: Database, key: str) -> tuple[np.ndarray, np.ndarray]:
    found = search_examples.load_answer(db, key)
    if found.image_ids is not None and found.values is not None:
        return found.image_ids, _rescale(found.values)
    space = _load_space(db)
    if not len(space.image_ids):
        raise AnnotatorError("No image is analyzed yet, so nothing can be compared. The worker does that; try again.")
    values = space.compute_cosines(space.project_example(found))
    if space.exact is not None and found.vector is not None:
        space.exact.correct_similarities(values, space.exact.compute_example_direction(found.vector))
    return space.image_ids, values


def _rescale(values: np.ndarray) -> np.ndarray:
    """Rescale cosines of a text to [0, 1], for sorting in half precision."""
    lowest, highest = float(values.min()), float(values.max())
    return (values - lowest) / max(highest - lowest, 1e-12)


def _load_space(db: Database) -> "_VectorSpace":
    folder = db.paths.features(configuration.get_backbone(db))
    if coded := _load_coded_space(db, folder):
        return coded
    kept = db.caches.get(
        "similar features", folder, lambda: _LockedFeatures(FeatureCache(folder, ProjectContents(db))), 1
    )
    with kept.lock:
        kept.cache.refresh()
        ids, features = kept.cache.image_ids, kept.cache.features
    if len(ids) > MAX_EXACT_IMAGES:
        raise AnnotatorError(
            f"With more than {MAX_EXACT_IMAGES:,} images likeness needs the codes that the worker writes once it has "
            "learned from answers; there are none yet. Use another order until then."
        )
    roots = _SignedRootRows(features)
    mean = roots[:MEAN_SAMPLE_IMAGES].mean(0) if len(ids) else np.zeros(0, np.float32)
    return _VectorSpace(ids, roots, mean)


def _load_coded_space(db: Database, folder: Path) -> "_VectorSpace | None":
    try:
        state = (folder / CODES_FOLDER / INDEX_FILE).stat()
    except OSError:
        return None

    def read() -> _VectorSpace | None:
        codes = read_codes(folder)
        if codes is None or len(codes.image_ids) <= MAX_EXACT_IMAGES:
            return None
        scales = codes.basis.scales.astype(np.float32)
        space = _VectorSpace(codes.image_ids, codes.codes, np.zeros(len(scales), np.float32), scales, codes.basis)
        space.exact = ExactFeatures.build(folder, codes, space.order)
        return space

    return db.caches.get("similar codes", (folder, state.st_mtime_ns, state.st_size), read, 1)


class _VectorSpace:
    """Images as vectors (rows - center) * scales, compared in blocks that fit the processor cache.

    `image_ids` ascend. `order` has their rows, None if equal.
    """

    def __init__(
        self,
        ids: np.ndarray,
        rows: "np.ndarray | _SignedRootRows",
        centre: np.ndarray,
        scales: np.ndarray | None = None,
        basis: StoredBasis | None = None,
    ):
        ascending = bool((np.diff(ids) > 0).all())
        self.order = None if ascending else np.argsort(ids, kind="stable")
        self.image_ids = ids if self.order is None else ids[self.order]
        self._rows, self._center, self._basis = rows, centre, basis
        self._scales = np.ones(len(centre), np.float32) if scales is None else scales
        self._lengths: np.ndarray | None = None
        self.exact: ExactFeatures | None = None

    def compute_direction(self, rows: np.ndarray) -> np.ndarray:
        return self.compute_directions(rows).sum(0)

    def compute_directions(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors, (n, K) float32, of rows in `image_ids`."""
        of_order = rows if self.order is None else self.order[rows]
        vectors = (np.asarray(self._rows[of_order], np.float32) - self._center) * self._scales
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def project_example(self, example: ExampleAnswer) -> np.ndarray:
        """Return the unit vector (K,) of an external example. Raises AnnotatorError for another backbone's."""
        assert example.vector is not None
        of_root = signed_sqrt(example.vector)
        centre = self._center if self._basis is None else self._basis.centre
        if len(of_root) != len(centre):
            raise AnnotatorError(
                f"The example has {len(of_root):,} features and the images have {len(centre):,}: the network was "
                "changed in between. Give it again."
            )
        return of_root - centre if self._basis is None else (of_root - centre) @ self._basis.axes

    def compute_cosines(self, direction: np.ndarray) -> np.ndarray:
        """Return the cosine of each image with a direction (K,), (N,) float32."""
        weights = self._scales * (direction / max(float(np.linalg.norm(direction)), 1e-12))
        offset = float(self._center @ weights)
        values = np.empty(len(self._rows), np.float32)
        lengths = np.empty(len(values), np.float32) if self._lengths is None else self._lengths

        def part(start: int) -> None:
            for at in range(start, min(start + ROWS_PER_THREAD, len(values)), ROWS_PER_BLOCK):
                rows = slice(at, min(at + ROWS_PER_BLOCK, start + ROWS_PER_THREAD))
                block = np.asarray(self._rows[rows], np.float32)
                # Not a product of BLAS, whose own threads and these get in each other's way: 3 s instead of 0.1.
                values[rows] = np.einsum("ij,j->i", block, weights) - offset
                if self._lengths is None:
                    lengths[rows] = np.linalg.norm((block - self._center) * self._scales, axis=1)

        starts = range(0, len(values), ROWS_PER_THREAD)
        if len(starts) < 2:
            list(map(part, starts))
        else:
            with ThreadPoolExecutor(THREAD_COUNT) as pool:
                list(pool.map(part, starts))
        self._lengths = lengths
        values /= np.maximum(lengths, 1e-12)
        np.clip(values, -1, 1, out=values)
        return values if self.order is None else values[self.order]


class _SignedRootRows:
    """A reader of embeddings (N, D) on disk that returns rows as signed square roots."""

    def __init__(self, features: ShardedRows):
        self._features = features

    def __len__(self) -> int:
        return len(self._features)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return signed_sqrt(np.asarray(self._features[rows], np.float32))
