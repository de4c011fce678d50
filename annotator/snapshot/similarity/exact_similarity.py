"""The likest images by codes, compared once more by the features that the codes were made of.

A code keeps 256 directions of the features. Of a million images it finds the likest thousand, in an order that is not
exact: what a code leaves out decides between images that are all much alike. Their features are read from the shards.
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
    """Return the roots of features, with their signs."""
    return np.sign(features) * np.sqrt(np.abs(features))


class ExactFeatures:
    """The features of images that have codes.

    Rows are those of the likeness that is corrected, in ascending order of image ids.
    """

    def __init__(self, features: ShardedRows, places: np.ndarray):
        """Keep the features (n, D), and the row in them of each image, (N,) int64, -1 where it has none."""
        self._features, self._places = features, places
        self._mean = self._read_roots(np.flatnonzero(places >= 0)[:MEAN_SAMPLE_IMAGES]).mean(0)

    @classmethod
    def build(cls, folder: Path, codes: StoredCodes, order: np.ndarray | None) -> "ExactFeatures | None":
        """Return the features of codes whose images are in this order; None where none can be read."""
        features, places = read_features(folder, codes)
        places = places if order is None else places[order]
        if not (places >= 0).any():
            return None
        try:
            return cls(features, places)
        except AnnotatorError:  # a shard has been replaced just now
            return None

    def compute_direction(self, examples: np.ndarray) -> np.ndarray | None:
        """Return the mean direction (D,) of images by their rows; None where one has no features any more."""
        if (self._places[examples] < 0).any():
            return None
        try:
            vectors = self._read_roots(examples) - self._mean
        except AnnotatorError:
            return None
        return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).mean(0)

    def compute_example_direction(self, features: np.ndarray) -> np.ndarray:
        """Return the direction (D,) of features from elsewhere."""
        return signed_sqrt(features) - self._mean

    def correct_similarities(self, values: np.ndarray, direction: np.ndarray | None) -> None:
        """Replace the likeness of the likest images by the exact one, and bring that of all others to its scale.

        Codes leave out directions in which images differ, so that their cosines are too large.

        Args:
            values: (N,) float32 by codes, changed in place.
            direction: (D,) what images are compared with; None: nothing is changed.
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
