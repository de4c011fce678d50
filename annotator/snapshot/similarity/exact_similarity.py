"""The most similar images by compressed codes, compared again by their original embeddings.

A code keeps 256 directions, too few to rank very similar images.
"""

from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.features.sharded_rows import ShardedRows
from annotator.store.features.stored_image_codes import StoredCodes, read_features

MEAN_SAMPLE_IMAGES = 4096  # images whose mean the features are counted from
RECOMPARED_IMAGES = 1000  # images that are compared again
TAIL_IMAGES = 200  # of those, the last ones, whose values say how those of codes relate to exact ones


def signed_sqrt(features: np.ndarray) -> np.ndarray:
    """Return the square roots of the absolute values, with the signs of the values."""
    return np.sign(features) * np.sqrt(np.abs(features))


class ExactFeatures:
    """A reader of original embeddings for the images that have codes, by row in ascending image ids."""

    def __init__(self, features: ShardedRows, places: np.ndarray):
        """Store embeddings (n, D), and the row of each image in them, (N,), -1 if none."""
        self._features, self._places = features, places
        self._mean = self._read_roots(np.flatnonzero(places >= 0)[:MEAN_SAMPLE_IMAGES]).mean(0)

    @classmethod
    def build(cls, folder: Path, codes: StoredCodes, order: np.ndarray | None) -> "ExactFeatures | None":
        """Return a reader for images with codes, in `order`, or None if embeddings are unreadable."""
        features, places = read_features(folder, codes)
        places = places if order is None else places[order]
        if not (places >= 0).any():
            return None
        try:
            return cls(features, places)
        except AnnotatorError:  # a shard has been replaced just now
            return None

    def compute_direction(self, examples: np.ndarray) -> np.ndarray | None:
        """Return the mean direction (D,) of example rows, or None if an embedding is missing."""
        if (self._places[examples] < 0).any():
            return None
        try:
            vectors = self._read_roots(examples) - self._mean
        except AnnotatorError:
            return None
        return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).mean(0)

    def compute_example_direction(self, features: np.ndarray) -> np.ndarray:
        """Return the direction (D,) of the embedding of an external example."""
        return signed_sqrt(features) - self._mean

    def correct_similarities(self, values: np.ndarray, direction: np.ndarray | None) -> None:
        """Replace the highest similarities, (N,) float32, in place by exact cosines, and scale the others.

        Cosines of codes are too large, because codes omit directions. `direction` (D,) of None changes nothing.
        """
        if direction is None or len(values) <= RECOMPARED_IMAGES:
            return
        likest = np.argpartition(values, len(values) - RECOMPARED_IMAGES)[-RECOMPARED_IMAGES:]
        likest = likest[self._places[likest] >= 0]
        if len(likest) < TAIL_IMAGES:
            return
        try:
            vectors = self._read_roots(likest) - self._mean
        except AnnotatorError:  # a shard has been replaced just now: codes alone then
            return
        lengths = np.linalg.norm(vectors, axis=1) * max(float(np.linalg.norm(direction)), 1e-12)
        exact = np.einsum("ij,j->i", vectors, direction) / np.maximum(lengths, 1e-12)
        tail = np.argsort(values[likest])[:TAIL_IMAGES]
        scale = float(exact[tail].mean()) / max(float(values[likest][tail].mean()), 1e-12)
        values *= min(max(scale, 0.0), 1.0)
        values[likest] = np.clip(exact, -1, 1)

    def _read_roots(self, rows: np.ndarray) -> np.ndarray:
        return signed_sqrt(self._features[self._places[rows]].astype(np.float32))
